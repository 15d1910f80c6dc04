"""One SQLite file, one thread that owns it, and group commit: what waits together is committed together."""

from __future__ import annotations

import asyncio
import errno
import logging
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Generic, Self, TypeVar

from local.errors import StoreDamaged, StoreFailed, StoreFull

log = logging.getLogger(__name__)

T = TypeVar("T")
MAX_GROUP = 256
GROUP_COMMIT_SECONDS = 0.05
LOCKED_SECONDS = 5.0  # then a commit fails that another process's is in the way of, and an opening says that it waits
# SQLITE_IOERR_SHMSIZE: the file beside the WAL could not grow, the one way of being full that has another name.
_FULL_CODES = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE)
# What SQLite says of a file that is broken; anything else (no permission, no space, busy) is no damage.
_DAMAGE_CODES = (sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT)
_UNREADABLE_CODES = (sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ)


def migrate(connection: sqlite3.Connection, migrations: Sequence[str]) -> None:
    """Bring a database to the latest schema. Raises `StoreFailed` for a schema that is newer than that."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version > len(migrations):
        raise StoreFailed(f"schema version {version} is newer than this program's {len(migrations)}")
    for number, script in enumerate(migrations[version:], version + 1):
        connection.executescript(f"BEGIN; {script}; PRAGMA user_version={number}; COMMIT")


def store_failure(path: Path, error: sqlite3.Error | OSError, *, what: str = "") -> StoreFailed:
    """The error for a person: `StoreFull` where space is what is missing. `what` is what failed, if need be."""
    if isinstance(error, OSError):
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    else:
        is_full = getattr(error, "sqlite_errorcode", None) in _FULL_CODES
    if is_full:
        return StoreFull(f"{path}: the disk is full; free some space and try again")
    return StoreFailed(f"{path}: {what}{error}")


def connect_read_only(path: Path) -> closing[sqlite3.Connection]:
    """A connection that changes nothing, not even by closing: no checkpoint, no removal of the WAL."""
    return closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None))


@contextmanager
def naming_damage() -> Iterator[None]:
    """Make `StoreDamaged` of what SQLite says of a broken file; other errors (busy, no permission) stay theirs."""
    try:
        yield
    except UnicodeDecodeError as error:  # Python, on a message of SQLite's that quotes damaged text
        raise StoreDamaged("SQLite cannot read the file: malformed text") from error
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)  # none: a value that Python cannot make out
        if code in _UNREADABLE_CODES or code & 0xFF in _DAMAGE_CODES:
            raise StoreDamaged(f"SQLite cannot read the file: {error}") from error
        raise


@dataclass(slots=True)
class _Job(Generic[T]):
    work: Callable[[sqlite3.Connection], T]
    future: asyncio.Future[T]
    is_urgent: bool = True
    is_early: bool = False


class Database:
    """Use as `async with`. `migrations` are SQL scripts; the file's `user_version` says how many it has had.

    Every job runs in the owning thread, inside a transaction that is on the disk (`synchronous=FULL`) when its awaiter
    goes on. A job that raises leaves no trace and disturbs no other. Raises `StoreFailed` for what SQLite reports,
    `StoreFull` where the disk is full. `committed(connection)` is called in the owning thread after each commit and
    before its awaiters go on; what it raises of `sqlite3.Error`, `OSError` and `StoreFailed` they get.

    While another process is in the middle of a commit, opening waits and logs it: one that is frozen there holds the
    file until it is continued or killed.
    """

    def __init__(
        self,
        path: Path,
        migrations: Sequence[str],
        committed: Callable[[sqlite3.Connection], None] = lambda connection: None,
    ) -> None:
        self._path, self._migrations, self._committed = path, migrations, committed
        self._closed = False
        self._owed: list[_Job[Any]] = []  # told, and not on the disk
        self._jobs: queue.SimpleQueue[_Job[Any] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._serve, name=f"database {path.name}", daemon=True)

    async def __aenter__(self) -> Self:
        self._loop = asyncio.get_running_loop()
        self._opened: asyncio.Future[None] = self._loop.create_future()
        self._thread.start()
        try:
            await self._opened
        except BaseException:
            await self.__aexit__(None, None, None)
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed = True
        self._jobs.put(None)
        await asyncio.to_thread(self._thread.join)

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do `work(connection)` in a transaction and return its value after the commit."""
        return await self._put(work)

    async def run_with_others(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """As `run`, in one commit with whatever else is done within a twentieth of a second."""
        return await self._put(work, is_urgent=False)

    def note(self, work: Callable[[sqlite3.Connection], object]) -> asyncio.Future[object]:
        """Have `work(connection)` done with the next job, or a twentieth of a second from now; in order all the same.

        For what nobody waits for and a crash may undo: it costs no commit of its own. A failure is logged.
        """
        noted = self._put(work, is_urgent=False)
        noted.add_done_callback(_log_failure)
        return noted

    async def run_early(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do `work(connection)` in a transaction and return its value before the commit, which follows at once.

        If that fails, `work` is done again at the beginning of the next transaction, before anything that comes later,
        and so on until it is on the disk: it has to come to the same. Only the end of the process can undo it.
        """
        return await self._put(work, is_early=True)

    def _put(
        self, work: Callable[[sqlite3.Connection], T], *, is_urgent: bool = True, is_early: bool = False
    ) -> asyncio.Future[T]:
        if self._closed:
            raise StoreFailed(f"{self._path}: is closed")
        future: asyncio.Future[T] = self._loop.create_future()
        self._jobs.put(_Job(work, future, is_urgent, is_early))
        return future

    def _serve(self) -> None:
        try:
            connection = self._open()
        except (sqlite3.Error, OSError) as error:
            self._tell(self._opened, None, store_failure(self._path, error, what="cannot be opened: "))
            return
        except StoreFailed as error:
            self._tell(self._opened, None, StoreFailed(f"{self._path}: cannot be opened: {error}"))
            return
        self._tell(self._opened, None, None)
        running = True
        while running:
            group = self._gather()
            running = None not in group
            jobs = [job for job in group if job is not None]
            if jobs:
                self._commit(connection, jobs)
        connection.close()

    def _gather(self) -> list[_Job[Any] | None]:
        """What is committed next: all that waits; while none of it is urgent, a little more is waited for."""
        group: list[_Job[Any] | None] = []
        job = self._jobs.get()
        until = time.monotonic() + GROUP_COMMIT_SECONDS
        while True:
            group.append(job)
            if job is None or job.is_urgent:
                until = 0.0
            if len(group) == MAX_GROUP:
                return group
            try:
                job = self._jobs.get(timeout=max(0.0, until - time.monotonic()))
            except queue.Empty:
                return group

    def _open(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        while True:
            connection = sqlite3.connect(self._path, isolation_level=None, timeout=LOCKED_SECONDS)
            try:
                self._prepare(connection)
                return connection
            except BaseException as error:
                connection.close()
                if self._closed or not _is_locked(error):
                    raise
            log.warning("%s: waiting for a process that is in the middle of a commit, perhaps frozen", self._path)

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA secure_delete=ON")  # what a user deletes is gone from the file
        migrate(connection, self._migrations)

    def _commit(self, connection: sqlite3.Connection, group: Sequence[_Job[Any]]) -> None:
        outcomes: list[tuple[_Job[Any], Any, Exception | None]] = []
        try:
            connection.execute("BEGIN IMMEDIATE")
            self._owed = [job for job in self._owed if self._attempt(connection, job)[1] is None]
            for job in group:
                value, failed = self._attempt(connection, job)
                if job.is_early and failed is None:
                    self._owed.append(job)
                    self._tell(job.future, value, None)
                outcomes.append((job, value, failed))
            connection.execute("COMMIT")
            self._owed = []
            self._committed(connection)
        except (sqlite3.Error, OSError, StoreFailed) as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            failure = error if isinstance(error, StoreFailed) else store_failure(self._path, error)
            outcomes = [(job, None, failure) for job in group]
        for job, value, failed in outcomes:
            self._tell(job.future, value, failed)

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

    def _tell(self, future: asyncio.Future[Any], value: Any, error: Exception | None) -> None:
        def settle() -> None:
            if future.done():  # the awaiter was cancelled; what was committed stays
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(value)

        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(settle)


def _is_locked(error: BaseException) -> bool:
    """Whether another connection was in the way for too long; the extended codes have it in their lowest byte."""
    return isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def _log_failure(noted: asyncio.Future[object]) -> None:
    if not noted.cancelled() and (error := noted.exception()):
        log.error("%s", error)
