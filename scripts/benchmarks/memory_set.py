"""A generated life with an assistant: facts, some of them updated later, among everyday requests, and questions."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from benchmarks.memory_kinds import ABOUT, CITIES, KINDS, Kind
from local.memory.store import EngramDraft, Origin, Statement

USER = "user"
START = 1_700_000_000.0  # seconds since 1970
DAYS = 400
UPDATED = 0.2  # share of the facts that change
CHATTER = 1_100  # requests that state nothing
_REPLIES = (
    "Noted.", "All right, I will keep that in mind.", "Thanks for telling me, {s}.", "Understood: {s}.",
    "Got it. Is there anything else?", "Good to know that {s}.",
)  # fmt: skip
_TOPICS = (
    "the sea", "autumn", "old bridges", "jazz", "patience", "a lighthouse", "the moon", "bread", "volcanoes", "tea",
    "glaciers", "trains", "mathematics", "rain", "fireflies", "libraries", "chess", "sleep", "honesty", "football",
)  # fmt: skip
_REQUESTS = (
    ("Write four lines about {t}", "Here are four lines about {t}, quiet and slow, the day lets go."),
    ("Explain {t} to a child of six", "Imagine {t} as something you can hold in your hand, and then look closer."),
    ("Write a greeting card for {p} about {t}", "Dear friend, may {t} be with you all year round."),
    ("Draft a short message to {p} on {t}", "Hello! I have been thinking about {t} and of you. Call me."),
    ("What should I see in {c} if I like {t}?", "In {c} there is a small museum of {t} behind the market."),
    ("What is the weather like in {c} usually?", "{c} has mild springs and windy autumns; bring {t} in mind."),
    ("Translate 'I love {t}' into the language of {c}", "In {c} people would smile and say it with their hands."),
    ("Name a song about {t} that {p} may like", "There is an old ballad on {t} that fits well."),
    ("Give me a riddle with {t}", "I am near {t} and never reach it. What am I?"),
    ("How far is it from {c} to the coast?", "From {c} it takes a few hours by train."),
)
UNANSWERABLE = (
    "What is the password of the old router?", "How many calories are in a croissant?", "Which vaccine did I get?",
    "Who won the chess olympiad in 1972?", "What did the plumber's invoice number look like?",
    "How do I reset the dishwasher?", "What is the boiling point of ethanol?", "Which shoe size do I have?",
    "What was the name of the film with the submarine?", "How tall is the Eiffel tower?",
    "Which blood type do I have?", "Who painted the night watch?", "How do I boil an egg?",
    "What is my library card number?", "How many moons does Jupiter have?", "What is the wifi network called?",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of the memory; `is_for_tuning` says to which half it belongs. `stale` are outdated answers."""

    text: str
    answer: str
    stale: frozenset[str]
    is_for_tuning: bool


@dataclass(frozen=True, slots=True)
class MemorySet:
    """Exchanges in order of time, the statements a perfect classifier would find in them, and questions."""

    exchanges: list[EngramDraft]
    statements: list[Statement]
    questions: list[Question]


@dataclass(frozen=True, slots=True)
class _Said:
    texts: tuple[str, ...]
    kind: Kind | None = None
    about: str = ""
    value: str = ""


def generate(seed: int = 1) -> MemorySet:
    """The set of a seed. Whole kinds of facts belong to one half: what is tuned on one says nothing of the other."""
    random = Random(seed)
    first, updates = _facts(random)
    said = [*first, *(_chatter(random) for _ in range(CHATTER))]
    random.shuffle(said)
    for old, new in updates:
        said.insert(random.randint(said.index(old) + 1, len(said)), new)
    return _told(random, said)


def _facts(random: Random) -> tuple[list[_Said], list[tuple[_Said, _Said]]]:
    first, updates = [], []
    for kind in KINDS:
        for about in ABOUT[kind.about]:
            values = random.sample(kind.values, 2)
            first.append(_fact(random, kind, about, values[0]))
            if random.random() < UPDATED:
                updates.append((first[-1], _fact(random, kind, about, values[1])))
    return first, updates


def _fact(random: Random, kind: Kind, about: str, value: str) -> _Said:
    statement = _sentence(random.choice(kind.statements), about, value)
    opening = (_sentence(kind.opening, about, value),) if kind.opening else ()
    return _Said((*opening, statement), kind, about, value)


def _chatter(random: Random) -> _Said:
    request, reply = random.choice(_REQUESTS)
    words = {"t": random.choice(_TOPICS), "p": random.choice(ABOUT["person"]), "c": random.choice(CITIES)}
    return _Said((request.format(**words), reply.format(**words)))


def _told(random: Random, said: list[_Said]) -> MemorySet:
    made = MemorySet([], [], [])
    step = DAYS * 86400 / len(said)
    engrams: dict[tuple[Kind, str], list[str]] = {}
    for number, each in enumerate(said):
        session, asked_at = f"session-{number // 5}", START + number * step
        if each.kind is None:
            made.exchanges.append(_exchange(made, session, *each.texts, asked_at=asked_at))
            continue
        for text in each.texts:
            reply = random.choice(_REPLIES).format(s=text[0].lower() + text[1:])
            made.exchanges.append(_exchange(made, session, text, reply, asked_at=asked_at))
        engram_id = made.exchanges[-1].engram_id
        engrams.setdefault((each.kind, each.about), []).append(engram_id)
        slot = f"{each.kind.name} of {each.about}"
        made.statements.append(Statement(engram_id, slot, each.value, asked_at, Origin.USER))
    for (kind, about), ids in engrams.items():
        text = _sentence(random.choice(kind.questions), about, "")
        made.questions.append(Question(text, ids[-1], frozenset(ids[:-1]), KINDS.index(kind) % 2 == 0))
    return made


def _exchange(made: MemorySet, session: str, query: str, answer: str, *, asked_at: float) -> EngramDraft:
    return EngramDraft(f"query-{len(made.exchanges)}", session, USER, query, answer, asked_at)


def _sentence(template: str, about: str, value: str) -> str:
    text = template.format(p=about, v=value)
    return text[0].upper() + text[1:]
