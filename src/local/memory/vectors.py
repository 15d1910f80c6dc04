"""Search by meaning: vectors in SQLite, the indexes made from them, and the background work that keeps both."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import shutil
import sqlite3
import threading
import uuid
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from local.core.database import is_refused
from local.core.errors import IndexBroken, ModelError, StoreFailed, StoreUnwritable
from local.memory import store as lexical
from local.memory.embeddings import Embedder
from local.memory.store import EngramStore

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

_PAGE = 2_000  # vectors that are read together
_ADDED_AT_ONCE = 50  # to an index on disk: they delay a search that arrives meanwhile
QUIET_SECONDS = 0.25  # without a search, before background work continues
GIVE_WAY_SECONDS = 1.0  # the longest wait for that, before each step
_RECIPE = 2  # counts up when the same exchange gets another vector
CONTEXT_WEIGHT = 0.4  # of the exchanges before one, against the exchange itself


@dataclass(frozen=True, slots=True)
class Pending:
    """An engram without a vector. `revision` shows whether its text is still the same when it has one."""

    number: int
    revision: int
    text: str
    context: str


class VectorEntry(NamedTuple):
    """One vector of the index. A key is never used again, so that what has one key always has the same vector."""

    key: str
    user_id: str
    vector: bytes  # float16


def use_model(db: sqlite3.Connection, name: str) -> None:
    """Forget every vector that another model has made."""
    model = f"{name}/{_RECIPE}"
    if db.execute("SELECT 1 FROM vector_index WHERE model = ?", (model,)).fetchone():
        return
    db.execute("DELETE FROM vectors")
    db.execute("UPDATE engrams SET embedded = 0 WHERE embedded")
    db.execute("UPDATE vector_index SET model = ?", (model,))


def model(db: sqlite3.Connection) -> str:
    """Return the name of the embedding model that has made the vectors; empty if there are none yet."""
    (name,) = db.execute("SELECT model FROM vector_index").fetchone()
    return str(name).removesuffix(f"/{_RECIPE}")


def is_any_wanted(db: sqlite3.Connection) -> bool:
    """Whether an index would have anything in it."""
    sql = "SELECT EXISTS (SELECT 1 FROM vectors) OR EXISTS (SELECT 1 FROM engrams WHERE embedded = 0 AND searchable)"
    return bool(db.execute(sql).fetchone()[0])


def count_pending(db: sqlite3.Connection) -> int:
    """Return the number of engrams without a vector."""
    (count,) = db.execute("SELECT count(*) FROM engrams WHERE embedded = 0 AND searchable").fetchone()
    return int(count)


def pending(db: sqlite3.Connection, limit: int) -> list[Pending]:
    """Return the latest engrams without a vector: new ones are asked for first."""
    sql = "SELECT * FROM engrams WHERE embedded = 0 AND searchable ORDER BY number DESC LIMIT ?"
    return [
        Pending(
            row["number"],
            row["revision"],
            lexical.embeddable(row),
            lexical.embeddable_context(lexical.exchanges_before(db, row)),
        )
        for row in db.execute(sql, (limit,)).fetchall()
    ]


def in_context(texts: Vectors, contexts: Vectors) -> Vectors:
    """Return each exchange's vector turned a little towards the exchange before it, all of length 1; (texts,
    dimensions).

    The exchange itself stays the best match: embedding both as one text costs a tenth of the recall@5 [m].
    """
    import numpy as np

    turned = texts + CONTEXT_WEIGHT * contexts
    return np.asarray(turned / np.linalg.norm(turned, axis=1, keepdims=True), dtype=np.float32)


def put(db: sqlite3.Connection, texts: Sequence[Pending], vectors: Vectors) -> list[VectorEntry]:
    """Store the vectors of engrams that still exist unchanged; returns the entries for the index."""
    import numpy as np

    entries = []
    for text, vector in zip(texts, vectors.astype(np.float16), strict=True):
        sql = "UPDATE engrams SET embedded = 1 WHERE number = ? AND revision = ? AND embedded = 0 RETURNING user_id"
        row = db.execute(sql, (text.number, text.revision)).fetchall()
        if row:
            entry = VectorEntry(uuid.uuid4().hex, row[0]["user_id"], vector.tobytes())
            db.execute("INSERT INTO vectors VALUES (?, ?, ?)", (text.number, entry.key, entry.vector))
            entries.append(entry)
    return entries


def vector_page(db: sqlite3.Connection, user_id: str, after: int) -> tuple[list[VectorEntry], int]:
    """Some of a user's vectors behind a number, and the number of the last of them; none at the end."""
    sql = (  # along the index of a user's numbers: pages of a large memory are sorted by nothing else
        "SELECT engrams.number, key, vector FROM engrams JOIN vectors USING (number)"
        " WHERE user_id = ? AND engrams.number > ? ORDER BY engrams.number LIMIT ?"
    )
    cursor = db.cursor()
    cursor.row_factory = None  # plain tuples: half the time of many
    rows = cursor.execute(sql, (user_id, after, _PAGE)).fetchall()
    return [VectorEntry(key, user_id, vector) for _, key, vector in rows], rows[-1][0] if rows else after


def users_with_more(db: sqlite3.Connection, count: int) -> list[str]:
    """The users who have more engrams than that."""
    sql = "SELECT user_id FROM engrams GROUP BY user_id HAVING count(*) > ?"
    return [user_id for (user_id,) in db.execute(sql, (count,))]


def keys(db: sqlite3.Connection, user_id: str) -> set[str]:
    """The keys of all vectors of a user."""
    sql = "SELECT key FROM engrams JOIN vectors USING (number) WHERE user_id = ?"
    return {key for (key,) in db.execute(sql, (user_id,))}


def cosines(db: sqlite3.Connection, numbers: Sequence[int], keys: Sequence[str], vector: Vectors) -> dict[int, float]:
    """The cosine with one of shape (dimensions,) of all vectors that are there of these engrams or under these keys, by
    the engram's number."""
    import numpy as np

    listed = "IN (SELECT value FROM json_each(?))"
    sql = f"SELECT number, vector FROM vectors WHERE number {listed} OR key {listed}"
    rows = db.execute(sql, (json.dumps(numbers), json.dumps(keys))).fetchall()
    stored = np.frombuffer(b"".join(row["vector"] for row in rows), np.float16).reshape(-1, len(vector))
    return dict(zip((row["number"] for row in rows), (stored.astype(np.float32) @ vector).tolist(), strict=True))


# A vector index in memory: nothing is built, and no file is its own.

_FIRST_ROOM = 256
_COMPARED = 3_000  # vectors


class InMemoryIndex:
    """A `VectorIndex` in memory. Up to 3,000 vectors are all compared with the question. Of more, those are whose
    numbers agree in sign with most of the question's (Charikar 2002): of 100,000 that takes a third of the time of
    comparing all, and 99 % of the 60 closest are among them [m]."""

    def __init__(self) -> None:
        self._free = threading.Lock()
        self._keys: list[str] = []  # in the order of the rows
        self._known: set[str] = set()
        self._rows: Any = None  # float32: (room, dimensions)
        self._signs: Any = None  # uint64: (words of 64 signs, room)

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, entries: Sequence[VectorEntry]) -> None:
        """See `VectorIndex`."""
        import numpy as np

        with self._free:
            fresh = {entry.key: entry.vector for entry in entries if entry.key not in self._known}
            if fresh:
                rows = np.frombuffer(b"".join(fresh.values()), np.float16).reshape(len(fresh), -1)
                signs = _signs(rows)
                begin, end = len(self._keys), len(self._keys) + len(fresh)
                self._make_room(end, rows.shape[1], len(signs))
                self._rows[begin:end], self._signs[:, begin:end] = rows, signs
                self._keys += fresh
                self._known.update(fresh)

    def search(self, vector: Any, limit: int) -> list[str]:
        """See `VectorIndex`."""
        import numpy as np

        with self._free:
            count, rows, signs = len(self._keys), self._rows, self._signs
        if not count:
            return []
        near = _most_alike(signs[:, :count], vector, _COMPARED)
        cosines = rows[near] @ vector
        closest = np.argsort(-cosines, kind="stable")[:limit]
        return [self._keys[number] for number in near[closest].tolist()]

    def keys(self) -> set[str]:
        """See `VectorIndex`."""
        with self._free:
            return set(self._known)

    def close(self) -> None:
        """See `VectorIndex`: it is freed with the last search that uses it."""

    def _make_room(self, count: int, width: int, words: int) -> None:
        """Into other arrays, as a search may read these."""
        import numpy as np

        if self._rows is None or len(self._rows) < count:
            present, room = len(self._keys), max(_FIRST_ROOM, count, 2 * len(self._keys))
            rows, signs = np.empty((room, width), np.float32), np.empty((words, room), np.uint64)
            if present:
                rows[:present], signs[:, :present] = self._rows[:present], self._signs[:, :present]
            self._rows, self._signs = rows, signs


def _signs(rows: Any) -> Any:
    """Which numbers are above zero, a bit for each: float16 of (rows, dimensions) in, uint64 of (words, rows) out."""
    import numpy as np

    bits = np.packbits(rows.view(np.int16) > 0, axis=1)  # it has the same sign, and is compared much faster
    whole = np.zeros((len(rows), -(-bits.shape[1] // 8) * 8), np.uint8)
    whole[:, : bits.shape[1]] = bits
    return whole.view(np.uint64).T


def _most_alike(signs: Any, vector: Any, count: int) -> Any:
    """The numbers, ascending, of the `count` columns with the fewest bits that differ from the vector's."""
    import numpy as np

    present = signs.shape[1]
    if present <= count:
        return np.arange(present)
    differing = np.zeros(present, np.uint16)
    for word, asked in zip(signs, _signs(vector[None].astype(np.float16))[:, 0], strict=True):
        differing += np.bitwise_count(word ^ asked)
    return np.sort(np.argpartition(differing, count - 1)[:count])


# The closest vectors of one user. An index can always be made again from SQLite, and is if in doubt.


class VectorIndex(Protocol):
    """The vectors of one user by their keys, searched for the closest. It knows no texts; vectors have length 1.
    Blocking, from any thread; it may raise `IndexBroken`."""

    def add(self, entries: Sequence[VectorEntry]) -> None:
        """Put vectors in. The same key again is the same vector again."""
        ...

    def search(self, vector: Any, limit: int) -> list[str]:
        """The keys of the vectors that are closest to a float32 one of shape (dimensions,), closest first."""
        ...

    def keys(self) -> set[str]:
        """The keys of all vectors."""
        ...

    def close(self) -> None:
        """Let go of files and memory."""
        ...


# A vector index for each user: in memory, made when it is first asked, and Chroma's for who has very much.

log = logging.getLogger(__name__)
IN_MEMORY_AT_MOST = 250_000  # engrams of a user: 400 MB


class UserIndexes:
    """The vector index of each user. A search is answered at once: what is on disk is opened, built and renewed in the
    background, by `keep`, and one in memory answers meanwhile."""

    def __init__(self, store: EngramStore, directory: Path, give_way: Callable[[], Awaitable[object]]) -> None:
        """`give_way` waits until no search is under way."""
        self._store, self._directory, self._give_way = store, directory, give_way
        self._open: dict[str, VectorIndex] = {}
        self._changing = asyncio.Lock()

    async def search(self, user_id: str, vector: Any, limit: int) -> list[str]:
        """The keys of a user's closest vectors, closest first."""
        index = self._open.get(user_id) or await self._loaded(user_id)
        try:
            return await asyncio.to_thread(index.search, vector, limit)
        except IndexBroken as error:
            await self._give_up(user_id, index, error)
            return await self.search(user_id, vector, limit)

    async def add(self, entries: Iterable[VectorEntry]) -> None:
        """Add new rows of SQLite."""
        by_user: defaultdict[str, list[VectorEntry]] = defaultdict(list)
        for entry in entries:
            by_user[entry.user_id].append(entry)
        for user_id, theirs in by_user.items():
            async with self._changing:
                index = self._open.get(user_id)
                if index is None:
                    continue
                try:
                    await asyncio.to_thread(index.add, theirs)
                    continue
                except IndexBroken as error:
                    broken = error
            await self._give_up(user_id, index, broken)

    @property
    def has_outgrown(self) -> bool:
        """Whether an index in memory has become too large."""
        return any(isinstance(each, InMemoryIndex) and len(each) > IN_MEMORY_AT_MOST for each in self._open.values())

    async def keep(self, *, has_deleted: bool) -> None:
        """Bring the large ones up to date, leave nothing of what was deleted in any file, nor in memory where this
        process `has_deleted` it, and remove what is too much.

        Nothing may be added meanwhile. Raises `IndexBroken` if Chroma cannot begin.
        """
        large = await self._store.read(lambda db: users_with_more(db, IN_MEMORY_AT_MOST))
        for user_id in large:
            await self._keep_large(user_id)
        await self._forget_others(large, has_deleted)

    async def close(self) -> None:
        """Let go of all of them."""
        indexes, self._open = list(self._open.values()), {}
        for index in indexes:
            await _close(index)

    async def _loaded(self, user_id: str) -> VectorIndex:
        async with self._changing:
            if user_id not in self._open:
                made = InMemoryIndex()
                await self._fill(made, user_id, ())
                self._open[user_id] = made
            return self._open[user_id]

    async def _keep_large(self, user_id: str) -> None:
        index = self._open.get(user_id)
        if index is None or isinstance(index, InMemoryIndex):
            index = await self._opened(user_id)
        known = await self._store.read(lambda db: keys(db, user_id))
        found = set() if index is None else await asyncio.to_thread(index.keys)
        if index is None or found - known:  # vectors deleted in Chroma stay in its files
            path = self._directory / f"{_name(user_id)}.{uuid.uuid4().hex}"
            index, found = await asyncio.to_thread(_chroma, path), set()
        if known - found:
            await self._fill(index, user_id, found, in_background=True)
        await self._use(user_id, index)

    async def _opened(self, user_id: str) -> VectorIndex | None:
        """The one on disk, if there is one in good order."""
        paths = list(self._directory.glob(f"{_name(user_id)}.*"))
        if len(paths) != 1:
            return None
        try:
            return await asyncio.to_thread(_chroma, paths[0])
        except IndexBroken as error:
            log.warning("%s", error)
            return None

    async def _fill(
        self, index: VectorIndex, user_id: str, present: Collection[str], *, in_background: bool = False
    ) -> None:
        last = 0
        while True:
            page, last = await self._store.read(lambda db, after=last: vector_page(db, user_id, after))  # type: ignore[misc]
            if not page:
                return
            fresh = [entry for entry in page if entry.key not in present]
            step = _ADDED_AT_ONCE if in_background else _PAGE
            for begin in range(0, len(fresh), step):
                if in_background:
                    await self._give_way()
                await asyncio.to_thread(index.add, fresh[begin : begin + step])

    async def _use(self, user_id: str, index: VectorIndex) -> None:
        old = self._open.get(user_id)
        self._open[user_id] = index
        if old is not None and old is not index:
            await _close(old)

    async def _forget_others(self, large: Sequence[str], has_deleted: bool) -> None:
        """Close the indexes of other users. One that held a deleted vector is rebuilt without it at its next search."""
        async with self._changing:  # what is being loaded may have read it
            for user_id in self._open.keys() - set(large):
                if has_deleted or not isinstance(self._open[user_id], InMemoryIndex):
                    await _close(self._open.pop(user_id))
        in_use = {getattr(index, "directory", None) for index in self._open.values()}
        await asyncio.to_thread(_remove, [path for path in self._directory.glob("*") if path not in in_use])

    async def _give_up(self, user_id: str, index: VectorIndex, error: IndexBroken) -> None:
        """No index is loaded, and so none made again, before the files of this one are removed."""
        async with self._changing:
            if self._open.get(user_id) is not index:  # it was replaced in the meantime
                return
            log.warning("%s; every vector is compared until then", error)
            del self._open[user_id]
            await _close(index)
            await asyncio.to_thread(_remove, self._directory.glob(f"{_name(user_id)}.*"))


def _chroma(path: Path) -> VectorIndex:
    from local.memory.chroma_index import ChromaIndex  # a hundred megabytes, for few

    return ChromaIndex(path)


def _name(user_id: str) -> str:
    """Return the beginning of a directory's name: any user id is possible, and files must not reveal it."""
    return hashlib.sha256(user_id.encode(errors="surrogatepass")).hexdigest()[:32]


async def _close(index: VectorIndex) -> None:
    with suppress(IndexBroken):  # it is given up in any case
        await asyncio.to_thread(index.close)


def _remove(paths: Iterable[Path]) -> None:
    for path in paths:
        shutil.rmtree(path, ignore_errors=True)


# The background work on vectors: embeds new engrams and updates the indexes.

_BATCH, _AT_ONCE = 32, 8  # texts that are stored together, and those that are embedded between two looks for a search
_KEPT = 256  # vectors of texts
RETRY_SECONDS, FAILED_SECONDS = 30.0, 2.0
NOT_READY = "only words were compared"
PARTLY_READY = "some memories were compared by their words only"
NOTHING_YET = "nothing is remembered yet that could be compared by its meaning"


class IndexerState(StrEnum):
    """The state of the vector index, as it concerns a search by meaning."""

    STARTING = "starting"  # nothing is open yet
    EMPTY = "empty"  # there is nothing to be found
    BUILDING = "building"  # not everything is embedded yet
    READY = "ready"
    FAILED = "failed"  # tried again after `FAILED_SECONDS`, or when there is something new


class RecentVectors:
    """The vectors of the texts that were embedded last, so that none is embedded again soon: an exchange is what the
    next one in its conversation follows, and a question that the memory is asked before the model is often what the
    model then searches for."""

    def __init__(self) -> None:
        self._kept: dict[str, Any] = {}  # in the order of their last use

    async def of(self, texts: Iterable[str], embed: Callable[[Sequence[str]], Awaitable[Vectors]]) -> dict[str, Any]:
        """The vector of each text; `embed` makes those that are not known."""
        kept = self._kept  # what is forgotten meanwhile does not come back
        wanted = {text: kept.pop(text, None) for text in texts}
        if new := [text for text, vector in wanted.items() if vector is None]:
            wanted |= zip(new, map(_copied, await embed(new)), strict=True)
        kept |= wanted
        for text in list(kept)[: max(0, len(kept) - _KEPT)]:
            del kept[text]
        return wanted

    def forget(self) -> None:
        """Keep none of them."""
        self._kept = {}


def _copied(row: Any) -> Any:
    """A row without the array that it is of."""
    return row.copy()


class VectorIndexer:
    """The background work that embeds engrams and keeps the vector indexes. `run` does the work; `wake` reports that
    there may be some, which begins when the coroutine `moment` returns.
    """

    def __init__(self, store: EngramStore, directory: Path) -> None:
        self._store, self._directory = store, directory
        self._indexes = UserIndexes(store, directory, lambda: self._give_way(QUIET_SECONDS))
        self._searches, self._searched_at = 0, float("-inf")  # how many are under way, and when the last one ended
        self._no_search, self._search_begins = asyncio.Event(), asyncio.Event()
        self._no_search.set()
        self.embedder: Embedder | None = None
        self.moment: Callable[[], Awaitable[object]] = _now
        self._chosen = asyncio.Event()
        self._work, self._settled = asyncio.Event(), asyncio.Event()
        self._work.set()
        self.state = IndexerState.STARTING
        self.trouble = ""
        self._has_begun = False
        self._documents, self._questions = RecentVectors(), RecentVectors()
        self._asked: dict[str, asyncio.Future[Any]] = {}  # questions that wait for their vectors
        self._embedding: asyncio.Task[None] | None = None
        self._has_deleted = False
        self._has_kept = False  # an earlier process may have left vectors in the files of a large index

    def use(self, embedder: Embedder) -> None:
        """Embed with this model from now on, once and for all."""
        self.embedder = embedder
        self._chosen.set()

    def wake(self, *, has_deleted: bool = False) -> None:
        """Start work: there is something to embed or to clean up."""
        self._has_deleted |= has_deleted
        if has_deleted:
            self._documents.forget()
            self._questions.forget()
        if self.state is IndexerState.EMPTY:
            self.state = IndexerState.BUILDING
        self._settled.clear()
        self._work.set()

    async def settled(self) -> None:
        """Wait until everything stored is embedded and indexed, and nothing deleted is left."""
        await self._settled.wait()

    @contextmanager
    def searching(self) -> Iterator[None]:
        """A search is under way inside: background work waits for it."""
        self._searches += 1
        self._no_search.clear()
        self._search_begins.set()
        try:
            yield
        finally:
            self._searches -= 1
            self._searched_at = asyncio.get_running_loop().time()
            if not self._searches:
                self._no_search.set()

    async def question(self, text: str) -> Any:
        """The vector of a question: the only place where questions are embedded. All that wait for the model are
        embedded together. Raises `ModelError`.
        """
        vector = self._asked.setdefault(text, asyncio.get_running_loop().create_future())
        if self._embedding is None:
            self._embedding = asyncio.create_task(self._embed_questions(), name="embed questions")
        return await asyncio.shield(vector)

    async def _embed_questions(self) -> None:
        assert self.embedder is not None, "no question is embedded before it was chosen"
        try:
            while self._asked:
                asked, self._asked = self._asked, {}
                try:
                    made = await self._questions.of(asked, self.embedder.embed_queries)
                except Exception as error:  # noqa: BLE001 - whatever it is, those who wait for a vector get it
                    for vector in asked.values():
                        vector.set_exception(error)
                        vector.exception()  # mark it as retrieved: perhaps nobody waits for it any more
                else:
                    for text, vector in asked.items():
                        vector.set_result(made[text])
        finally:
            self._embedding = None

    async def search(self, user_id: str, vector: Any, limit: int) -> list[str]:
        """Keys of a user's closest vectors, of those that are there already. Raises `IndexBroken` where none can be
        compared."""
        if self.state in (IndexerState.STARTING, IndexerState.FAILED):
            raise IndexBroken(self.trouble or NOT_READY)
        had_outgrown = self._indexes.has_outgrown
        found = await self._indexes.search(user_id, vector, limit)
        if self._indexes.has_outgrown and not had_outgrown:  # it was opened for this search
            self.wake()
        return found

    async def run(self) -> None:
        """Work until cancelled. Failures are reported in `trouble` and retried."""
        await self._chosen.wait()
        try:
            while True:
                self._work.clear()
                seconds, is_unwritable = None, False
                try:
                    await self._keep()
                except IndexBroken as error:  # every vector is compared instead
                    log.warning("%s", error)
                    self.state, self.trouble, seconds = IndexerState.READY, str(error), RETRY_SECONDS
                except (ModelError, StoreFailed) as error:
                    if str(error) != self.trouble:
                        log.warning("%s; words alone are searched until it works again", error)
                    self.state, self.trouble, seconds = IndexerState.FAILED, str(error), FAILED_SECONDS
                    is_unwritable = isinstance(error, StoreUnwritable)
                self._store.changed.set()  # as its state may have
                await self._wait_for_work(seconds)
                if is_unwritable and not await asyncio.to_thread(is_refused, self._directory):
                    self.state, self.trouble = IndexerState.BUILDING, ""  # the work itself may have to wait
                    self._store.changed.set()
                await self.moment()
        finally:
            if self._embedding is not None:
                self._embedding.cancel()
            await self._indexes.close()

    async def _keep(self) -> None:
        if await self._store.read(is_any_wanted):
            await self._begin()
            while await self._embed_some() == _BATCH:
                await self.moment()
            await self._keep_indexes()
            self.state = IndexerState.READY
        else:
            await self._keep_indexes()
            self.state = IndexerState.BUILDING if self._work.is_set() else IndexerState.EMPTY
        self.trouble = ""
        if not self._work.is_set():
            self._settled.set()

    async def _begin(self) -> None:
        """Discard the vectors of another model."""
        if not self._has_begun:
            assert self.embedder is not None, "nothing is kept before it was chosen"
            name = self.embedder.name
            await self._store.write(lambda db: use_model(db, name))
            self._has_begun, self.state = True, IndexerState.BUILDING

    async def _keep_indexes(self) -> None:
        if self._has_deleted or not self._has_kept or self._indexes.has_outgrown:
            has_deleted, self._has_deleted, self._has_kept = self._has_deleted, False, True
            try:
                await self._indexes.keep(has_deleted=has_deleted)
            except BaseException:
                self._has_deleted |= has_deleted
                self._has_kept = False
                raise

    async def _embed_some(self) -> int:
        """Embed some of what is pending; returns how much that was."""
        texts = await self._store.read(lambda db: pending(db, _BATCH))
        if texts:
            made = await self._embedded(texts)
            entries = await self._store.write(lambda db: put(db, texts, made))
            await self._indexes.add(entries)
        return len(texts)

    async def _embedded(self, texts: Sequence[Pending]) -> Vectors:
        import numpy as np

        assert self.embedder is not None, "nothing is kept before it was chosen"
        said = (text for each in texts for text in (each.text, each.context) if text)
        wanted = await self._documents.of(said, partial(self._embedded_in_steps, self.embedder))
        nothing = np.zeros(self.embedder.dimensions, np.float32)
        contexts = np.stack([wanted.get(text.context, nothing) for text in texts])
        return in_context(np.stack([wanted[text.text] for text in texts]), contexts)

    async def _embedded_in_steps(self, embedder: Embedder, texts: Sequence[str]) -> Vectors:
        """A search that begins meanwhile waits for one step at most."""
        import numpy as np

        made = []
        for start in range(0, len(texts), _AT_ONCE):
            await self._give_way(0.0 if start else QUIET_SECONDS)
            made.append(await embedder.embed_documents(texts[start : start + _AT_ONCE]))
        return np.concatenate(made)

    async def _give_way(self, quiet_seconds: float) -> None:
        """Wait until nobody has searched for a moment; not for long, or many users would keep the index from being
        built."""
        loop = asyncio.get_running_loop()
        latest = loop.time() + GIVE_WAY_SECONDS
        while self._searches or self._searched_at + quiet_seconds > loop.time():
            quiet_at = latest if self._searches else min(latest, self._searched_at + quiet_seconds)
            change = self._no_search if self._searches else self._search_begins
            self._search_begins.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout_at(quiet_at):
                    await change.wait()
            if loop.time() >= latest:
                return

    async def _wait_for_work(self, seconds: float | None) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._work.wait()
        except TimeoutError:
            log.info("the vector index is tried again")


async def _now() -> None:
    """The moment for work is at once."""
