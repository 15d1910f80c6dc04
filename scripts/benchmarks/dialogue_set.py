"""Generated dialogues of two people over a year: each tells the other what happened, much of it about the same things,
between remarks that say little; then questions about it: by name, by date, and some that ask two things at once."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

from benchmarks.dialogue_topics import FRIENDS, MEMBERS, REACTIONS, SMALL_TALK, TIMES, TOPICS, Event
from local.memory.store import EngramDraft

DIALOGUES = len(MEMBERS) // 2
SESSIONS = 24
TOPICS_EACH = 10  # of the twenty, so that two who talk share some
EVENTS_EACH = 5
REMARKS = 0.5  # share of the turns that tell nothing
FIRST_DAY = datetime(2023, 1, 14, 18, tzinfo=UTC)
QUESTIONS = {"single": 66, "dated": 8, "multi": 16}  # of each dialogue
_CHOICE = re.compile(r"\{([^}]*)\}")


@dataclass(frozen=True, slots=True)
class DialogueQuestion:
    """What is asked of one dialogue's memory, and the exchanges in which the answer is: several if it asks for several
    things. `kind` is one of single, dated, multi."""

    user_id: str
    text: str
    evidence: frozenset[str]
    kind: str


@dataclass(frozen=True, slots=True)
class DialogueSet:
    """Exchanges in order of time for each dialogue, each with a memory of its own, and questions asked after them."""

    exchanges: list[EngramDraft]
    questions: list[DialogueQuestion]


@dataclass(frozen=True, slots=True)
class _Told:
    """What one of the two says in a turn; an event if it has questions."""

    speaker: str
    topic: str
    text: str
    questions: tuple[str, ...] = ()


def generate_dialogues(seed: int = 1) -> DialogueSet:
    """The set of a seed."""
    made = DialogueSet([], [])
    for number in range(DIALOGUES):
        _Dialogue(Random(f"{seed}/{number}"), f"dialogue-{number}", MEMBERS[2 * number : 2 * number + 2]).tell(made)
    return made


class _Dialogue:
    def __init__(self, random: Random, user_id: str, pair: tuple[str, ...]) -> None:
        self._random, self._user_id, self._pair = random, user_id, pair
        self._friends = random.sample(FRIENDS, 4)
        self._says_who = random.random() < 0.5  # whether each turn begins with its speaker's name

    def tell(self, made: DialogueSet) -> None:
        told, places = self._told(), list[tuple[_Told, str, datetime]]()
        for number in range(SESSIONS):
            asked_at = FIRST_DAY + timedelta(days=number * 365 / SESSIONS, hours=self._random.randrange(4))
            for place, (first, second) in enumerate(self._session(told[number::SESSIONS])):
                exchange = EngramDraft(f"{self._user_id}/{number}/{place}", f"{self._user_id}/{number}", self._user_id,
                    self._line(first), self._line(second), asked_at.timestamp() + 60 * place)  # fmt: skip
                made.exchanges.append(exchange)
                places += [(turn, exchange.engram_id, asked_at) for turn in (first, second) if turn.questions]
        made.questions.extend(self._questions(places))

    def _told(self) -> list[_Told]:
        """What the two will tell, in order."""
        told = [
            self._event(speaker, topic, event)
            for speaker in self._pair
            for topic in self._random.sample(list(TOPICS), TOPICS_EACH)
            for event in self._random.choices(TOPICS[topic], k=EVENTS_EACH)
        ]
        self._random.shuffle(told)
        return told

    def _event(self, speaker: str, topic: str, event: Event) -> _Told:
        statement, questions = event
        friend, when = self._random.choice(self._friends), self._random.choice(TIMES)
        names = {"%f": friend, "%n": speaker, "%t": when}
        made = _filled(self._random, statement, names)
        return _Told(speaker, topic, made, tuple(_filled(self._random, each, names) for each in questions))

    def _session(self, told: list[_Told]) -> Iterator[tuple[_Told, _Told]]:
        """The turns of one evening, in pairs: whoever's turn it is tells something or reacts to what was told."""
        waiting = {speaker: [each for each in told if each.speaker == speaker] for speaker in self._pair}
        topic = told[0].topic
        yield self._remark(0, topic, SMALL_TALK[:2]), self._remark(1, topic, SMALL_TALK[:2])
        while any(waiting.values()):
            turns = []
            for number, speaker in enumerate(self._pair):
                if waiting[speaker] and self._random.random() > REMARKS:
                    each = waiting[speaker].pop()
                    reaction = self._remark(number, topic, REACTIONS).text if self._random.random() < 0.6 else ""
                    turns.append(_Told(speaker, each.topic, f"{reaction} {each.text}.".strip(), each.questions))
                    topic = each.topic
                else:
                    turns.append(self._remark(number, topic, (*REACTIONS, *SMALL_TALK)))
            yield turns[0], turns[1]

    def _remark(self, number: int, topic: str, of: tuple[str, ...]) -> _Told:
        names = {"%o": self._pair[1 - number], "%f": self._random.choice(self._friends), "%T": topic}
        return _Told(self._pair[number], topic, _filled(self._random, self._random.choice(of), names))

    def _line(self, turn: _Told) -> str:
        text = turn.text[0].upper() + turn.text[1:]
        return f"{turn.speaker}: {text}" if self._says_who else text

    def _questions(self, told: list[tuple[_Told, str, datetime]]) -> Iterator[DialogueQuestion]:
        """All that can be asked, some of it chosen."""
        evidence: defaultdict[str, set[str]] = defaultdict(set)
        by_month: defaultdict[str, set[str]] = defaultdict(set)
        by_topic: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
        for turn, engram_id, asked_at in told:
            for text in turn.questions:
                evidence[text].add(engram_id)
            by_topic[turn.speaker, turn.topic].update(turn.questions)
            by_month[f"What did {turn.speaker} say about {turn.topic} in {asked_at:%B %Y}?"].add(engram_id)
        pairs = [self._random.sample(sorted(texts), 2) for texts in by_topic.values() if len(texts) > 1]
        both = {f"{one[:-1]}, and {two[0].lower()}{two[1:]}": evidence[one] | evidence[two] for one, two in pairs}
        for kind, texts in (("single", evidence), ("dated", by_month), ("multi", both)):
            for text in self._random.sample(sorted(texts), QUESTIONS[kind]):
                yield DialogueQuestion(self._user_id, text, frozenset(texts[text]), kind)


def _filled(random: Random, template: str, names: dict[str, str]) -> str:
    for mark, name in names.items():
        template = template.replace(mark, name)
    return _CHOICE.sub(lambda found: random.choice(found[1].split("/")), template)
