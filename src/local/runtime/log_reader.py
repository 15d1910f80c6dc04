"""The log file for readers: its records, a selection of them, and those that are added."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, BinaryIO, Self

from local.core.text import LEVELS, visible
from local.runtime.logs import KEPT

_LINE = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}) ([a-z]+) (.*?) (\S+) (.*)")


@dataclass(frozen=True, slots=True)
class LogRecord:
    """One log message of a process. `text` is all of it, with the lines of a traceback. For a line that is not a log
    line, such as the end of one that was cut off, the other fields are empty, and it belongs to no participant.
    """

    text: str
    at: str = ""
    level: str = ""
    participant: str = ""
    query_id: str = ""
    message: str = ""

    @classmethod
    def of(cls, lines: list[str]) -> LogRecord:
        """The record of a first line and those that follow it."""
        text, found = "\n".join(lines), _LINE.fullmatch(lines[0])
        if found is None:
            return cls(text)
        at, level, participant, query_id, message = found.groups()
        return cls(text, at, level, participant, query_id, "\n".join([message, *lines[1:]]))

    def as_json(self) -> dict[str, Any]:
        """Return at (seconds since 1970), level, participant, query_id (null if there is none), message."""
        query_id = self.query_id if self.query_id not in ("", "-") else None
        return {
            "at": self.seconds, "level": self.level or None, "participant": self.participant or None,
            "query_id": query_id, "message": self.message or self.text,
        }  # fmt: skip

    @property
    def seconds(self) -> float | None:
        """The time of the record, since 1970; the file has local time."""
        try:
            return datetime.fromisoformat(self.at).timestamp()
        except ValueError:
            return None


@dataclass(frozen=True, slots=True)
class LogSelection:
    """A selection of log records: of these participants (none: of all), from this index in LEVELS on, from a time on,
    and of a query by the beginning of its id.
    """

    participants: frozenset[str] = frozenset()
    level: int = 0
    since: float | None = None
    query_id: str = ""

    def wants(self, record: LogRecord) -> bool:
        """Whether a record is among them."""
        if self.participants and record.participant not in self.participants:
            return False
        if record.level in LEVELS and LEVELS.index(record.level) < self.level:
            return False
        if self.since is not None and (record.seconds is None or record.seconds < self.since):
            return False
        return record.query_id.startswith(self.query_id)


def read_log(path: Path, end: int | None = None) -> Iterator[LogRecord]:
    """All records of a log, the files that were moved aside first; of the last one the first `end` bytes."""
    for number in range(KEPT, 0, -1):
        yield from _records(_lines(path.with_name(f"{path.name}.{number}"), None))
    yield from _records(_lines(path, end))


class LogFollower:
    """A follower of new lines in a log, also when the file is moved aside and a new one begins. `offset` is how far
    the file was read, in bytes. Use as `with`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None
        self._rest = b""
        self._open()
        self.offset = 0 if self._file is None else self._file.seek(0, 2)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            self._file.close()

    def news(self) -> Iterator[LogRecord]:
        """The records since the last call that are whole: a line without its end waits."""
        yield from _records(self._read())
        if self._was_moved():
            yield from _records(self._read())  # lines added before it was replaced
            self._open()
            yield from _records(self._read())

    def _read(self) -> list[str]:
        if self._file is None:
            return []
        *whole, self._rest = (self._rest + self._file.read()).split(b"\n")
        return [_text(line) for line in whole]

    def _was_moved(self) -> bool:
        try:
            now = self._path.stat()
        except OSError:
            return False
        return self._file is None or (now.st_dev, now.st_ino) != _identity(self._file)

    def _open(self) -> None:
        if self._file is not None:
            self._file.close()
        try:
            self._file = self._path.open("rb")
        except OSError:
            self._file = None


def _identity(file: BinaryIO) -> tuple[int, int]:
    status = os.fstat(file.fileno())
    return status.st_dev, status.st_ino


def _lines(path: Path, end: int | None) -> Iterable[str]:
    try:
        with path.open("rb") as file:
            data = file.read() if end is None else file.read(end)
    except OSError:
        return ()
    return [_text(line) for line in data.split(b"\n") if line]


def _text(line: bytes) -> str:
    return "\t".join(visible(part) for part in line.decode(errors="replace").split("\t"))


def _records(lines: Iterable[str]) -> Iterator[LogRecord]:
    """Lines that do not begin as records do belong to the one before."""
    held: list[str] = []
    for line in lines:
        if held and _LINE.fullmatch(line):
            yield LogRecord.of(held)
            held = []
        held.append(line)
    if held:
        yield LogRecord.of(held)
