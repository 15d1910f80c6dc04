"""The log of a replicated journal: its engine behind three methods, and the form of its records.

One change of the journal is one record: a group commit (up to 512 messages and 1 MiB of payloads, with the changes of
consumers), the registration of a consumer, a redaction, a removal of old messages. A record is a line of JSON, followed
by its byte strings one after the other; where one belongs, the JSON has its length.
"""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol

from pydantic import TypeAdapter

from local.core.errors import StoreFailed
from local.journal.schema import put
from local.journal.store import Change, Commit, Forgetting, Redaction, Registration, Removal, set_progress


class CommitLog(Protocol):
    """An ordered log with one writer at a time, kept by an engine that replicates it. Positions count from 1.

    The methods raise `StoreUnwritable` while the engine is not available, after they have tried for some seconds. The
    outcome of such an append is unknown: the caller repeats it, with the same record, before any other.
    """

    def open(self) -> AbstractAsyncContextManager[int]:
        """Connect, and return the last position: 0 for an empty log."""
        ...

    async def append(self, record: bytes, after: int) -> int:
        """Append a record behind position `after`, which has to be the last; returns its position.

        A record that is there already, because an answer was lost, is not appended again: no two records are equal.
        Raises `StoreFenced` if another record has that position.
        """
        ...

    def read(self, after: int) -> AsyncIterator[tuple[int, bytes]]:
        """Yield the positions and records behind `after`, in order, up to the position that is the last now."""
        ...


Rows = Sequence[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Takeover:
    """The first record of each owner. The owner before it is behind from then on.

    An owner that has restored a snapshot of its other stores sets the progress of consumers, rows of these tables, back
    to that of the snapshot: what the stores lack is delivered again.
    """

    owner: str
    consumers: Rows = ()
    deliveries: Rows = ()

    def apply(self, db: sqlite3.Connection) -> None:
        set_progress(db, {"consumers": self.consumers, "deliveries": self.deliveries})


@dataclass(frozen=True, slots=True)
class Moved:
    """The last record of a stream, with the name of the one that continues it. It is no part of the journal."""

    to: str

    def apply(self, db: sqlite3.Connection) -> None:
        """Nothing in the journal changes."""


def moved_to(record: bytes) -> str:
    """Return the name in a record of `Moved`; empty for any other."""
    return str(json.loads(record)[2]["to"]) if record.startswith(b'["Moved",') else ""


@dataclass(frozen=True, slots=True)
class TableRows:
    """Rows of a table, without their checksums: a part of the journal with which a log begins. The state comes last."""

    table: str
    rows: Rows

    def apply(self, db: sqlite3.Connection) -> None:
        for row in self.rows:
            put(db, self.table, row)


_ADAPTERS: dict[str, TypeAdapter[Any]] = {
    kind.__name__: TypeAdapter(kind)
    for kind in (Commit, Registration, Forgetting, Redaction, Removal, Takeover, Moved, TableRows)
}


def pack(change: Change[object]) -> bytes:
    """Return a record of a change. Two of equal changes differ."""
    kind, strings = type(change).__name__, list[bytes]()

    def plain(value: Any) -> Any:
        if isinstance(value, bytes):
            strings.append(value)
            return {"bytes": len(value)}
        return sorted(value)  # a set

    content = [kind, uuid.uuid4().hex, _ADAPTERS[kind].dump_python(change)]
    return b"\n".join((json.dumps(content, separators=(",", ":"), default=plain).encode(), b"".join(strings)))


def unpack(record: bytes) -> Change[object]:
    """Return the change of a record. Raises `StoreFailed` for one that this program does not know."""
    head, _, body = record.partition(b"\n")
    at = 0

    def whole(value: dict[str, Any]) -> Any:
        nonlocal at
        if value.keys() == {"bytes"} and isinstance(length := value["bytes"], int):
            at += length
            return body[at - length : at]
        return value

    try:
        kind, _, content = json.loads(head, object_hook=whole)
        change: Change[object] = _ADAPTERS[kind].validate_python(content)
    except (ValueError, KeyError) as error:
        raise StoreFailed(f"the journal's log has a record that this program cannot read: {error}") from None
    return change
