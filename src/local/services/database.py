"""One SQLite file, one thread that owns it, and group commit: what waits together is committed together.

With an owner, from whom a later one takes the file over, deleted things are gone from it for good.
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from local.errors import StoreFailed, StoreFenced, StoreGone, StoreReplaced
from local.services.sqlite_file import PASSING, UNWRITABLE_SECONDS, OpeningLog, migrate, store_failure

log = logging.getLogger(__name__)

T = TypeVar("T")
MAX_GROUP = 256
GROUP_COMMIT_SECONDS = 0.05
LOCKED_SECONDS = 5.0  # then a commit fails that another process's is in the way of, and an opening says that it waits
_OWNERS = "CREATE TABLE IF NOT EXISTS ownership (role TEXT PRIMARY KEY, token TEXT NOT NULL) WITHOUT ROWID"


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
    `StoreUnwritable` where that passes, `StoreReplaced` where another file has taken its name. `committed(connection)`
    is called in the owning thread after each commit and before its awaiters go on; what it raises of `sqlite3.Error`,
    `OSError` and `StoreFailed` they get.

    While nothing can be written opening waits and logs it: the disk is full or read-only, or another process is in the
    middle of a commit. One that is frozen there holds the file until it is continued or killed.
    """

    def __init__(
        self,
        path: Path,
        migrations: Sequence[str],
        committed: Callable[[sqlite3.Connection], None] = lambda connection: None,
    ) -> None:
        self._path, self._migrations, self._committed = path, migrations, committed
        self._closed = threading.Event()
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
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *error: object) -> None:
        self._closed.set()
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
        if self._closed.is_set():
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
        waiting = OpeningLog()
        while True:
            try:
                return self._connect()
            except (sqlite3.Error, OSError) as error:
                failure = store_failure(self._path, error)
                if self._closed.is_set() or not isinstance(failure, PASSING):
                    raise
            waiting.tell(failure)
            self._closed.wait(UNWRITABLE_SECONDS)

    def _connect(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        connection = sqlite3.connect(self._path, isolation_level=None, timeout=LOCKED_SECONDS)
        try:
            self._prepare(connection)
            self._opened_file = self._path.stat()
        except BaseException:
            connection.close()
            raise
        return connection

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
            self._check_name()
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
        except (sqlite3.Error, OSError, StoreFailed, StoreFenced) as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            failure = error if isinstance(error, StoreFailed | StoreFenced) else store_failure(self._path, error)
            outcomes = [(job, None, failure) for job in group]
        for job, value, failed in outcomes:
            self._tell(job.future, value, failed)

    def _check_name(self) -> None:
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


class OwnedDatabase(Database):
    """The owner alone may `write` and `erase`; others, whose place it has taken because they were taken for dead, get
    `StoreFenced`. `run` is open to all who have the file open. Roles are owned apart from each other."""

    def __init__(self, path: Path, migrations: Sequence[str], role: str = "owner") -> None:
        super().__init__(path, migrations, self._wipe_log)
        self._role, self._token = role, uuid.uuid4().hex
        self._is_log_to_be_wiped = True  # what a killed process had deleted may still be in it

    async def write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return `work(connection)` after its commit."""
        return await self.run(self._owned(work))

    async def write_with_others(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """As `write`, in the commit of whatever else is done within a twentieth of a second."""
        return await self.run_with_others(self._owned(work))

    async def write_early(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return `work(connection)` before its commit, as `run_early` does."""
        return await self.run_early(self._owned(work))

    async def erase(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return `work(connection)` once what it deletes is in no file any more, the write-ahead log included."""

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


def _log_failure(noted: asyncio.Future[object]) -> None:
    if not noted.cancelled() and (error := noted.exception()):
        log.error("%s", error)
