"""The memory of exchanges: stores each one once, finds it again by words and by meaning, and forgets for good."""

from __future__ import annotations

import asyncio
import fcntl
import logging
import math
import sqlite3
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from local.errors import AlreadyRunning, IndexBroken, ModelError
from local.services.embeddings.embedder import Embedder
from local.services.engrams import export, facts, pinned, recalling, record, search, succession, vectors
from local.services.engrams.critic_agreement import borne_out
from local.services.engrams.engram import Change, Engram, EngramDraft, Ingested, StatedFact, Statement, engram_id
from local.services.engrams.entry_book import EntryBook
from local.services.engrams.facts import Classified, FactFinding
from local.services.engrams.lexical import Coverages, LexicalSearch
from local.services.engrams.note_book import NoteBook
from local.services.engrams.pinned import ToldLines
from local.services.engrams.ranking import WEIGHTS, rank
from local.services.engrams.rating_book import RatingBook
from local.services.engrams.record import Deletion
from local.services.engrams.search import CANDIDATES, Found
from local.services.engrams.status import MemoryStatus, counts
from local.services.engrams.store import EngramStore
from local.services.engrams.vector_indexer import NOT_READY, NOTHING_YET, IndexerState, VectorIndexer
from local.services.sqlite_file import open_patiently, store_failure

if TYPE_CHECKING:
    from local.services.engrams.vectors import Vectors

log = logging.getLogger(__name__)
EMBED_SECONDS = 2.0  # a question's embedding is not waited for any longer; words answer alone then
RECALL_SECONDS = 0.08  # the same where a turn waits
EVER = math.inf


class EngramService:
    """Use as `async with`; it owns `directory` meanwhile, and a second one on it is `AlreadyRunning`.

    Every coroutine that changes something returns after its commit. Raises `StoreFailed`, `StoreFull` where the disk is
    full, `NotOnRecord` for an engram that the user does not have.
    """

    def __init__(
        self, directory: Path, embedder: Embedder | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        """`clock` gives seconds since 1970. Without an embedder words alone are searched until `use` brings one."""
        self._directory, self._clock, self._store = directory, clock, EngramStore(directory)
        self._indexer = VectorIndexer(self._store, directory / "vectors")
        self.notes, self.by_hand = NoteBook(self._store, self._indexer), EntryBook(self._store, self._indexer)
        self.ratings = RatingBook(self._store, clock)
        if embedder is not None:
            self.use(embedder)
        self._lexical, self._weights = LexicalSearch(), WEIGHTS
        self._comparisons = set[asyncio.Task[tuple[list[str], Any, str]]]()  # by meaning, that are under way

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
        """Search by meaning with this model. Vectors that another one has made are made anew."""
        self._indexer.use(embedder)

    def embed_when(self, moment: Callable[[], Awaitable[object]]) -> None:
        """Begin with what is new when the coroutine `moment` returns, instead of at once."""
        self._indexer.moment = moment

    async def embedded_by(self) -> str:
        """The name of the model that has made the vectors there are; empty if there are none."""
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

    async def search(self, user_id: str, question: str, *, limit: int = 5, not_session: str | None = None) -> Found:
        """A user's engrams that answer a question, best first, none where nothing is relevant; those of `not_session`
        are left out, as the one that asks knows them."""
        return await self._find(user_id, question, limit, not_session, EMBED_SECONDS)

    async def recall(self, user_id: str, question: str, *, limit: int = 3, not_session: str | None = None) -> Found:
        """A user's exchanges that clearly fit a question and say nothing that no longer holds, best first; often none.
        The question's meaning is searched for `RECALL_SECONDS` at most, its words always; see `recalling`."""
        found = await self._find(user_id, question, recalling.LOOKED_AT, not_session, RECALL_SECONDS)
        return Found(recalling.clear(question, found.hits, limit), found.degraded)

    async def _find(self, user_id: str, question: str, limit: int, not_session: str | None, seconds: float) -> Found:
        """`seconds` is how long the search by meaning is waited for."""
        now = self._clock()
        asked = search.EngramQuestion.of(user_id, question, not_session, now)
        async with asyncio.TaskGroup() as group:
            by_words = group.create_task(self._by_words(user_id, asked.words))
            by_meaning = group.create_task(self._by_meaning(user_id, question, seconds))
        keys, vector, degraded = by_meaning.result()
        floor = 0.0 if self._indexer.embedder is None else self._indexer.embedder.relevance_floor

        def answer(db: sqlite3.Connection) -> Found:
            together = search.candidates(db, asked, by_words.result(), keys, vector)
            weights = borne_out(db, user_id, self._weights)
            ranked = rank(together, now=now, relevance_floor=floor, limit=limit, weights=weights)
            return Found(search.explained(db, ranked.hits), degraded, ranked.nearest)

        return await self._store.read(answer)

    async def get(self, user_id: str, engram_id: str) -> Engram:
        """An engram of a user's."""
        return await self._store.read(lambda db: record.engram(db, user_id, engram_id))

    async def recent(self, user_id: str, *, limit: int = 50, before: float = EVER, before_id: str = "") -> list[Engram]:
        """Engrams asked before a time, in seconds since 1970, the latest first; with the id of one that was asked then,
        those that come after it in this order."""
        return await self._store.read(lambda db: record.recent(db, user_id, limit, (before, before_id)))

    async def pinned(self, user_id: str) -> list[Engram]:
        """What the user has pinned, in the order of pinning."""
        return await self._store.read(lambda db: record.pinned(db, user_id))

    async def changes(self, user_id: str, engram_id: str) -> list[Change]:
        """Everything that was said about an engram, oldest first."""
        return await self._store.read(lambda db: record.changes(db, user_id, engram_id))

    async def export(self, user_id: str, cursor: str = "") -> tuple[list[str], str]:
        """A page of all that is kept of a user, and the cursor of the next one, empty after the last. See `export`.

        Raises `ValueError` for a cursor that is none.
        """
        return await self._store.read(lambda db: export.page(db, user_id, cursor))

    async def pin(self, user_id: str, engram_id: str) -> None:
        """Pin an engram. Raises `PinRefused` where the prompt has no room for it."""
        await self._store.write(lambda db: pinned.pin(db, user_id, engram_id, self._clock()))

    async def unpin(self, user_id: str, engram_id: str) -> None:
        """Take the pin out."""
        await self._store.write(lambda db: record.pin(db, user_id, engram_id, 0, self._clock()))

    async def grade(self, query_id: str, respondent_id: str, score: float | None) -> bool:
        """Note the critic's score, 1 to 5, None if it gave none; False if there is no such engram."""
        graded = engram_id(query_id, respondent_id)
        return await self._store.write_with_others(lambda db: record.grade(db, graded, score, self._clock()))

    async def compare(self, query_id: str, respondent_id: str, winner: str) -> bool:
        """Note whose answer won when this one was compared, or "tie"; False if there is no such engram."""
        compared = engram_id(query_id, respondent_id)
        return await self._store.write_with_others(lambda db: record.compare(db, compared, winner, self._clock()))

    async def unclassified(self, limit: int, *, newest_first: bool = False) -> list[Engram]:
        """The users' exchanges that no model has looked at yet: the oldest, or those of the newest conversation."""
        return await self._store.read(lambda db: succession.pending(db, limit, newest_first=newest_first))

    async def classify(self, classified_id: str, classified: Classified) -> list[StatedFact]:
        """Note what a model made of an exchange, once, and the facts in it, which it returns.

        Raises `NotOnRecord` for an engram that has been deleted meanwhile.
        """
        return await self._store.write_with_others(lambda db: succession.note(db, classified_id, classified))

    async def supersede(self, statement: Statement) -> StatedFact:
        """Store a fact in place of what its slot said before. Raises `UntrustedFact` for another's word."""
        return await self._store.write(lambda db: succession.supersede(db, statement))

    async def contradict(self, statement: Statement) -> StatedFact:
        """Store a fact beside what its slot says: nobody knows which holds. Raises `UntrustedFact`."""
        return await self._store.write(lambda db: succession.contradict(db, statement))

    async def facts(self, user_id: str) -> list[StatedFact]:
        """What holds for a user, by slot; see `StatedFact` for several of one slot."""
        return await self._store.read(lambda db: facts.current(db, user_id))

    async def fact_history(self, user_id: str) -> list[StatedFact]:
        """Everything a user stated, whether it holds or not, by slot, oldest first."""
        return await self._store.read(lambda db: facts.history(db, user_id))

    async def facts_of(self, user_id: str, engram_id: str) -> list[StatedFact]:
        """What the user stated in an exchange, whether it holds or not."""
        await self.get(user_id, engram_id)
        return await self._store.read(lambda db: facts.of_engram(db, engram_id))

    async def facts_in(self, engram_id: str) -> list[StatedFact]:
        """The same whoever's it is; none if it has been deleted."""
        return await self._store.read(lambda db: facts.of_engram(db, engram_id))

    async def told_lines(self, user_id: str) -> ToldLines:
        """What a model is told of the user unasked, in lines for a prompt; see `pinned`."""
        return await self._store.read(lambda db: pinned.of_user(db, user_id))

    async def told_users(self) -> list[str]:
        """The users who have a current fact or a pin."""
        return await self._store.read(record.told_users)

    async def delete(self, user_id: str, engram_id: str) -> None:
        """Remove the exchange that an engram is of from the store and every index, all respondents' answers and facts
        with it. It stays away, whoever brings it again, and is among the `deletions` until `finish_deletion`.

        Its vector's last trace goes in the background, see `settled`.
        """

        def work(db: sqlite3.Connection) -> None:
            record.delete(db, record.row_of(db, user_id, engram_id)["query_id"], self._clock())

        await self._store.erase(work)
        self._indexer.wake(has_deleted=True)

    async def delete_session(self, session_id: str) -> int:
        """Remove all exchanges of a session, whoever's, as `delete` does; returns how many engrams that were."""
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
        """What was deleted here, and others have yet to be told of."""
        return await self._store.read(record.unfinished)

    async def note_redacted(self, engram_id: str) -> None:
        """The record of the bus has lost what it held of a deleted engram."""
        await self._store.write(lambda db: record.note_redacted(db, engram_id))

    async def finish_deletion(self, engram_id: str) -> None:
        """Everybody was told that an engram is gone."""
        await self._store.write(lambda db: record.finish(db, engram_id))

    async def settled(self) -> None:
        """Wait until all that is stored can be found by its meaning and nothing deleted is in any file."""
        await self._indexer.settled()

    async def changes_of_status(self) -> AsyncIterator[MemoryStatus]:
        """How the memory is, and again whenever that may have changed since."""
        while True:
            self._store.changed.clear()
            yield await self.status()
            await self._store.changed.wait()

    async def status(self) -> MemoryStatus:
        """How the memory is."""
        pending, unclassified, unparsed, deletions = await self._store.read(counts)
        indexer = self._indexer
        model = "" if indexer.embedder is None else indexer.embedder.name
        return MemoryStatus(indexer.state, indexer.trouble, model, pending, unclassified, unparsed, deletions)

    async def _by_words(self, user_id: str, question: str) -> Coverages:
        return await self._store.read(lambda db: self._lexical.search(db, user_id, question))

    async def _by_meaning(
        self, user_id: str, question: str, seconds: float = EMBED_SECONDS
    ) -> tuple[list[str], Vectors | None, tuple[str, ...]]:
        """Keys, the question's vector, and what could not be searched."""
        indexer, embedder = self._indexer, self._indexer.embedder
        if indexer.state is IndexerState.EMPTY:
            return [], None, (NOTHING_YET,)
        missing = () if indexer.state is IndexerState.READY else (indexer.trouble or NOT_READY,)
        if embedder is None or indexer.state in (IndexerState.STARTING, IndexerState.FAILED):
            return [], None, missing
        # One that takes longer goes on for a while: the next search finds the model and the index loaded.
        comparison = asyncio.create_task(self._compared(embedder, user_id, question))
        self._comparisons.add(comparison)
        comparison.add_done_callback(self._comparisons.discard)
        await asyncio.wait([comparison], timeout=seconds)
        if not comparison.done():
            return [], None, (f"{embedder.name} did not embed the question within {seconds:g} s",)
        keys, vector, trouble = comparison.result()
        return keys, vector, missing if vector is not None else (trouble,)

    async def _compared(self, embedder: Embedder, user_id: str, question: str) -> tuple[list[str], Vectors | None, str]:
        """Keys and the question's vector, or what has gone wrong."""
        try:
            async with asyncio.timeout(EMBED_SECONDS):
                vector = (await embedder.embed_queries([question]))[0]
            return await self._indexer.search(user_id, vector, CANDIDATES), vector, ""
        except TimeoutError:
            return [], None, f"{embedder.name} did not embed the question within {EMBED_SECONDS:g} s"
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
