"""One search of the memory: the time named in a question, candidates by words and vectors, and their ranking."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Self

from local.core.words import content_words, is_telling, telling_words
from local.memory import facts, vectors
from local.memory.facts import Outdated
from local.memory.store import Coverages, Engram, stored_engram
from local.memory.vectors import CONTEXT_WEIGHT

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector = NDArray[np.float32]


# The time named in a question, as in "last week" or "in May 2023": exchanges from then are preferred.

TOLD_LATER = timedelta(days=2)  # people also report an event on the days after it
_MONTHS = (
    "january januar janvier enero", "february februar février fevrier febrero", "march märz maerz mars marzo",
    "april avril abril", "may mai mayo", "june juni juin junio", "july juli juillet julio", "august août aout agosto",
    "september septembre septiembre", "october oktober octobre octubre", "november novembre noviembre",
    "december dezember décembre decembre diciembre",
)  # fmt: skip
_MONTH_NUMBERS = {name: number for number, names in enumerate(_MONTHS, start=1) for name in names.split()}
_DAYS: Mapping[str, int] = {
    name: number
    for number, names in enumerate(
        ("monday montag lundi lunes", "tuesday dienstag mardi martes", "wednesday mittwoch mercredi",
         "thursday donnerstag jeudi jueves", "friday freitag vendredi viernes", "saturday samstag samedi",
         "sunday sonntag dimanche domingo")
    )
    for name in names.split()
}  # fmt: skip
_UNIT_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}
_UNITS: Mapping[str, str] = {
    name: unit
    for unit, names in {
        "day": "day days tag tage tagen jour jours día días dia dias", "week": "week weeks woche wochen semaine"
        " semaines semana semanas", "month": "month months monat monate monaten mois mes meses",
        "year": "year years jahr jahre jahren an ans année año años",
    }.items()
    for name in names.split()
}  # fmt: skip
_NUMBERS: Mapping[str, int] = {
    name: number
    for number, names in {
        1: "a an one ein eine einem einer un une una", 2: "two couple zwei deux dos", 3: "three few drei trois tres",
        4: "four vier quatre cuatro", 5: "five fünf cinq cinco", 6: "six sechs seis", 7: "seven sieben sept siete",
        8: "eight acht huit ocho", 9: "nine neun neuf nueve", 10: "ten zehn dix diez",
    }.items()
    for name in names.split()
}  # fmt: skip
# The unit, and how many of them back. "Today" is left out: it is the time of the question, not of the exchange.
_SPOKEN: Mapping[str, tuple[str, int]] = {
    phrase: (unit, back)
    for (unit, back), phrases in {
        ("day", 0): "this morning|earlier today|heute früh|heute morgen|ce matin|esta mañana",
        ("day", 1): "yesterday|last night|gestern|ayer|昨天|昨日",
        ("day", 2): "the day before yesterday|vorgestern|avant-hier|anteayer|前天",
        ("week", 0): "this week|diese woche|dieser woche|cette semaine|esta semana|这周|今週",
        ("week", 1): "last week|the week before|letzte woche|letzter woche|vorige woche|la semaine dernière"
        "|la semana pasada|上周|上个星期|先週",
        ("month", 0): "this month|diesen monat|ce mois-ci|este mes|这个月|今月",
        ("month", 1): "last month|letzten monat|letztem monat|vorigen monat|le mois dernier|el mes pasado|上个月|先月",
        ("year", 1): "last year|letztes jahr|letztem jahr|voriges jahr|l'année dernière|l'an dernier|el año pasado"
        "|去年",
    }.items()
    for phrase in phrases.split("|")
}


@dataclass(frozen=True, slots=True)
class NamedTime:
    """A time from `begins` up to `ends`, in seconds since 1970. `spoken` is the part of the question that names it, if
    it cannot be content of an exchange.
    """

    begins: float
    ends: float
    spoken: str = ""


def named_time(question: str, now: float) -> NamedTime | None:
    """The first time that a question names, in local time, reckoned from `now`; None if it names none. In English,
    German, French and Spanish, and a little Chinese and Japanese."""
    text, moment = question.casefold(), datetime.fromtimestamp(now)
    for pattern, meaning in _WAYS:
        for found in pattern.finditer(text):
            try:
                begins, ends, spoken = meaning(found, moment)
                return NamedTime(begins.timestamp(), (ends + TOLD_LATER).timestamp(), spoken)
            except (ValueError, OverflowError, OSError):  # the 31st of February, the year 0
                continue
    return None


_Span = tuple[datetime, datetime, str]


def _spoken(found: re.Match[str], now: datetime) -> _Span:
    unit, back = _SPOKEN[found[0]]
    begins, ends = _unit_around(now, unit)
    for _ in range(back):
        begins, ends = _unit_around(begins - timedelta(days=1), unit)
    return begins, ends, found[0]


def _ago(found: re.Match[str], now: datetime) -> _Span:
    days = _UNIT_DAYS[_UNITS[found["unit"]]]
    number = int(found["number"]) if found["number"].isdigit() else _NUMBERS[found["number"]]
    middle = _midnight(now) - timedelta(days=number * days)
    return middle - timedelta(days=days // 2), middle + timedelta(days=days // 2 + 1), found[0]


def _weekday(found: re.Match[str], now: datetime) -> _Span:
    back = (now.weekday() - _DAYS[found["day"]] - 1) % 7 + 1
    day = _midnight(now) - timedelta(days=back)
    return day, day + timedelta(days=1), ""


def _iso(found: re.Match[str], now: datetime) -> _Span:
    day = datetime.fromisoformat(found[0])
    return day, day + timedelta(days=1), ""


def _date(found: re.Match[str], now: datetime) -> _Span:
    month, day = _MONTH_NUMBERS[found["month"]], int(found["day"])
    begins = datetime(_year(found["year"], now, month, day), month, day)
    return begins, begins + timedelta(days=1), ""


def _month(found: re.Match[str], now: datetime) -> _Span:
    month = _MONTH_NUMBERS[found["month"]]
    return *_unit_around(datetime(_year(found["year"], now, month, 1), month, 1), "month"), ""


def _whole_year(found: re.Match[str], now: datetime) -> _Span:
    return *_unit_around(datetime(int(found["year"]), 1, 1), "year"), ""


def _year(told: str | None, now: datetime, month: int, day: int) -> int:
    """Return the given year, else the one in which the date was last."""
    return int(told) if told else now.year - ((month, day) > (now.month, now.day))


def _unit_around(moment: datetime, unit: str) -> tuple[datetime, datetime]:
    """Return the calendar day, week (from Monday), month or year around a moment."""
    day = _midnight(moment)
    match unit:
        case "day":
            return day, day + timedelta(days=1)
        case "week":
            begins = day - timedelta(days=day.weekday())
            return begins, begins + timedelta(days=7)
        case "month":
            begins = day.replace(day=1)
            return begins, (begins + timedelta(days=31)).replace(day=1)
        case _:
            begins = day.replace(month=1, day=1)
            return begins, begins.replace(year=begins.year + 1)


def _midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def _any(names: Mapping[str, object]) -> str:
    return "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))


_NAME, _OF_YEAR = rf"(?P<month>{_any(_MONTH_NUMBERS)})\b", r"(?P<year>(?:19|20)\d\d)\b"
_COUNT = rf"(?P<number>\d{{1,3}}|{_any(_NUMBERS)})\s+(?:of\s+)?(?P<unit>{_any(_UNITS)})\b"
_UNSPACED = "|".join(phrase for phrase in _SPOKEN if phrase > "\u3000")  # between words that have no spaces
_Meaning = Callable[[re.Match[str], datetime], _Span]
_WAYS: tuple[tuple[re.Pattern[str], _Meaning], ...] = tuple(
    (re.compile(pattern), meaning)
    for pattern, meaning in (
        (r"\b(?:19|20)\d\d-\d\d-\d\d\b", _iso),
        (rf"\b(?P<day>\d{{1,2}})(?:st|nd|rd|th|\.|er)?\s+(?:of\s+|de\s+)?{_NAME}(?:,?\s+(?:de\s+)?{_OF_YEAR})?", _date),
        (rf"\b{_NAME}\s+(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?:,?\s+{_OF_YEAR})?", _date),
        (rf"\b{_NAME}(?:,?\s+(?:of\s+|de\s+)?{_OF_YEAR})", _month),
        (rf"\b(?:in|during|since|last|this|im|seit|letzten|en|depuis)\s+{_NAME}(?P<year>)", _month),
        (rf"(?<!\w)(?:{_any(_SPOKEN)})(?!\w)|{_UNSPACED}", _spoken),
        (rf"\b{_COUNT}\s+ago\b", _ago),
        (rf"\b(?:vor|il y a|hace)\s+(?:etwa\s+)?{_COUNT}", _ago),
        (rf"\b(?:on|last|am|letzten)\s+(?P<day>{_any(_DAYS)})\b", _weekday),
        (rf"\b(?:in|during|since|im jahr|en)\s+{_OF_YEAR}", _whole_year),
    )
)  # fmt: skip


# A question with several parts, as "Where does Ana live, and what is her dog called?": each is searched for, too.

MOST_QUESTIONS = 3
_OF_WHOLE = 3  # hits of the whole question among them: a later part may lack the name
_ASKS = (
    "what|who|whom|whose|when|where|which|why|how|wer|wen|wem|wann|wo|welche[rsn]?|warum|wie|qu['’]est|quoi|qui|quand"
    "|où|quel(?:le)?s?|pourquoi|comment|qué|quién(?:es)?|cuándo|dónde|cuál(?:es)?|cómo|cosa|chi|quando|dove|quale|come"
    "|onde"
)
_NEXT_QUESTION = re.compile(
    rf"[?？;]\s*(?=\w)|[,;]? (?:and|or|but|und|oder|et|ou|y|o|e)(?: also)? (?=(?:{_ASKS})\b)", re.IGNORECASE
)


def questions_in(question: str) -> tuple[str, ...]:
    """The questions that one asks, at most three, where it asks several; none where it asks one."""
    asked = [part.strip(" ?？.") for part in _NEXT_QUESTION.split(question)]
    telling = tuple(part for part in asked if is_telling(part))[:MOST_QUESTIONS]
    return telling if len(telling) > 1 else ()


# From candidates to hits: words and meaning as one score, bounded factors, replacements, near-duplicates, and a
# threshold. Pure.


@dataclass(frozen=True, slots=True)
class Weights:
    """The numbers that the order of hits depends on. `bench.py memory` prints the effect of each on paraphrases and on
    dialogue: words alone fail on the one, meaning alone on the other.
    """

    words: float = 0.5  # of the words against the meaning
    context: float = CONTEXT_WEIGHT  # of a word in the exchanges before, as of their meaning in the vectors
    period: float = 0.2  # for exchanges from the time named in the question
    # The best one has to stand out: by this distance from zero, and from this share of the crowd's score.
    stands_out: float = 0.11
    crowd_share: float = 0.75
    recency: float = 0.02  # how far each factor goes at most, both ways
    critic: float = 0.06
    rating: float = 0.10


WEIGHTS = Weights()
MAX_FACTOR = 0.20
CROWD = 30  # the crowd's score is that of the 30th: in a large memory, some text is close to any question
RELATED = 0.3  # the score of a cosine at the embedder's `relevance_floor`; that of 1 is 1
HALF_LIFE_SECONDS = 30 * 24 * 3600.0
DUPLICATE = 0.9  # share of common words above which two exchanges have equal content


@dataclass(frozen=True, slots=True)
class Candidate:
    """An engram that was found by its words, by its vector, by its time, or as the successor of one that was.

    `coverage` is how much of the question's words it has, 1 for all, `context` how much only the exchanges before it
    have; `cosine` is None where it has no vector, or the question has none.
    """

    engram: Engram
    coverage: float = 0.0
    context: float = 0.0
    cosine: float | None = None
    in_period: bool = False


@dataclass(frozen=True, slots=True)
class Factors:
    """The factors of an engram's score: 1 plus these, together within ±0.2."""

    recency: float
    critic: float
    rating: float

    @property
    def product(self) -> float:
        """The multiplier."""
        return 1 + max(-MAX_FACTOR, min(MAX_FACTOR, self.recency + self.critic + self.rating))


@dataclass(frozen=True, slots=True)
class EngramHit:
    """An engram that answers a question, and the parts of its rank.

    `score` is `fused` times the factors; `fused` is made of `words` and `meaning`, each up to 1, with a bonus for one
    `in_period`. `threshold` is what the best one had to reach without that bonus. `folded` are older engrams with equal
    content; `successor_of` is the found engram that this one has superseded; `outdated` are its statements that no
    longer hold.
    """

    engram: Engram
    score: float
    fused: float
    factors: Factors
    words: float
    meaning: float
    cosine: float | None = None
    in_period: bool = False
    threshold: float = 0.0
    folded: tuple[str, ...] = ()
    successor_of: str | None = None
    outdated: tuple[Outdated, ...] = ()

    @property
    def parts(self) -> dict[str, float]:
        """The numbers that the score is made of, by name."""
        made = {"words": self.words, "meaning": self.meaning, "fused": self.fused, "threshold": self.threshold,
                "in_period": float(self.in_period), **asdict(self.factors)}  # fmt: skip
        return {name: round(value, 6) for name, value in made.items()}


@dataclass(frozen=True, slots=True)
class Ranked:
    """The best hits, best first. If nothing is relevant there are none, only the `nearest` ones."""

    hits: tuple[EngramHit, ...] = ()
    nearest: tuple[EngramHit, ...] = ()


def rank(
    candidates: Sequence[Candidate],
    *,
    now: float,
    relevance_floor: float,
    limit: int,
    weights: Weights = WEIGHTS,
    least_words: float = 0.0,
) -> Ranked:
    """The best `limit` candidates as hits, of those with that share of the question's words at least. `relevance_floor`
    is the embedder's.
    """
    scale = _Scale(weights, relevance_floor, now)
    relevances = [scale.relevance(candidate) for candidate in candidates]
    crowd = sorted(relevances, reverse=True)[CROWD - 1 : CROWD]
    threshold = weights.stands_out + sum(weights.crowd_share * reached for reached in crowd)
    chosen = [each for each in zip(candidates, relevances, strict=True) if scale.words(each[0]) >= least_words]
    hits = [scale.hit(*each, threshold) for each in chosen]
    hits.sort(key=lambda hit: (-hit.score, -hit.engram.asked_at, hit.engram.engram_id))
    if max(relevances, default=0.0) < threshold:
        return Ranked(nearest=tuple(hits[:limit]))
    relevant = [hit for hit in hits if hit.fused >= weights.stands_out]
    made = {hit.engram.engram_id: hit for hit in hits}
    return Ranked(tuple(_folded(_successors_first(relevant, made), limit)))


@dataclass(frozen=True, slots=True)
class _Scale:
    weights: Weights
    relevance_floor: float
    now: float

    def relevance(self, candidate: Candidate) -> float:
        """Return a candidate's relevance to the question, without its age."""
        words = self.words(candidate)
        return self.weights.words * words + (1 - self.weights.words) * self.meaning(candidate.cosine, words)

    def words(self, candidate: Candidate) -> float:
        return min(1.0, candidate.coverage + self.weights.context * candidate.context)

    def meaning(self, cosine: float | None, words: float) -> float:
        """Return a cosine on a scale that is the same for all models. Without a vector the score of the words
        is used.
        """
        if cosine is None:
            return words
        return max(0.0, 1 - (1 - cosine) * (1 - RELATED) / (1 - min(self.relevance_floor, 0.99)))

    def hit(self, candidate: Candidate, relevance: float, threshold: float) -> EngramHit:
        base = relevance + self.weights.period * candidate.in_period
        adjusted, words = factors(candidate.engram, self.now, self.weights), self.words(candidate)
        meaning = self.meaning(candidate.cosine, words)
        return EngramHit(candidate.engram, base * adjusted.product, base, adjusted, words, meaning, candidate.cosine,
                         candidate.in_period, threshold)  # fmt: skip


def factors(engram: Engram, now: float, weights: Weights = WEIGHTS) -> Factors:
    """Return the factors of an engram that are independent of the question. The effect of age decreases, and is
    limited.
    """
    age = max(0.0, now - engram.asked_at)
    return Factors(
        recency=weights.recency * (2 * 0.5 ** (age / HALF_LIFE_SECONDS) - 1),
        critic=0.0 if engram.score is None else weights.critic * (engram.score - 3) / 2,
        rating=weights.rating * (engram.sentiment or 0),
    )


def _successors_first(hits: Sequence[EngramHit], known: Mapping[str, EngramHit]) -> list[EngramHit]:
    """Place each engram right before the one that it has superseded, relevant by itself or not."""
    ordered: dict[str, EngramHit] = {}
    for hit in hits:
        latest = _latest(hit.engram.engram_id, known)
        if latest != hit.engram.engram_id and latest not in ordered:
            score = max(known[latest].score, hit.score)
            ordered[latest] = replace(known[latest], score=score, successor_of=hit.engram.engram_id)
        ordered.setdefault(hit.engram.engram_id, hit)
    return list(ordered.values())


def _latest(engram_id: str, known: Mapping[str, EngramHit]) -> str:
    """The last of the known engrams that superseded one another; where they go round in a circle, the one asked for."""
    seen = [engram_id]
    while (after := known[seen[-1]].engram.superseded_by or "") in known:
        if after in seen:
            return engram_id
        seen.append(after)
    return seen[-1]


def _folded(hits: Iterable[EngramHit], limit: int) -> list[EngramHit]:
    """Return the best `limit`; of exchanges with equal content, the latest takes the place of the best."""
    kept: list[tuple[frozenset[str], EngramHit]] = []
    for hit in hits:
        words = content_words(f"{hit.engram.query} {hit.engram.answer}")
        same = next((number for number, (others, _) in enumerate(kept) if _are_equivalent(words, others)), None)
        if same is not None:
            kept[same] = (kept[same][0], _merged(kept[same][1], hit))
        elif len(kept) < limit:
            kept.append((words, hit))
    return [hit for _, hit in kept]


def _merged(better: EngramHit, other: EngramHit) -> EngramHit:
    latest, older = (other, better) if other.engram.asked_at > better.engram.asked_at else (better, other)
    folded = (*better.folded, *other.folded, older.engram.engram_id)
    return replace(latest, score=max(better.score, other.score), folded=folded)


def _are_equivalent(words: frozenset[str], others: frozenset[str]) -> bool:
    """Whether they are nearly the same words, with exactly the same numbers: those change in an update."""
    both = len(words) + len(others)
    if abs(len(words) - len(others)) > (1 - DUPLICATE) * both:
        return False  # as most are, without a look at the words
    common = len(words & others)
    if both - 2 * common > (1 - DUPLICATE) * (both - common):
        return False
    return not any(character.isdigit() for word in words ^ others for character in word)


# Which hits of a search are put before a model unasked: only exchanges that clearly fit the question.

LOOKED_AT = 8  # hits
COMPARED = CROWD + LOOKED_AT  # candidates by words, and by meaning
MOST = 3
WORDS, MEANING, FUSED = 0.4, 0.4, 0.6
LEAST_OF_OTHERS = 2  # words of a question in which the user does not speak of themselves, as in "What is a dentist?"
CLOSE = 0.55  # of meaning; the fused score need not be higher then
ABOVE_CROWD = 0.25  # of the fused score, above the one that a search needs to find anything
OF_BEST = 0.9  # of the best one's score
WORDS_ALONE, LEAST_WORDS = 0.9, 3  # where meaning is not compared: this share of the question's words, of so many


def clear(
    db: sqlite3.Connection, words: frozenset[str], hits: Iterable[EngramHit], limit: int
) -> tuple[EngramHit, ...]:
    """Return the exchanges that clearly fit a question with these words, best first, at most three. None of them is a
    note, none contains a statement that no longer holds, and none only asks what is asked now, or was not answered.
    """
    clear = explained(db, (hit for hit in hits if _is_clear(hit, len(words)) and _tells(hit.engram, words)))
    holding = [hit for hit in clear if not hit.outdated]
    return tuple(hit for hit in holding[: min(limit, MOST)] if hit.score >= OF_BEST * holding[0].score)


def may_be_clear(
    db: sqlite3.Connection,
    asked: EngramQuestion,
    words: frozenset[str],
    coverages: Coverages,
    weights: Weights = WEIGHTS,
) -> bool:
    """Whether any exchange can be clear, whatever the question means: some has enough of its words, and tells more than
    they do. Where none does, as for most questions about something new, the meaning need not be compared."""
    if asked.is_only_of_time:
        return True
    shares = ((number, *coverages.of(number)) for number in {*coverages.own, *coverages.before})
    numbers = [number for number, own, before in shares if own + weights.context * before >= WORDS]
    sql = "SELECT * FROM engrams WHERE number IN (SELECT value FROM json_each(?))"
    rows = db.execute(sql, (json.dumps(numbers),)) if numbers else ()
    return any(not asked.leaves_out(row) and _tells(stored_engram(row), words) for row in rows)


def words_may_decide(words: frozenset[str], coverages: Coverages, weights: Weights = WEIGHTS) -> bool:
    """Whether an exchange can be clear by words alone: the question has enough of them, and some engram nearly all."""
    shares = (coverages.of(number) for number in {*coverages.own, *coverages.before})
    is_covered = any(own + weights.context * before >= WORDS_ALONE for own, before in shares)
    return is_covered and len(words) >= LEAST_WORDS


def _is_clear(hit: EngramHit, words: int) -> bool:
    is_close = hit.cosine is not None and hit.meaning >= CLOSE
    stands_out = hit.fused >= max(CLOSE if is_close else FUSED, hit.threshold + ABOVE_CROWD)
    if hit.cosine is None:
        return stands_out and words >= LEAST_WORDS and hit.words >= WORDS_ALONE
    return stands_out and hit.words >= WORDS and hit.meaning >= MEANING


def _tells(engram: Engram, asked: frozenset[str]) -> bool:
    """Whether an exchange holds and can tell more than a question with these words: the user has said more than they
    ask, and has not only asked what could not be answered. A note is none.
    """
    if engram.note_of is not None or engram.superseded_by is not None:
        return False
    says_more = not telling_words(engram.query) <= asked
    return says_more and not (engram.query.rstrip().endswith(("?", "？")) and _NOT_KNOWN.match(engram.answer))


_NOT_KNOWN = re.compile(
    r"[^.!?。]{0,60}(?:\b(?:(?:do not|don['’]t|cannot|can['’]t) (?:know|have|tell|find|access)|not sure"
    r"|no (?:information|record)|(?:have not|haven['’]t) told|weiß (?:ich )?(?:es |das |leider )*nicht"
    r"|keine (?:information|angabe)|ne sais pas|pas d['’]information|no (?:lo )?sé|no tengo información"
    r"|non (?:lo )?so|não sei|weet (?:ik )?(?:het )?niet)\b|не знаю|不知道|[分わ]かりません)",
    re.IGNORECASE,
)


CANDIDATES = 60  # by words, by meaning and by time, each
_IN_PERIOD = 1_000  # the latest of a period that are looked at


@dataclass(frozen=True, slots=True)
class Found:
    """The result of a search, best first; if nothing was relevant, `nearest` are the closest ones. `degraded` are
    sentences for a person on the parts that could not be searched.
    """

    hits: tuple[EngramHit, ...]
    degraded: tuple[str, ...] = ()
    nearest: tuple[EngramHit, ...] = ()


def together(whole: Found, parts: Sequence[Found], limit: int) -> Found:
    """Return the hits of a question and of its parts alternately, each engram once."""
    lists = [whole.hits[:_OF_WHOLE], *(part.hits for part in parts), whole.hits[_OF_WHOLE:]]
    in_turn = chain.from_iterable(zip_longest(*lists[:-1]))
    hits = {hit.engram.engram_id: hit for hit in (*in_turn, *lists[-1]) if hit is not None}
    degraded = dict.fromkeys(reason for found in (whole, *parts) for reason in found.degraded)
    return Found(tuple(hits.values())[:limit], tuple(degraded), whole.nearest)


@dataclass(frozen=True, slots=True)
class EngramQuestion:
    """A question as it is searched for: the time that it names, if any, and the remaining words."""

    user_id: str
    words: str
    period: NamedTime | None
    not_session: str | None  # the one whose engrams are left out
    not_since: float | None  # seconds since 1970; those from then on, if it is given

    @classmethod
    def of(
        cls, user_id: str, question: str, now: float, not_session: str | None = None, not_since: float | None = None
    ) -> Self:
        """`now` in seconds since 1970."""
        period = named_time(question, now)
        spoken = re.escape(period.spoken) if period else ""
        words = re.sub(spoken, " ", question, flags=re.IGNORECASE) if spoken else question
        return cls(user_id, words, period, not_session, not_since)

    def leaves_out(self, row: sqlite3.Row) -> bool:
        """Whether the one that asks knows that engram."""
        is_known = self.not_since is None or row["asked_at"] >= self.not_since
        return row["session_id"] == self.not_session and is_known

    @property
    def is_only_of_time(self) -> bool:
        """Whether everything from that time is wanted, as in "What did we talk about last week?"."""
        return self.period is not None and not is_telling(self.words)


def candidates(
    db: sqlite3.Connection,
    asked: EngramQuestion,
    coverages: Coverages,
    keys: Sequence[str],
    vector: Vector | None,
    count: int = CANDIDATES,
) -> list[Candidate]:
    """Return the engrams found by words, by vector or by time, `count` by each, and those that superseded them."""
    then = _numbers_in(db, asked.user_id, asked.period) if asked.period else []
    chosen = {*coverages.best(count), *coverages.among(then).best(count)}
    cosines = {} if vector is None else vectors.cosines(db, list(chosen), keys, vector)
    in_period = set(then)
    made = [
        _candidate(row, coverages, cosines, asked, in_period)
        for row in _rows(db, "number", list({*chosen, *cosines}))
        if row["user_id"] == asked.user_id and not asked.leaves_out(row) and not _is_past_note(row)
    ]
    return [*made, *_successors(db, made)]


def _is_past_note(row: sqlite3.Row) -> bool:
    return row["note_of"] is not None and row["superseded_by"] is not None


def _candidate(
    row: sqlite3.Row,
    coverages: Coverages,
    cosines: Mapping[int, float],
    asked: EngramQuestion,
    in_period: Container[int],
) -> Candidate:
    coverage, context = coverages.of(row["number"])
    is_then = row["number"] in in_period
    if is_then and asked.is_only_of_time:
        coverage = 1.0
    return Candidate(stored_engram(row), coverage, context, cosines.get(row["number"]), is_then)


def _numbers_in(db: sqlite3.Connection, user_id: str, period: NamedTime) -> list[int]:
    """The latest first."""
    sql = (
        "SELECT number FROM engrams WHERE user_id = ? AND asked_at >= ? AND asked_at < ? AND searchable"
        f" ORDER BY asked_at DESC LIMIT {_IN_PERIOD}"
    )
    return [number for (number,) in db.execute(sql, (user_id, period.begins, period.ends))]


def explained(db: sqlite3.Connection, hits: Iterable[EngramHit]) -> tuple[EngramHit, ...]:
    """Return the hits, each with its own and its recalled statements that no longer hold."""
    return tuple(replace(hit, outdated=_outdated(db, hit.engram)) for hit in hits)


def _outdated(db: sqlite3.Connection, engram: Engram) -> tuple[Outdated, ...]:
    sources = (engram.engram_id, *engram.recalled)
    return tuple(dict.fromkeys(old for source in sources for old in facts.outdated(db, source)))


def _successors(db: sqlite3.Connection, made: Sequence[Candidate]) -> list[Candidate]:
    known = {candidate.engram.engram_id for candidate in made}
    latest, successors = [candidate.engram for candidate in made], list[Candidate]()
    while wanted := {engram.superseded_by for engram in latest if engram.superseded_by} - known:
        known |= wanted
        latest = [stored_engram(row) for row in _rows(db, "engram_id", sorted(wanted))]
        successors += map(Candidate, latest)
    return successors


def _rows(db: sqlite3.Connection, column: str, values: Sequence[int] | Sequence[str]) -> list[sqlite3.Row]:
    marks = ",".join("?" * len(values))
    return db.execute(f"SELECT * FROM engrams WHERE {column} IN ({marks})", tuple(values)).fetchall()
