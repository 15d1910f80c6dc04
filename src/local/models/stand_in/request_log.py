"""What the stand-in was really sent, and how each request ended."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass(slots=True)
class RequestRecord:
    """One generating request. Times are the server's monotonic clock in seconds; `disconnected_at` is set if the client
    left before the end. `prompt_tokens` and `kept_messages` are what was left after cutting to the context."""

    number: int
    path: str
    started_at: float
    model: str = ""
    messages: list[Json] = field(default_factory=list)
    tools: list[Json] = field(default_factory=list)
    options: Json = field(default_factory=dict)
    think: bool | str | None = None
    stream: bool = True
    truncate: bool = True
    format: Any = None
    prompt_tokens: int = 0
    kept_messages: int = 0
    script: str = ""
    faults: list[str] = field(default_factory=list)
    status: int = 0
    chunks: int = 0
    finished_at: float | None = None
    disconnected_at: float | None = None


class RequestLog:
    """The last requests, oldest first."""

    def __init__(self, size: int) -> None:
        self._records: deque[RequestRecord] = deque(maxlen=size)
        self._open: set[int] = set()
        self._count = 0
        self._changed = asyncio.Event()

    def begin(self, path: str, now: float) -> RequestRecord:
        """Open the record of a request; `end` must follow."""
        self._count += 1
        record = RequestRecord(self._count, path, now)
        self._records.append(record)
        self._open.add(record.number)
        self._changed.set()
        return record

    def end(self, record: RequestRecord, now: float) -> None:
        """Close the record."""
        record.finished_at = now
        self._open.discard(record.number)
        self._changed.set()

    async def until_idle(self) -> None:
        """Wait until no request is being answered."""
        await self._until(lambda: not self._open)

    async def until_begun(self, requests: int) -> None:
        """Wait until the log holds so many requests."""
        await self._until(lambda: len(self._records) >= requests)

    async def _until(self, reached: Callable[[], bool]) -> None:
        while not reached():
            self._changed.clear()
            await self._changed.wait()

    def clear(self) -> None:
        """Forget what was logged."""
        self._records.clear()

    def entries(self) -> list[Json]:
        """Every record as JSON."""
        return [asdict(record) for record in self._records]
