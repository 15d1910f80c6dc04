"""One SQLite file, one thread that owns it, and group commit: what waits together is committed together."""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from local.errors import StoreFailed, StoreFenced, StoreFull, StoreGone, StoreLocked, StoreReplaced
from local.services.sqlite_file import PASSING, UNWRITABLE_SECONDS, OpeningLog, check_writable, migrate, store_failure

log = logging.getLogger(__name__)

T = TypeVar("T")
MAX_GROUP = 256
GROUP_COMMIT_SECONDS = 0.05
QUICK_SECONDS = 0.005  # a commit that takes longer is not for the loop
LOCKED_SECONDS = 5.0  # then a commit fails that another process's is in the way of, and an opening says that it waits


@dataclass(slots=True)
class _Job(Generic[T]):
    work: Callable[[sqlite3.Connection], T]
    future: asyncio.Future[T]
    is_synced: bool = True
    is_short: bool = False


_Outcome = tuple[_Job[Any], Any, Exception | None]


class Database:
    """Use as `async with`. `migrations` are SQL scripts; the file's `user_version` says how many it has had.

    Every job runs inside a transaction that is on the disk (`synchronous=FULL`) when its awaiter goes on, in the order
    in which they came: in the owning thread, or, where all that waits is short and commits are quick, on the loop
    itself, which saves two changes of threads. A job that raises leaves no trace and disturbs no other. Raises
    `StoreFailed` for what SQLite reports, `StoreUnwritable` where that passes, `StoreReplaced` where another file has
    taken its name. `committed(connection)` is called after each commit and before its awaiters go on; what it raises of
    `sqlite3.Error`, `OSError` and `StoreFailed` they get.

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
        self._waiting: list[_Job[Any]] = []  # on the loop, in order
        self._handing_over: asyncio.TimerHandle | None = None
        self._in_thread = 0  # jobs
        self._is_synced = True
        self._commit_seconds = 0.0  # of the last commits, the latest counting most
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
        self._give_to_thread()
        self._jobs.put(None)
        await asyncio.to_thread(self._thread.join)

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do `work(connection)` in a transaction and return its value after the commit."""
        return await self._put(work)

    async def run_short(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """As `run`, for what takes no longer than a commit does."""
        return await self._put(work, is_short=True)

    async def run_unsynced(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """As `run_short`, after a commit that is not on the disk yet, where the next synced one brings it: no death of
        a process undoes it, only one of the whole machine."""
        return await self._put(work, is_short=True, is_synced=False)

    async def run_with_others(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """As `run`, in one commit with whatever else is done within a twentieth of a second."""
        return await self._put(work, seconds=GROUP_COMMIT_SECONDS)

    def note(self, work: Callable[[sqlite3.Connection], object]) -> asyncio.Future[object]:
        """Have `work(connection)` done with the next job, or a twentieth of a second from now; in order all the same.

        For what nobody waits for and a crash may undo: it costs no commit of its own. A failure is logged.
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
            failure = StoreFailed(f"{self._path}: cannot be opened: {error}")
        self._on_loop(_settle, self._opened, None, failure)
        group: list[_Job[Any] | None] = [None] if failure else []
        while None not in group:
            group = self._gather()
            self._on_loop(self._done_in_thread, self._commit([job for job in group if job is not None]))
        if not failure:
            self._connection.close()

    def _gather(self) -> list[_Job[Any] | None]:
        """What is committed next: all that waits."""
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
            waiting.tell(failure)
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
        connection.execute("PRAGMA temp_store=MEMORY")  # what a savepoint may have to undo would go to a file, else
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA secure_delete=ON")  # what a user deletes is gone from the file
        migrate(connection, self._migrations)

    def _commit(self, group: Sequence[_Job[Any]]) -> list[_Outcome]:
        """All together; where there is no room for all, one by one, as what only reads needs none."""
        outcomes = self._commit_together(group)
        if len(group) > 1 and all(isinstance(failed, StoreFull) for _, _, failed in outcomes):
            return [outcome for job in group for outcome in self._commit_together([job])]
        return outcomes

    def _commit_together(self, group: Sequence[_Job[Any]]) -> list[_Outcome]:
        connection, started = self._connection, time.monotonic()
        try:
            self.check_name()
            self._sync(any(job.is_synced for job in group))
            connection.execute("BEGIN IMMEDIATE")
            outcomes: list[_Outcome] = [(job, *self._attempt(connection, job)) for job in group]
            connection.execute("COMMIT")
            self._committed(connection)
        except (sqlite3.Error, OSError, StoreFailed, StoreFenced) as error:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            failure = error if isinstance(error, StoreFailed | StoreFenced) else store_failure(self._path, error)
            outcomes = [(job, None, failure) for job in group]
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


def _settle(future: asyncio.Future[Any], value: Any, error: Exception | None) -> None:
    if future.done():  # the awaiter was cancelled; what was committed stays
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(value)


def _log_failure(noted: asyncio.Future[object]) -> None:
    if not noted.cancelled() and (error := noted.exception()):
        log.error("%s", error)
