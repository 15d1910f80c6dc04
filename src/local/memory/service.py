"""The memory of exchanges: stores each one once, finds it by words and by meaning, and deletes it permanently."""

from __future__ import annotations

import asyncio
import fcntl
import json
import logging
import math
import re
import sqlite3
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self, TypeAlias

from local.core.database import connect_read_only, naming_damage, open_patiently, store_failure
from local.core.errors import AlreadyRunning, IndexBroken, ModelError, PinRefused, StoreDamaged
from local.core.prompt_lines import MAX_CHARACTERS, fits, plain
from local.core.words import telling_words
from local.memory import facts, record, search, vectors
from local.memory import facts as succession
from local.memory import search as recalling
from local.memory.embeddings import Embedder
from local.memory.facts import Classified, FactFinding, is_of_health, stored_fact
from local.memory.messages import UNCONFIRMED, OnlySome, engram_id
from local.memory.question_kinds import QuestionKinds
from local.memory.record import Deletion, EditOutcome, HandEdit, KeptEntry, NoteDraft
from local.memory.search import CANDIDATES, WEIGHTS, Candidate, EngramQuestion, Found, Ranked, Weights, rank
from local.memory.statements import by_hand, speaks_of_self
from local.memory.store import (
    FILE_NAME,
    MIGRATIONS,
    AnswerRating,
    Change,
    Coverages,
    Engram,
    EngramDraft,
    EngramStore,
    Ingested,
    LexicalSearch,
    StatedFact,
    Statement,
    own_words,
    slot_key,
    stored_engram,
)
from local.memory.vectors import NOT_READY, NOTHING_YET, PARTLY_READY, IndexerState, VectorIndexer

if TYPE_CHECKING:
    from local.memory.vectors import Vectors


# Whether a user's ratings bear out the critic's scores: as long as they do not, the scores move nothing.

LEAST_RATED = 20  # answers with a score and a rating; with fewer, the interval is too wide
RESAMPLES = 2_000
SURE = 0.95  # of the interval


@dataclass(frozen=True, slots=True)
class CriticAgreement:
    """The agreement of critic and user, over `rated` answers that have a score and a rating.

    `auc` is the probability that a liked answer has a higher score than a disliked one, equal scores counting one half:
    0.5 is chance. `low` and `high` are the ends of its bootstrap interval (Efron 1979, percentiles). All of them are
    0.5 without data.
    """

    rated: int
    auc: float = 0.5
    low: float = 0.5
    high: float = 0.5

    @property
    def is_better_than_chance(self) -> bool:
        """Whether the whole interval lies above chance."""
        return self.low > 0.5


def critic_agreement(db: sqlite3.Connection, user_id: str) -> CriticAgreement:
    """The agreement about a user's answers in store."""
    sql = (
        "SELECT round(score) AS score, sentiment FROM engrams INDEXED BY engrams_rated"
        " WHERE user_id = ? AND sentiment IS NOT NULL AND sentiment != 0 AND score IS NOT NULL"
    )
    counts = Counter((int(row["score"]), int(row["sentiment"])) for row in db.execute(sql, (user_id,)))
    return of_counts(tuple(sorted(counts.items())))


def borne_out(db: sqlite3.Connection, user_id: str, weights: Weights) -> Weights:
    """The weights, the critic's 0 as long as its agreement with the user is not better than chance."""
    return weights if critic_agreement(db, user_id).is_better_than_chance else replace(weights, critic=0.0)


@lru_cache(maxsize=64)
def of_counts(counts: tuple[tuple[tuple[int, int], int], ...]) -> CriticAgreement:
    """The agreement about so many answers with each score, 1 to 5, and rating, 1 or -1; always the same for the same
    counts."""
    rated = sum(number for _, number in counts)
    if rated < LEAST_RATED:
        return CriticAgreement(rated)
    import numpy as np  # the first search loads it in any case

    cells = np.zeros((2, 5))
    for (score, rating), number in counts:
        cells[int(rating > 0), score - 1] += number
    drawn = np.random.default_rng(rated).multinomial(rated, cells.ravel() / rated, size=RESAMPLES)
    disliked, liked = np.moveaxis(np.concatenate([cells[None], drawn.reshape(-1, 2, 5)]), 1, 0)
    below = np.cumsum(disliked, axis=1) - disliked / 2  # per score: those below, and half of those equal
    pairs = liked.sum(axis=1) * disliked.sum(axis=1)
    aucs = np.divide((liked * below).sum(axis=1), pairs, out=np.full(len(pairs), 0.5), where=pairs > 0)
    low, high = np.quantile(aucs[1:], [(1 - SURE) / 2, (1 + SURE) / 2])
    return CriticAgreement(rated, float(aucs[0]), float(low), float(high))


# Everything that is kept of a user, as pages of lines of JSON.

PAGE_BYTES = 48_000  # of a page of several lines: a larger one does not fit into a frame and travels in a file
_PAGE_LINES = 200
_CURSOR = re.compile(r"(engram|fact):(\d{1,18})")
Lines = Iterator[tuple[int, str]]  # with their numbers


def page(db: sqlite3.Connection, user_id: str, cursor: str) -> tuple[list[str], str]:
    """Return a page and the cursor of the next one, empty after the last. Raises `ValueError` for an invalid cursor."""
    found = _CURSOR.fullmatch(cursor or "engram:0")
    if found is None:
        raise ValueError(f"{cursor[:80]!r} is no cursor of an export; begin without one")
    kind, after = found[1], int(found[2])
    lines, last = _cut((_engrams if kind == "engram" else _facts)(db, user_id, after))
    if lines:
        return lines, f"{kind}:{last}"
    return ([], "") if kind == "fact" else page(db, user_id, "fact:0")


def _cut(numbered: Iterable[tuple[int, str]]) -> tuple[list[str], int]:
    lines, last, room = list[str](), 0, PAGE_BYTES
    for number, line in numbered:
        room -= len(line.encode(errors="replace"))
        if room < 0 and lines:
            break
        lines.append(line)
        last = number
    return lines, last


def _engrams(db: sqlite3.Connection, user_id: str, after: int) -> Lines:
    sql = "SELECT * FROM engrams WHERE user_id = ? AND number > ? ORDER BY number LIMIT ?"
    for row in db.execute(sql, (user_id, after, _PAGE_LINES)).fetchall():
        engram = stored_engram(row)
        changes = [asdict(change) for change in record.changes(db, user_id, engram.engram_id)]
        yield row["number"], _line({"kind": "engram", **asdict(engram), "changes": changes})


def _facts(db: sqlite3.Connection, user_id: str, after: int) -> Lines:
    sql = (
        "SELECT facts.*, engram_id FROM facts JOIN engrams USING (number)"
        " WHERE facts.user_id = ? AND fact_id > ? ORDER BY fact_id LIMIT ?"
    )
    for row in db.execute(sql, (user_id, after, _PAGE_LINES)).fetchall():
        yield row["fact_id"], _line({"kind": "fact", **asdict(stored_fact(row))})


def _line(record: dict[str, object]) -> str:
    return json.dumps(record, ensure_ascii=False)


# A user's lines in every prompt: the current facts, the pinned exchanges, and unconfirmed facts about health.

MOST_UNCONFIRMED_TOLD = 6


@dataclass(frozen=True, slots=True)
class ToldLines:
    """The lines about a user in the order of the prompt. `pinned` are those of them that come from pins, in the order
    of pinning; `left_out` are the pinned engrams without room for their lines.
    """

    lines: tuple[str, ...] = ()
    pinned: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def pin(db: sqlite3.Connection, user_id: str, engram_id: str, now: float) -> None:
    """Pin an engram. Raises `NotOnRecord`, and `PinRefused` if it would have no room in the prompt, or would displace
    another pin.
    """
    before = of_user(db, user_id, now)
    record.pin(db, user_id, engram_id, 1, now)
    lines = _lines(db, record.engram(db, user_id, engram_id), facts.current(db, user_id), _day(now))
    if not lines:
        raise PinRefused("what the user said there holds no more, or none of it is in the user's own words")
    if not {*of_user(db, user_id, now).left_out} <= {*before.left_out} - {engram_id}:
        health = [line for line in before.lines if line in _health_lines(facts.current(db, user_id), _day(now))]
        kept = list(dict.fromkeys([*health, *before.pinned]))
        new = [line for line in lines if line not in kept]
        used = f"health facts and pins take {_size(kept)} of {MAX_CHARACTERS:,} characters"
        raise PinRefused(f"no room: {used}, and this pin needs {_size(new)} more; unpin something first")


def of_user(db: sqlite3.Connection, user_id: str, now: float) -> ToldLines:
    """Return a user's lines in prompts; without facts that ended before today, unless they are about health. A pinned
    exchange is shown as its current facts, else as the user's question there; never as an answer. Unconfirmed facts
    about health come after what is confirmed or pinned of it, before the other facts.
    """
    today = _day(now)
    holding = (
        fact
        for fact in facts.current(db, user_id)
        if not fact.holds_until or fact.holds_until >= today or is_of_health(fact.slot, fact.value)
    )
    current = sorted(holding, key=lambda fact: (-fact.stated_at, fact.fact_id))
    pins = [(engram.engram_id, _lines(db, engram, current, today)) for engram in record.pinned(db, user_id)]
    unconfirmed = [_pinned_line(fact, today) for fact in _unconfirmed_of_health(db, user_id, current)]
    others = [*unconfirmed, *(_pinned_line(fact, today) for fact in current)]
    return fitting_lines(_health_lines(current, today), pins, others)


def _unconfirmed_of_health(db: sqlite3.Connection, user_id: str, current: Sequence[StatedFact]) -> Iterator[StatedFact]:
    """The latest unconfirmed facts about health, without those that say what another one says, too."""
    of_health = [fact for fact in facts.unconfirmed(db, user_id) if is_of_health(fact.slot, fact.value)]
    known = {(slot_key(fact.slot), fact.value.casefold()) for fact in current}
    for fact in of_health[:MOST_UNCONFIRMED_TOLD]:
        is_said = (slot_key(fact.slot), fact.value.casefold()) in known
        if not is_said and not any(facts.is_part(fact, other) for other in of_health):
            yield fact


def fitting_lines(health: Iterable[str], pins: Sequence[tuple[str, Sequence[str]]], others: Iterable[str]) -> ToldLines:
    """The lines that have room. Pinned engrams are given with their lines in the order in which they were pinned; the
    latest have their place first, each with all of its lines or none."""
    first = _fitting((), health)
    kept: tuple[str, ...] = ()
    left_out: list[str] = []
    for pinned_id, lines in reversed(pins):
        together = tuple(dict.fromkeys((*lines, *kept)))
        if fits(tuple(dict.fromkeys((*first, *together)))):
            kept = together
        else:
            left_out.append(pinned_id)
    lines = _fitting(tuple(dict.fromkeys((*first, *kept))), others)
    return ToldLines(lines, kept, tuple(reversed(left_out)))


def _fitting(kept: tuple[str, ...], lines: Iterable[str]) -> tuple[str, ...]:
    """Return what is kept, and those of the lines that fit beside it and the previous ones, each once."""
    for line in lines:
        if line not in kept and fits((*kept, line)):
            kept = (*kept, line)
    return kept


def _health_lines(current: Iterable[StatedFact], today: str) -> list[str]:
    return [_pinned_line(fact, today) for fact in current if is_of_health(fact.slot, fact.value)]


def _lines(db: sqlite3.Connection, engram: Engram, current: Iterable[StatedFact], today: str) -> list[str]:
    stated = {fact.slot for fact in facts.of_engram(db, engram.engram_id) if fact.confirmed}
    if stated:
        return [_pinned_line(fact, today) for fact in current if fact.slot in stated]
    return list(filter(None, [plain(own_words(engram.query))]))


def _pinned_line(fact: StatedFact, today: str) -> str:
    notes = (
        "" if fact.confirmed else UNCONFIRMED,
        "" if fact.certain else "not certain",
        *facts.days_told(fact.holds_from, fact.holds_until, today),
        f"said {_day(fact.stated_at)}{'; may have changed since' if fact.questioned else ''}",
    )
    return plain(f"{fact.slot}: {fact.value}", f" ({', '.join(filter(None, notes))})")


def _day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).date().isoformat()


def _size(lines: Sequence[str]) -> str:
    return f"{sum(map(len, lines)):,}"


# The state of the memory: its index, the pending work, and the soundness of its files.


@dataclass(frozen=True, slots=True)
class MemoryStatus:
    """The state of the memory: of its vector index, its problem, and its model. The numbers of engrams that wait for a
    vector and for a classification, of unreadable replies, and of unfinished deletions.
    """

    index: IndexerState
    trouble: str
    model: str
    pending: int
    unclassified: int
    unparsed: int
    deletions: int


def counts(db: sqlite3.Connection) -> tuple[int, int, int, int]:
    """The numbers of a `MemoryStatus`, in order."""
    unclassified, unparsed, deletions = db.execute(
        "SELECT (SELECT count(*) FROM engrams WHERE classified = 0 AND searchable),"
        " (SELECT count(*) FROM engrams WHERE classified = 2 AND searchable), (SELECT count(*) FROM deletions)"
    ).fetchone()
    return vectors.count_pending(db), unclassified, unparsed, deletions


@dataclass(frozen=True, slots=True)
class Condition:
    """The condition of a sound store: how many engrams there are, and how many of them wait for a vector."""

    engrams: int
    pending: int


def examine(directory: Path) -> Condition | None:
    """The condition of a sound store; None where none was begun.

    Reads every page. Raises `StoreDamaged`, and `StoreFailed` for a file that cannot be read for another reason.
    """
    path = directory / FILE_NAME
    if not path.exists():
        return None
    try:
        with connect_read_only(path) as db, naming_damage():
            db.row_factory = sqlite3.Row
            db.execute("BEGIN")  # one snapshot for all that follows
            return _condition(db)
    except StoreDamaged as error:
        raise StoreDamaged(f"{path} is damaged: {error}") from error
    except (sqlite3.Error, OSError) as error:
        raise store_failure(path, error) from error


def _condition(db: sqlite3.Connection) -> Condition:
    (version,) = db.execute("PRAGMA user_version").fetchone()
    if not 1 <= version <= len(MIGRATIONS):
        raise StoreDamaged(f"its schema version is {version}; this program knows 1 to {len(MIGRATIONS)}")
    (verdict,) = db.execute("PRAGMA quick_check(1)").fetchone()
    if verdict != "ok":
        raise StoreDamaged(f"SQLite's check says: {verdict}")
    (engrams,) = db.execute("SELECT count(*) FROM engrams").fetchone()
    return Condition(engrams, vectors.count_pending(db))


log = logging.getLogger(__name__)
EMBED_SECONDS = 2.0  # a question's embedding is not waited for any longer; words answer alone then
RECALL_SECONDS = 0.08  # the same where a turn waits
PARTS_SECONDS = 1.0  # for the other parts of a question
EVER = math.inf
# What was found by meaning: keys, the question's vector, and what could not be searched.
Meant: TypeAlias = "tuple[list[str], Vectors | None, tuple[str, ...]]"


class EngramService:
    """The memory of exchanges, notes and facts in a directory. Use as `async with`; it owns the directory meanwhile,
    and a second one on it is `AlreadyRunning`.

    Every coroutine that changes something returns after its commit. Raises `StoreFailed`, `StoreFull` where the disk is
    full, `NotOnRecord` for an engram that the user does not have.
    """

    def __init__(
        self, directory: Path, embedder: Embedder | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        """`clock` returns seconds since 1970. Without an embedder only words are searched until `use` sets one."""
        self._directory, self._clock, self._store = directory, clock, EngramStore(directory)
        self._indexer = VectorIndexer(self._store, directory / "vectors")
        if embedder is not None:
            self.use(embedder)
        self._lexical, self._weights = LexicalSearch(), WEIGHTS
        self._comparisons = set[asyncio.Task[tuple[list[str], Any, str]]]()  # by meaning, that are under way
        self._kinds: QuestionKinds | None = None

    async def __aenter__(self) -> Self:
        self._lock = await open_patiently(lambda: _locked(self._directory))
        try:
            await self._store.__aenter__()
        except BaseException:
            self._lock.close()
            raise
        self._indexing = asyncio.create_task(self._indexer.run(), name="vector indexer")
        self._indexing.add_done_callback(_log_end)
        return self

    async def __aexit__(self, *error: object) -> None:
        for task in (background := [self._indexing, *self._comparisons]):
            task.cancel()
        await asyncio.wait(background)
        await self._store.__aexit__(*error)
        self._lock.close()

    def use(self, embedder: Embedder) -> None:
        """Search by meaning with this model. Vectors of another model are computed again."""
        self._indexer.use(embedder)

    def embed_when(self, moment: Callable[[], Awaitable[object]]) -> None:
        """Begin with new exchanges when the coroutine `moment` returns, instead of at once."""
        self._indexer.moment = moment

    async def embedded_by(self) -> str:
        """Return the name of the model that has made the stored vectors; empty if there are none."""
        return await self._store.read(vectors.model)

    async def ingest(self, exchange: EngramDraft, findings: Sequence[FactFinding] = ()) -> Ingested:
        """Store an exchange, once, with the facts that were found in it; nothing of an incognito session. Its words are
        found at once, its meaning soon."""
        if exchange.incognito:
            return Ingested.NOT_KEPT
        ingested = await self._store.write(lambda db: record.ingest(db, exchange, findings))
        if ingested in (Ingested.NEW, Ingested.RATED):
            self._indexer.wake()
        return ingested

    async def search(
        self,
        user_id: str,
        question: str,
        *,
        limit: int = 5,
        not_session: str | None = None,
        not_since: float | None = None,
    ) -> Found:
        """Return a user's engrams that answer a question, best first, none if nothing is relevant. Those of
        `not_session` are left out, as they are in the asking prompt: all, or those since a time in seconds since 1970.
        A question with several parts is searched for as a whole and by part, if that takes no more than
        `PARTS_SECONDS`.
        """
        now = self._clock()

        async def find(text: str, seconds: float) -> Found:
            asked = EngramQuestion.of(user_id, text, now, not_session, not_since)
            return await self._find(asked, text, limit, seconds)

        whole = await find(question, EMBED_SECONDS)
        parts = search.questions_in(question)
        if parts:
            with suppress(TimeoutError):
                async with asyncio.timeout(PARTS_SECONDS), asyncio.TaskGroup() as group:
                    finds = [group.create_task(find(part, PARTS_SECONDS)) for part in parts]
                return search.together(whole, [each.result() for each in finds], limit)
        return whole

    async def recall(
        self,
        user_id: str,
        question: str,
        *,
        limit: int = 3,
        not_session: str | None = None,
        seconds: float | None = None,
    ) -> Found:
        """Return a user's exchanges that clearly fit a question and contain no statement that no longer holds, best
        first; often none. The words of the question are searched first. Its meaning is searched, for `seconds`, by
        default `RECALL_SECONDS`, at most, only if the words do not decide: embedding takes longer than all the rest.
        With 0 seconds it is not. See `recalling`.
        """
        asked, words = EngramQuestion.of(user_id, question, self._clock(), not_session), telling_words(question)
        if len(words) < recalling.LEAST_OF_OTHERS and not speaks_of_self(question):
            return Found(())

        def clear(db: sqlite3.Connection, coverages: Coverages, keys: Sequence[str], vector: Vectors | None) -> Found:
            together = search.candidates(db, asked, coverages, keys, vector, recalling.COMPARED)
            hits = self._rank(db, asked, together, recalling.LOOKED_AT, recalling.WORDS).hits
            return Found(recalling.clear(db, words, hits, limit))

        def by_words(db: sqlite3.Connection) -> Coverages | Found:
            coverages = self._lexical.search(db, user_id, asked.words)
            if not recalling.may_be_clear(db, asked, words, coverages, self._weights):
                return Found(())
            if not recalling.words_may_decide(words, coverages, self._weights):
                return coverages
            found = clear(db, coverages, (), None)
            return found if found.hits else coverages

        with self._indexer.searching():
            coverages = await self._store.read(by_words)
            if isinstance(coverages, Found):
                return coverages
            seconds = RECALL_SECONDS if seconds is None else seconds
            if not seconds:
                return Found(())
            keys, vector, degraded = await self._by_meaning(user_id, question, seconds)
            found = await self._store.read(lambda db: clear(db, coverages, keys[: recalling.COMPARED], vector))
            return replace(found, degraded=degraded)

    async def kinds_of(self, question: str) -> dict[str, float]:
        """Return a question's score for each tool that it may ask for, and for none: see `QuestionKinds`. Its vector is
        the one that a recall takes. Raises `ModelError` while no embedding model can be used.
        """
        embedder = self._indexer.embedder
        if embedder is None:
            raise ModelError("the embedding model is not chosen yet; try again", kind="unavailable")
        if self._kinds is None:
            self._kinds = QuestionKinds(embedder.embed_queries)
        with self._indexer.searching():
            return await self._kinds.scores(await self._indexer.question(question))

    async def _find(self, asked: EngramQuestion, question: str, limit: int, seconds: float) -> Found:
        """`seconds` is how long the search by meaning is waited for."""
        with self._indexer.searching():
            async with asyncio.TaskGroup() as group:
                by_words = group.create_task(self._by_words(asked.user_id, asked.words))
                by_meaning = group.create_task(self._by_meaning(asked.user_id, question, seconds))
            return await self._ranked(asked, by_words.result(), by_meaning.result(), limit)

    async def _ranked(self, asked: EngramQuestion, coverages: Coverages, meant: Meant, limit: int) -> Found:
        keys, vector, degraded = meant

        def answer(db: sqlite3.Connection) -> Found:
            ranked = self._rank(db, asked, search.candidates(db, asked, coverages, keys, vector), limit)
            return Found(search.explained(db, ranked.hits), degraded, ranked.nearest)

        return await self._store.read(answer)

    def _rank(
        self,
        db: sqlite3.Connection,
        asked: EngramQuestion,
        together: Sequence[Candidate],
        limit: int,
        least_words: float = 0.0,
    ) -> Ranked:
        weights = borne_out(db, asked.user_id, self._weights)
        floor = 0.0 if self._indexer.embedder is None else self._indexer.embedder.relevance_floor
        now = self._clock()
        return rank(together, now=now, relevance_floor=floor, limit=limit, weights=weights, least_words=least_words)

    async def get(self, user_id: str, engram_id: str) -> Engram:
        """An engram of a user's."""
        return await self._store.read(lambda db: record.engram(db, user_id, engram_id))

    async def recent(
        self,
        user_id: str,
        *,
        limit: int = 50,
        before: float = EVER,
        before_id: str = "",
        only: OnlySome | None = None,
    ) -> list[Engram]:
        """Engrams asked before a time, in seconds since 1970, the latest first; with the id of one that was asked then,
        those that come after it in this order. With `only` some of them."""
        return await self._store.read(lambda db: record.recent(db, user_id, limit, (before, before_id), only))

    async def pinned(self, user_id: str) -> list[Engram]:
        """Return the user's pinned engrams, in the order of pinning."""
        return await self._store.read(lambda db: record.pinned(db, user_id))

    async def changes(self, user_id: str, engram_id: str) -> list[Change]:
        """Return every change of an engram, oldest first."""
        return await self._store.read(lambda db: record.changes(db, user_id, engram_id))

    async def export(self, user_id: str, cursor: str = "") -> tuple[list[str], str]:
        """Return a page of all content of a user, and the cursor of the next one, empty after the last. See `export`.

        Raises `ValueError` for an invalid cursor.
        """
        return await self._store.read(lambda db: page(db, user_id, cursor))

    async def pin(self, user_id: str, engram_id: str) -> None:
        """Pin an engram. Raises `PinRefused` where the prompt has no room for it."""
        await self._store.write(lambda db: pin(db, user_id, engram_id, self._clock()))

    async def unpin(self, user_id: str, engram_id: str) -> None:
        """Take the pin out."""
        await self._store.write(lambda db: record.pin(db, user_id, engram_id, 0, self._clock()))

    async def grade(self, query_id: str, respondent_id: str, score: float | None) -> bool:
        """Store the critic's score, 1 to 5, None if it gave none; False if there is no such engram."""
        graded = engram_id(query_id, respondent_id)
        return await self._store.write_with_others(lambda db: record.grade(db, graded, score, self._clock()))

    async def compare(self, query_id: str, respondent_id: str, winner: str) -> bool:
        """Store whose answer won a comparison, or "tie"; False if there is no such engram."""
        compared = engram_id(query_id, respondent_id)
        return await self._store.write_with_others(lambda db: record.compare(db, compared, winner, self._clock()))

    async def rate(self, rating: AnswerRating) -> bool:
        """Note a user's rating of an answer, or keep it until that is stored: False then, and if a later one is
        known."""
        return await self._store.write(lambda db: record.rate(db, rating, self._clock()))

    async def early_rating(self, query_id: str, respondent_id: str) -> AnswerRating | None:
        """The rating that came before its answer, until it is settled."""
        return await self._store.read(lambda db: record.find(db, query_id, respondent_id))

    async def settle_rating(self, query_id: str, respondent_id: str) -> None:
        """The answer has come, and its rating was announced."""
        await self._store.write(lambda db: record.settle(db, query_id, respondent_id))

    async def keep_note(self, draft: NoteDraft) -> Ingested:
        """Store a note of the assistant's once, or withdraw the one that an empty draft names."""
        ingested = await self._store.write(lambda db: record.keep_notes(db, draft))
        if ingested is Ingested.NEW:
            self._indexer.wake()
        return ingested

    async def notes(self, user_id: str, *, history: bool = False) -> list[Engram]:
        """A user's notes that hold, with `history` also the others, the latest first."""
        return await self._store.read(lambda db: (record.all_notes if history else record.current)(db, user_id))

    async def restore_note(self, user_id: str, note_id: str) -> None:
        """Have a note hold again that was replaced or withdrawn. Raises `NotOnRecord` if the user has no such note."""
        await self._store.write(lambda db: record.restore(db, user_id, note_id))

    async def entries(self, user_id: str) -> list[KeptEntry]:
        """Return a user's current facts, then the current notes: the content of MEMORY.md."""
        return await self._store.read(lambda db: record.entries(db, user_id))

    async def compare_edits(self, user_id: str, edits: Sequence[HandEdit]) -> list[EditOutcome]:
        """The outcomes that edits of the list would have."""
        return await self._store.read(lambda db: record.compare_edit(db, user_id, edits))

    async def apply_edits(
        self, user_id: str, edits: Sequence[HandEdit], import_id: str, now: float
    ) -> list[EditOutcome]:
        """Apply all edits or none; returns their outcomes. `now` is in seconds since 1970."""
        outcomes = await self._store.write(lambda db: record.apply(db, user_id, edits, import_id, now))
        self._indexer.wake()
        return outcomes

    async def write_fact(
        self, user_id: str, fact_id: int | None, edit: HandEdit, import_id: str, now: float
    ) -> EditOutcome:
        """Return the effect of a fact that the user writes, in place of a named one or as a new one. Raises
        `NotOnRecord`, and `ValueError` for a text that is no fact.
        """
        outcome = await self._store.write(lambda db: record.write_fact(db, user_id, fact_id, edit, import_id, now))
        self._indexer.wake()
        return outcome

    async def unclassified(self, limit: int, *, newest_first: bool = False) -> list[Engram]:
        """The users' exchanges that no model has looked at yet: the oldest, or those of the newest conversation."""
        return await self._store.read(lambda db: succession.pending(db, limit, newest_first=newest_first))

    async def classify(self, classified_id: str, classified: Classified) -> list[StatedFact]:
        """Store a model's findings on an exchange, once, and return the facts in it.

        Raises `NotOnRecord` for an engram that has been deleted meanwhile.
        """
        return await self._store.write_with_others(lambda db: succession.note(db, classified_id, classified))

    async def supersede(self, statement: Statement) -> StatedFact:
        """Store a fact in place of those of its slot. Raises `UntrustedFact` if it is not in the user's words."""
        return await self._store.write(lambda db: succession.supersede(db, statement))

    async def contradict(self, statement: Statement) -> StatedFact:
        """Store a fact beside those of its slot, because it is unknown which holds. Raises `UntrustedFact`."""
        return await self._store.write(lambda db: succession.contradict(db, statement))

    async def facts(self, user_id: str) -> list[StatedFact]:
        """Return a user's current facts, by slot; see `StatedFact` for several of one slot."""
        return await self._store.read(lambda db: facts.current(db, user_id))

    async def fact_history(self, user_id: str) -> list[StatedFact]:
        """Everything a user stated, whether it holds or not, by slot, oldest first."""
        return await self._store.read(lambda db: facts.history(db, user_id))

    async def unconfirmed_facts(self, user_id: str) -> list[StatedFact]:
        """Return a user's unconfirmed facts, the latest first."""
        return await self._store.read(lambda db: facts.unconfirmed(db, user_id))

    async def confirm_fact(self, user_id: str, fact_id: int) -> StatedFact:
        """Confirm a fact, as if it had been confirmed when it was stated. Raises `NotOnRecord`."""

        def work(db: sqlite3.Connection) -> StatedFact:
            fact = facts.drop(db, user_id, fact_id)
            findings = by_hand(fact, facts.current(db, user_id))
            facts.apply(db, record.engram(db, user_id, fact.engram_id), findings)
            facts.settle(db, fact.engram_id, findings)
            same = (each for each in facts.of_engram(db, fact.engram_id) if each.value == fact.value)
            return next(same, fact)

        return await self._store.write(work)

    async def drop_fact(self, user_id: str, fact_id: int) -> StatedFact:
        """Remove an unconfirmed fact, and return it. Raises `NotOnRecord`."""
        return await self._store.write(lambda db: facts.drop(db, user_id, fact_id))

    async def facts_of(self, user_id: str, engram_id: str) -> list[StatedFact]:
        """Return the facts that the user stated in an exchange, whether they hold or not."""
        await self.get(user_id, engram_id)
        return await self._store.read(lambda db: facts.of_engram(db, engram_id))

    async def facts_in(self, engram_id: str) -> list[StatedFact]:
        """Return the same for any user; none if the engram is deleted."""
        return await self._store.read(lambda db: facts.of_engram(db, engram_id))

    async def context_lines(self, user_id: str) -> ToldLines:
        """Return the user's lines in every prompt; see `pinned`."""
        return await self._store.read(lambda db: of_user(db, user_id, self._clock()))

    async def users_with_context(self) -> list[str]:
        """The users who have a current fact or a pin."""
        return await self._store.read(record.users_with_context)

    async def delete(self, user_id: str, engram_id: str) -> None:
        """Delete the exchange of an engram from the store and every index, with all respondents' answers and facts. It
        stays deleted if it arrives again, and is among the `deletions` until `finish_deletion`.

        The last trace of its vector is removed in the background, see `settled`.
        """

        def work(db: sqlite3.Connection) -> None:
            record.delete(db, record.row_of(db, user_id, engram_id)["query_id"], self._clock())

        await self._store.erase(work)
        self._indexer.wake(has_deleted=True)

    async def delete_session(self, session_id: str) -> int:
        """Delete all exchanges of a session, of any user, as `delete` does; returns how many engrams there were."""
        count = await self._store.erase(lambda db: record.delete_session(db, session_id, self._clock()))
        self._indexer.wake(has_deleted=True)
        return count

    async def repeated_in(self, user_id: str, engram_id: str) -> tuple[str, ...]:
        """A user's engrams that had recalled this one, also one that is deleted by now, oldest first."""
        return await self._store.read(lambda db: record.repeated_in(db, user_id, engram_id))

    async def session_repeated_in(self, session_id: str) -> tuple[str, ...]:
        """The engrams in other sessions that had recalled something of this one, which is not deleted yet."""
        return await self._store.read(lambda db: record.session_repeated_in(db, session_id))

    async def deletions(self) -> list[Deletion]:
        """Return the deletions of which other participants are not notified yet."""
        return await self._store.read(record.unfinished)

    async def note_redacted(self, engram_id: str) -> None:
        """Note that the journal has redacted its messages of a deleted engram."""
        await self._store.write(lambda db: record.note_redacted(db, engram_id))

    async def finish_deletion(self, engram_id: str) -> None:
        """Note that every participant was notified of a deletion."""
        await self._store.write(lambda db: record.finish(db, engram_id))

    async def settled(self) -> None:
        """Wait until all that is stored can be found by its meaning and nothing deleted is in any file."""
        await self._indexer.settled()

    async def changes_of_status(self) -> AsyncIterator[MemoryStatus]:
        """Yield the memory's status, and again whenever it may have changed."""
        while True:
            self._store.changed.clear()
            yield await self.status()
            await self._store.changed.wait()

    async def status(self) -> MemoryStatus:
        """Return the memory's status."""
        pending, unclassified, unparsed, deletions = await self._store.read(counts)
        indexer = self._indexer
        model = "" if indexer.embedder is None else indexer.embedder.name
        return MemoryStatus(indexer.state, indexer.trouble, model, pending, unclassified, unparsed, deletions)

    async def _by_words(self, user_id: str, question: str) -> Coverages:
        return await self._store.read(lambda db: self._lexical.search(db, user_id, question))

    async def _by_meaning(self, user_id: str, question: str, seconds: float = EMBED_SECONDS) -> Meant:
        indexer, embedder = self._indexer, self._indexer.embedder
        if indexer.state is IndexerState.EMPTY:
            return [], None, (NOTHING_YET,)
        missing = () if indexer.state is IndexerState.READY else (indexer.trouble or NOT_READY,)
        if embedder is None or indexer.state in (IndexerState.STARTING, IndexerState.FAILED):
            return [], None, missing
        # A slower one continues for a while: the next search finds the model and the index loaded.
        comparison = asyncio.create_task(self._compared(embedder.name, user_id, question))
        self._comparisons.add(comparison)
        comparison.add_done_callback(self._comparisons.discard)
        await asyncio.wait([comparison], timeout=seconds)
        if not comparison.done():
            return [], None, (f"{embedder.name} did not embed the question within {seconds:g} s",)
        keys, vector, trouble = comparison.result()
        if vector is None:
            return [], None, (trouble,)
        if missing:  # the vectors that exist by now were compared
            missing = (indexer.trouble or (PARTLY_READY if keys else NOT_READY),)
        return keys, vector, missing

    async def _compared(self, model: str, user_id: str, question: str) -> tuple[list[str], Vectors | None, str]:
        """Return keys and the question's vector, or the error."""
        try:
            async with asyncio.timeout(EMBED_SECONDS):
                vector = await self._indexer.question(question)
            return await self._indexer.search(user_id, vector, CANDIDATES), vector, ""
        except TimeoutError:
            return [], None, f"{model} did not embed the question within {EMBED_SECONDS:g} s"
        except (ModelError, IndexBroken) as error:
            return [], None, str(error)


def _locked(directory: Path) -> IO[str]:
    """The directory's lock file, held until it is closed."""
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = (directory / "owner.lock").open("w")
    except OSError as error:
        raise store_failure(directory, error, what="cannot be used for the memory: ") from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise AlreadyRunning(f"{directory}: another process has the memory open") from None
    return lock


def _log_end(indexing: asyncio.Task[None]) -> None:
    with suppress(asyncio.CancelledError):
        if error := indexing.exception():
            log.error("the vector index is no longer kept: %s", error)
