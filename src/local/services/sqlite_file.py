"""What every SQLite file of ours needs: its latest schema, an opening that waits, errors for a person."""

from __future__ import annotations

import asyncio
import errno
import logging
import math
import os
import sqlite3
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

from local.backoff import Backoff
from local.errors import StoreDamaged, StoreFailed, StoreLocked, StoreUnwritable, refused_by_disk

T = TypeVar("T")
log = logging.getLogger(__name__)

UNWRITABLE_SECONDS = 0.5  # between two tries to open a file that cannot be written
SAY_SECONDS = 5.0
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 1.0  # seconds between two looks whether there is room for one more row
PASSING = (StoreUnwritable, StoreLocked)  # what an opening waits for
# SQLITE_IOERR_SHMSIZE: the file beside the WAL could not grow, a way of being full that has another name.
_FULL_CODES = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE)
# What SQLite says, in the lowest byte, where a file system lets it make or change no file, whatever the reason.
_REFUSED_CODES = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR)
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


def check_writable(connection: sqlite3.Connection) -> None:
    """Raises SQLite's error where it has opened the file to be read alone, for as long as it is open: as it does where
    the file system is read-only and a killed process has left what it kept beside the file."""
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("PRAGMA user_version=0")
    connection.execute("ROLLBACK")


def store_failure(path: Path, error: sqlite3.Error | OSError, *, what: str = "") -> StoreFailed:
    """The failure: one of `PASSING` where it works again by itself once what is in the way has gone. `what` is what
    failed, if need be."""
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
    """What keeps everybody from writing there, which SQLite does not tell from a missing permission."""
    try:
        disk = os.statvfs(path.parent)
    except OSError:  # the folder itself is missing
        return None
    if disk.f_flag & os.ST_RDONLY:
        return errno.EROFS
    is_full = disk.f_bavail == 0 or (disk.f_favail == 0 and disk.f_files > 0)  # some count no files
    return errno.ENOSPC if is_full else _refusal(path.parent)


def _refusal(folder: Path) -> int | None:
    """What a write to a file system comes to: one that a fault has made read-only does not have to say so."""
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(4096))
    except OSError as error:
        return error.errno
    return None


class OpeningLog:
    """Says now and then what keeps a file from being opened."""

    def __init__(self) -> None:
        self._told_at = -math.inf

    def tell(self, failure: StoreFailed) -> None:
        """A failure is in the way, still or again."""
        if time.monotonic() - self._told_at >= SAY_SECONDS:
            log.warning("opening waits: %s", failure)
            self._told_at = time.monotonic()


async def open_patiently(attempt: Callable[[], T]) -> T:
    """What `attempt()` opens, in a thread; tried again for as long as it raises one of `PASSING`, which is logged."""
    waiting = OpeningLog()
    while True:
        try:
            return await asyncio.to_thread(attempt)
        except PASSING as error:
            waiting.tell(error)
        await asyncio.sleep(UNWRITABLE_SECONDS)


async def within_patience(attempt: Callable[[], Awaitable[T]], seconds: float) -> tuple[T, float]:
    """What `attempt()` comes to, made again for so long while nothing can be written, and for how many seconds nothing
    could be. Raises what it raises then."""
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
