"""One SQLite file, one thread that owns it, and group commit: waiting writes are committed together."""

from __future__ import annotations

import asyncio
import errno
import logging
import math
import os
import queue
import sqlite3
import tempfile
import threading
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from local.core.errors import (
    LocalError,
    StoreDamaged,
    StoreFailed,
    StoreFenced,
    StoreFull,
    StoreGone,
    StoreLocked,
    StoreReplaced,
    StoreTooNew,
    StoreUnwritable,
    refused_by_disk,
)
from local.core.files import Backoff

# The common needs of every SQLite file: its latest schema, an opening that waits, errors for a person.

T = TypeVar("T")
log = logging.getLogger(__name__)

UNWRITABLE_SECONDS = 0.5  # between two tries to open a file that cannot be written
SAY_SECONDS = 5.0
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 1.0  # seconds between two looks whether there is room for one more row
PASSING = (StoreUnwritable, StoreLocked)  # errors that an opening waits for
# SQLITE_IOERR_SHMSIZE: the file beside the WAL could not grow, a way of being full that has another name.
_FULL_CODES = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE)
# SQLite's codes, in the lowest byte, for a file system that refuses to make or change a file, for whatever reason.
_REFUSED_CODES = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR)
# SQLite's errors for a damaged file; any other (no permission, no space, busy) is no damage.
_DAMAGE_CODES = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT)
_UNREADABLE_CODES = (sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ)


def migrate(connection: sqlite3.Connection, migrations: Sequence[str]) -> None:
    """Bring a database to the latest schema. Raises `StoreTooNew` for a schema that is newer than that."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > len(migrations):
        raise StoreTooNew(f"schema version {version} is newer than this program's {len(migrations)}")
    for number, script in enumerate(migrations[version:], version + 1):
        connection.executescript(f"BEGIN; {script}; PRAGMA user_version={number}; COMMIT")


def check_writable(connection: sqlite3.Connection) -> None:
    """Raise SQLite's error if it has opened the file read-only. SQLite does so where the file system is read-only and
    a killed process has left its side files.
    """
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("PRAGMA user_version=0")
    connection.execute("ROLLBACK")


def store_failure(path: Path, error: sqlite3.Error | OSError, *, what: str = "") -> StoreFailed:
    """Return the error for a failure: one of `PASSING` if it passes by itself when the obstacle is gone. `what` names
    the failed action, if needed.
    """
    reason = _errno(path, error)
    if reason == errno.EBUSY:
        return StoreLocked(f"{path}: a process is in the middle of a commit, perhaps frozen")
    return refused_by_disk(path, reason) or StoreFailed(f"{path}: {what}{error}")


def _errno(path: Path, error: sqlite3.Error | OSError) -> int | None:
    if isinstance(error, OSError):
        return error.errno
    code = getattr(error, "sqlite_errorcode", 0)
    if code in _FULL_CODES:
        return errno.ENOSPC
    if code & 0xFF == sqlite3.SQLITE_BUSY:
        return errno.EBUSY
    return _state_of_disk(path) if code & 0xFF in _REFUSED_CODES else None


def _state_of_disk(path: Path) -> int | None:
    """Return the reason why no process can write there, which SQLite does not distinguish from a missing permission."""
    try:
        disk = os.statvfs(path.parent)
    except OSError:  # the folder itself is missing
        return None
    if disk.f_flag & os.ST_RDONLY:
        return errno.EROFS
    is_full = disk.f_bavail == 0 or (disk.f_favail == 0 and disk.f_files > 0)  # some count no files
    return errno.ENOSPC if is_full else _refusal(path)


def _refusal(path: Path) -> int | None:
    """Return the error of a test write beside the file, or of opening it: a file system that a fault has made read-only
    does not always report it, and a file may be immutable.
    """
    try:
        with tempfile.TemporaryFile(dir=path.parent) as file:
            file.write(bytes(4096))
        for each in (path, *(path.with_name(f"{path.name}-{side}") for side in ("wal", "shm"))):
            with suppress(FileNotFoundError):
                os.close(os.open(each, os.O_RDWR))
    except OSError as error:
        return error.errno
    return None


def is_refused(path: Path) -> bool:
    """Whether no process can write that file at present; it need not exist."""
    return refused_by_disk(path, _state_of_disk(path)) is not None


# The files that this process could not write to at its last try, with the reason. A participant's status has them.

_unwritable: dict[Path, str] = {}


def unwritable() -> str:
    """Return why a database of this process cannot be written now; empty if all can."""
    return next(iter(list(_unwritable.values())), "")


class OpeningLog:
    """A log that regularly reports why a file cannot be opened yet."""

    def __init__(self) -> None:
        self._told_at = -math.inf

    def report(self, failure: LocalError) -> None:
        """A failure is in the way, still or again."""
        if time.monotonic() - self._told_at >= SAY_SECONDS:
            log.warning("opening waits: %s", failure)
            self._told_at = time.monotonic()


async def open_patiently(attempt: Callable[[], T]) -> T:
    """Return the result of `attempt()`, run in a thread and repeated while it raises one of `PASSING`, which is
    logged.
    """
    waiting = OpeningLog()
    while True:
        try:
            return await asyncio.to_thread(attempt)
        except PASSING as error:
            waiting.report(error)
        await asyncio.sleep(UNWRITABLE_SECONDS)


async def within_patience(attempt: Callable[[], Awaitable[T]], seconds: float) -> tuple[T, float]:
    """Return the result of `attempt()`, repeated for that long while nothing can be written, and the seconds that it
    waited. Raises the last error of `attempt()`.
    """
    started, pauses, waited = time.monotonic(), Backoff(FIRST_PAUSE, LONGEST_PAUSE), 0.0
    while True:
        try:
            return await attempt(), waited
        except StoreUnwritable:
            left = seconds - (time.monotonic() - started)
            if left <= 0:
                raise
        await asyncio.sleep(min(pauses.next(), left))
        waited = time.monotonic() - started


def connect_read_only(path: Path) -> closing[sqlite3.Connection]:
    """A connection that changes nothing, not even by closing: no checkpoint, no removal of the WAL."""
    return closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None))


@contextmanager
def naming_damage() -> Iterator[None]:
    """Raise `StoreDamaged` for SQLite's errors about a broken file; other errors (busy, no permission) pass
    unchanged."""
    try:
        yield
    except UnicodeDecodeError as error:  # Python, on a message of SQLite's that quotes damaged text
        raise StoreDamaged("SQLite cannot read the file: malformed text") from error
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)  # none: a value that Python cannot make out
        if code in _UNREADABLE_CODES or code & 0xFF in _DAMAGE_CODES:
            raise StoreDamaged(f"SQLite cannot read the file: {error}") from error
        raise


MAX_GROUP = 256
GROUP_COMMIT_SECONDS = 0.05
QUICK_SECONDS = 0.005  # a commit that takes longer is not for the loop
LOCKED_SECONDS = 5.0  # then a commit fails that another process blocks, and an opening reports that it waits


@dataclass(slots=True)
class _Job(Generic[T]):
    work: Callable[[sqlite3.Connection], T]
    future: asyncio.Future[T]
    is_synced: bool = True
    is_short: bool = False


_Outcome = tuple[_Job[Any], Any, Exception | None]


class Database:
    """A SQLite file that one thread owns. Use as `async with`. `migrations` are SQL scripts; the file's `user_version`
    is the number of those applied.

    Every job runs inside a transaction that is on the disk (`synchronous=FULL`) when its awaiter continues. Jobs run
    in order: in the owning thread or, if all waiting jobs are short and commits are quick, on the loop itself, which
    saves two thread switches. A job that raises changes nothing and does not affect others. Raises `StoreFailed` for
    SQLite's errors, `StoreUnwritable` for those that pass, `StoreReplaced` if another file has taken its name.
    `committed(connection)` is called after each commit and before its awaiters continue; they receive the
    `sqlite3.Error`, `OSError` and `StoreFailed` that it raises.

    While nothing can be written, opening waits and logs the reason: the disk is full or read-only, or another process
    is in the middle of a commit. A process that is frozen there holds the file until it is continued or killed.
    """

    def __init__(
        self,
        path: Path,
        migrations: Sequence[str],
        committed: Callable[[sqlite3.Connection], None] = lambda connection: None,
    ) -> None:
        self._path, self._migrations, self._committed = path, migrations, committed
        self._closed = threading.Event()
        self._waiting: list[_Job[Any]] = []  # on the loop, in order
        self._handing_over: asyncio.TimerHandle | None = None
        self._in_thread = 0  # jobs
        self._is_synced = True
        self._commit_seconds = 0.0  # of the last commits, the latest counting most
        self._trying: asyncio.TimerHandle | None = None  # while nothing can be written
        self._connection: sqlite3.Connection
        self._jobs: queue.SimpleQueue[_Job[Any] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name=f"database {path.name}", daemon=True)

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._thread.start()
        try:
            await self._opened
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *error: object) -> None:
        self._closed.set()
        if self._trying is not None:
            self._trying.cancel()
        self._give_to_thread()
        self._jobs.put(None)
        await asyncio.to_thread(self._thread.join)
        _unwritable.pop(self._path, None)

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do `work(connection)` in a transaction and return its value after the commit."""
        return await self._put(work)

    async def run_short(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Like `run`, for work that takes no longer than a commit."""
        return await self._put(work, is_short=True)

    async def run_unsynced(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """As `run_short`, with a commit that reaches the disk with the next synced one: the death of a process does not
        undo it, only that of the whole machine.
        """
        return await self._put(work, is_short=True, is_synced=False)

    async def run_with_others(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Like `run`, in one commit with all other work within a twentieth of a second."""
        return await self._put(work, seconds=GROUP_COMMIT_SECONDS)

    def note(self, work: Callable[[sqlite3.Connection], object]) -> asyncio.Future[object]:
        """Run `work(connection)` with the next job, or after a twentieth of a second; the order is kept.

        Use it for work that no caller waits for and that a crash may undo: it needs no separate commit. A failure is
        logged.
        """
        noted = self._put(work, is_short=True, is_synced=False, seconds=GROUP_COMMIT_SECONDS)
        noted.add_done_callback(_log_failure)
        return noted

    def _put(
        self,
        work: Callable[[sqlite3.Connection], T],
        *,
        is_synced: bool = True,
        is_short: bool = False,
        seconds: float = 0.0,
    ) -> asyncio.Future[T]:
        """Have a job done within so many seconds."""
        if self._closed.is_set():
            raise StoreFailed(f"{self._path}: is closed")
        future: asyncio.Future[T] = self._loop.create_future()
        self._waiting.append(_Job(work, future, is_synced, is_short))
        at = self._loop.time() + seconds
        if self._handing_over is None or self._handing_over.when() > at:
            self._stop_waiting()
            self._handing_over = self._loop.call_at(at, self._hand_over)
        return future

    def _stop_waiting(self) -> None:
        if self._handing_over is not None:
            self._handing_over.cancel()
            self._handing_over = None

    def _hand_over(self) -> None:
        """Commit all that waits: here if that is quick, else in the thread."""
        self._handing_over = None
        is_quick = self._commit_seconds < QUICK_SECONDS and all(job.is_short for job in self._waiting)
        if self._in_thread or not is_quick or not self._commit_here():
            self._give_to_thread()

    def _commit_here(self) -> bool:
        """False where another process is in the way: that is to be waited for in the thread."""
        self._connection.execute("PRAGMA busy_timeout=0")
        try:
            outcomes = self._commit(self._waiting)
        finally:
            self._connection.execute(f"PRAGMA busy_timeout={int(LOCKED_SECONDS * 1000)}")
        if all(isinstance(failed, StoreLocked) for _, _, failed in outcomes):
            return False
        self._waiting = []
        self._settle(outcomes)
        return True

    def _give_to_thread(self) -> None:
        self._stop_waiting()
        self._in_thread += len(self._waiting)
        for job in self._waiting:
            self._jobs.put(job)
        self._waiting = []

    def _serve(self) -> None:
        failure = None
        try:
            self._connection = self._open()
        except (sqlite3.Error, OSError) as error:
            failure = store_failure(self._path, error, what="cannot be opened: ")
        except StoreFailed as error:
            kind = StoreTooNew if isinstance(error, StoreTooNew) else StoreFailed
            failure = kind(f"{self._path}: cannot be opened: {error}")
        self._on_loop(_settle, self._opened, None, failure)
        group: list[_Job[Any] | None] = [None] if failure else []
        while None not in group:
            group = self._gather()
            self._on_loop(self._done_in_thread, self._commit([job for job in group if job is not None]))
        if not failure:
            self._connection.close()

    def _gather(self) -> list[_Job[Any] | None]:
        """Return the jobs of the next commit: all that wait."""
        group = [self._jobs.get()]
        while len(group) < MAX_GROUP and not self._jobs.empty():
            group.append(self._jobs.get())
        return group

    def _open(self) -> sqlite3.Connection:
        waiting = OpeningLog()
        while True:
            try:
                return self._connect()
            except (sqlite3.Error, OSError) as error:
                failure = store_failure(self._path, error)
                if self._closed.is_set() or not isinstance(failure, PASSING):
                    raise
            waiting.report(failure)
            self._closed.wait(UNWRITABLE_SECONDS)

    def _connect(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        connection = sqlite3.connect(self._path, isolation_level=None, timeout=LOCKED_SECONDS, check_same_thread=False)
        try:
            self._prepare(connection)
            check_writable(connection)
            self._opened_file = self._path.stat()
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA temp_store=MEMORY")  # otherwise the undo data of savepoints goes to a file
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA secure_delete=ON")  # deleted content is overwritten in the file
        migrate(connection, self._migrations)

    def _commit(self, group: Sequence[_Job[Any]]) -> list[_Outcome]:
        """Commit all together; if there is no room for all, one by one, because reading needs none."""
        outcomes = self._commit_together(group)
        if len(group) > 1 and all(isinstance(failed, StoreFull) for _, _, failed in outcomes):
            return [outcome for job in group for outcome in self._commit_together([job])]
        return outcomes

    def _commit_together(self, group: Sequence[_Job[Any]]) -> list[_Outcome]:
        connection, started = self._connection, time.monotonic()
        changes = connection.total_changes
        try:
            self.check_name()
            self._sync(any(job.is_synced for job in group))
            connection.execute("BEGIN IMMEDIATE")
            outcomes: list[_Outcome] = [(job, *self._attempt(connection, job)) for job in group]
            connection.execute("COMMIT")
            self._committed(connection)
            if connection.total_changes != changes:  # reading needs no room
                _unwritable.pop(self._path, None)
        except (sqlite3.Error, OSError, StoreFailed, StoreFenced) as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            failure = error if isinstance(error, StoreFailed | StoreFenced) else store_failure(self._path, error)
            outcomes = [(job, None, failure) for job in group]
            if isinstance(failure, StoreUnwritable):
                _unwritable[self._path] = str(failure)
        self._commit_seconds += (time.monotonic() - started - self._commit_seconds) / 4
        return outcomes

    def _sync(self, is_synced: bool) -> None:
        """Whether the next commit is on the disk when it returns: with all that was committed before it."""
        if is_synced is not self._is_synced:
            self._connection.execute(f"PRAGMA synchronous={'FULL' if is_synced else 'NORMAL'}")
            self._is_synced = is_synced

    def check_name(self) -> None:
        """Raises `StoreGone` or `StoreReplaced` where the next start would not find the file that is open."""
        try:
            found = self._path.stat()
        except (FileNotFoundError, NotADirectoryError):
            raise StoreGone(self._path) from None
        if not os.path.samestat(found, self._opened_file):
            raise StoreReplaced(self._path)

    def _attempt(self, connection: sqlite3.Connection, job: _Job[Any]) -> tuple[Any, Exception | None]:
        connection.execute("SAVEPOINT job")
        try:
            value = job.work(connection)
            if isinstance(value, sqlite3.Cursor):
                value.close()  # one that is collected in another thread resets a statement that this one is using
        except Exception as error:
            if isinstance(error, sqlite3.Error) and not connection.in_transaction:
                raise  # SQLite itself has undone the whole group, as it does when the disk is full
            connection.execute("ROLLBACK TO job")
            connection.execute("RELEASE job")
            return None, store_failure(self._path, error) if isinstance(error, sqlite3.Error) else error
        connection.execute("RELEASE job")
        return value, None

    def _on_loop(self, call: Callable[..., None], *args: Any) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call, *args)

    def _done_in_thread(self, outcomes: Sequence[_Outcome]) -> None:
        self._in_thread -= len(outcomes)
        self._settle(outcomes)

    def _settle(self, outcomes: Sequence[_Outcome]) -> None:
        for job, value, failed in outcomes:
            _settle(job.future, value, failed)
        if self._path in _unwritable and self._trying is None and not self._closed.is_set():
            self._trying = self._loop.call_later(UNWRITABLE_SECONDS, self._try_to_write)

    def _try_to_write(self) -> None:
        """Find out whether writing works again: while it does not, nothing else may be stored."""
        self._trying = None
        if not self._closed.is_set():
            self._put(_write_version, is_short=True).add_done_callback(self._has_tried)

    def _has_tried(self, tried: asyncio.Future[None]) -> None:
        if not tried.cancelled() and tried.exception() is None:
            _unwritable.pop(self._path, None)


def _write_version(connection: sqlite3.Connection) -> None:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    connection.execute(f"PRAGMA user_version={version}")


def _settle(future: asyncio.Future[Any], value: Any, error: Exception | None) -> None:
    if future.done():  # the awaiter was cancelled; the commit stays
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(value)


def _log_failure(noted: asyncio.Future[object]) -> None:
    if not noted.cancelled() and (error := noted.exception()):
        log.error("%s", error)


# A database file that belongs to the process that opened it last, with secure deletion; other processes read it.

_OWNERS = "CREATE TABLE IF NOT EXISTS ownership (role TEXT PRIMARY KEY, token TEXT NOT NULL) WITHOUT ROWID"


class OwnedDatabase(Database):
    """A `Database` that belongs to the process that opened it last. Only the owner may `write` and `erase`; earlier
    owners, which were believed dead, get `StoreFenced`. Every process that has the file open may `run`. Each role has
    its own owner.
    """

    def __init__(self, path: Path, migrations: Sequence[str], role: str = "owner") -> None:
        super().__init__(path, migrations, self._wipe_log)
        self._role, self._token = role, uuid.uuid4().hex
        self._is_log_to_be_wiped = True  # it may still contain content that a killed process had deleted

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return `work(connection)` after its commit."""
        return await self.run(self._owned(work))

    async def write_with_others(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Like `write`, in one commit with all other work within a twentieth of a second."""
        return await self.run_with_others(self._owned(work))

    async def write_short(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Like `write`, for work that takes no longer than a commit."""
        return await self.run_short(self._owned(work))

    async def write_unsynced(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return `work(connection)` after a commit that is not on the disk yet, as `run_unsynced` does."""
        return await self.run_unsynced(self._owned(work))

    async def erase(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return `work(connection)` once the content that it deletes is in no file any more, including the write-ahead
        log.
        """

        def wiped(db: sqlite3.Connection) -> T:
            self._is_log_to_be_wiped = True
            return work(db)

        return await self.write(wiped)

    def _wipe_log(self, db: sqlite3.Connection) -> None:
        if self._is_log_to_be_wiped:
            busy, *_ = db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            self._is_log_to_be_wiped = bool(busy)  # by a reader that is slow: the next commit tries again

    def _prepare(self, connection: sqlite3.Connection) -> None:
        super()._prepare(connection)
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(_OWNERS)
        connection.execute("INSERT OR REPLACE INTO ownership VALUES (?, ?)", (self._role, self._token))
        connection.execute("COMMIT")
        self._wipe_log(connection)

    def _owned(self, work: Callable[[sqlite3.Connection], T]) -> Callable[[sqlite3.Connection], T]:
        def owned(db: sqlite3.Connection) -> T:
            sql = "SELECT 1 FROM ownership WHERE role = ? AND token = ?"
            if db.execute(sql, (self._role, self._token)).fetchone() is None:
                raise StoreFenced(f"{self._path}: a newer process has opened it; this one may write nothing any more")
            return work(db)

        return owned


class DatabaseReader:
    """A read-only connection to a database file that another process owns. It reads in the caller's thread, which is
    faster for a few rows than starting a thread, and never waits for a lock.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection: sqlite3.Connection | None = None

    def read(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return `work(connection)`, which sees one state of the file. Raises `StoreFailed`."""
        try:
            if self._connection is None:
                self._connection = self._open()
            self._connection.execute("BEGIN")
            try:
                return work(self._connection)
            finally:
                self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            raise store_failure(self._path, error, what="cannot be read: ") from None

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()

    def _open(self) -> sqlite3.Connection:
        uri = f"{self._path.resolve().as_uri()}?mode=ro"
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=0)
        connection.row_factory = sqlite3.Row
        return connection


async def read_apart(path: Path, work: Callable[[sqlite3.Connection], T]) -> T:
    """Return `work(connection)` as `DatabaseReader` reads, in a thread: for more than a few rows. Raises
    `StoreFailed`."""

    def done() -> T:
        with closing(DatabaseReader(path)) as reader:
            return reader.read(work)

    return await asyncio.to_thread(done)
