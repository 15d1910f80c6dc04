"""What every SQLite file of ours needs: its latest schema, reading beside its owner, errors for a person."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

from local.errors import StoreDamaged, StoreFailed, StoreFull

T = TypeVar("T")
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


class DatabaseReader:
    """Sees what is committed, and can change nothing. For a few rows, which are there before a thread has begun: it
    reads in the caller's thread, and never waits for a lock."""

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
        """Give up the connection."""
        if self._connection is not None:
            self._connection.close()

    def _open(self) -> sqlite3.Connection:
        uri = f"{self._path.resolve().as_uri()}?mode=ro"
        connection = sqlite3.connect(uri, uri=True, isolation_level=None, timeout=0)
        connection.row_factory = sqlite3.Row
        return connection
