"""Prints in a thread of its own, so that a slow terminal or pipe never holds up the reading of the bus."""

from __future__ import annotations

import asyncio
import os
import select
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Generic, Self, TypeVar

from local.apps.tap.view import View
from local.apps.terminal import OutputFailed, visible

MAX_ITEMS = 10_000
MAX_BYTES = 32 * 1024 * 1024
BATCH = 256
IDLE_SECONDS = 0.25  # how late a line that a view holds back may be
REPORT_SECONDS = 1.0
CLOSE_SECONDS = 1.0
TOO_SLOW = "because the output is slower than the bus"

T = TypeVar("T")


class Printer(Generic[T]):
    """Takes items, never blocks, and writes a view's lines to a file descriptor. Use as `async with`.

    Bounded by number and bytes: what does not fit is counted and reported on `err`, as every other loss is. It ends,
    calling `on_end` in the event loop, after `count` lines, when the reader of the output has gone, or on an error.
    """

    def __init__(
        self,
        view: View[T],
        *,
        on_end: Callable[[], object],
        count: int | None = None,
        out: int = 1,
        err: int = 2,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._view, self._on_end, self._left = view, on_end, count
        self._out, self._err, self._clock = out, err, clock
        self._items: deque[tuple[T, int]] = deque()
        self._bytes = 0
        self._lost: Counter[str] = Counter()
        self._notes: deque[str] = deque(maxlen=BATCH)
        self._next_report = clock() + REPORT_SECONDS
        self._closed = False
        self._changed = threading.Condition()
        self._failure: OutputFailed | None = None
        self._loop = asyncio.get_running_loop()
        # A daemon, because nothing can wake it from a write to a terminal that stands still.
        self._thread = threading.Thread(target=self._run, name="tap printer", daemon=True)

    async def __aenter__(self) -> Self:
        self._thread.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Write what is still there, if that is possible within a second. Raises `OutputFailed`."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        await asyncio.to_thread(self._thread.join, CLOSE_SECONDS)
        if self._thread.is_alive():
            self._give_up()
        if self._failure is not None:
            raise self._failure

    def offer(self, item: T, size: int) -> None:
        """Print an item of `size` bytes, or count it as lost if there is no room."""
        with self._changed:
            if len(self._items) >= MAX_ITEMS or self._bytes + size > MAX_BYTES:
                self._lost[TOO_SLOW] += 1
                return
            self._items.append((item, size))
            self._bytes += size
            self._changed.notify()

    def lost(self, losses: Counter[str]) -> None:
        """Report losses, given as "of what" and how many; at most once a second."""
        with self._changed:
            self._lost.update(losses)

    def note(self, text: str) -> None:
        """Say something on `err`."""
        with self._changed:
            self._notes.append(text)
            self._changed.notify()

    def _run(self) -> None:
        try:
            while (self._left is None or self._left > 0) and (batch := self._take()) is not None:
                self._say(self._take_notes(self._clock()))
                now = self._clock()
                self._put([line for item in batch for line in self._view.lines(item, now)])
                self._put(self._view.due(now))
            self._put(self._view.rest())
        except BrokenPipeError:
            pass  # whoever read the output has seen enough
        except OSError as error:
            self._failure = OutputFailed(f"the output cannot be written: {error.strerror}")
        finally:
            self._say(self._take_notes(float("inf")))
            with suppress(RuntimeError):  # the loop may be gone, if this thread was held up for long
                self._loop.call_soon_threadsafe(self._on_end)

    def _give_up(self) -> None:
        """The thread is held up in a write: say what will never be shown, if that is possible at once."""
        with self._changed:
            self._lost[TOO_SLOW] += len(self._items)
            self._items.clear()
        if select.select([], [self._err], [], 0)[1]:
            self._say(self._take_notes(float("inf")))

    def _take(self) -> list[T] | None:
        """The next items, none after a while without, None after the last."""
        with self._changed:
            if not (self._items or self._notes or self._closed):
                self._changed.wait(IDLE_SECONDS)
            if not self._items and self._closed:
                return None
            batch = [self._items.popleft() for _ in range(min(BATCH, len(self._items)))]
            self._bytes -= sum(size for _, size in batch)
            return [item for item, _ in batch]

    def _take_notes(self, now: float) -> list[str]:
        with self._changed:
            notes = list(self._notes)
            self._notes.clear()
            if now >= self._next_report:
                notes += [f"lost {number} {what}" for what, number in self._lost.items()]
                self._lost.clear()
                self._next_report = now + REPORT_SECONDS
            return notes

    def _put(self, lines: Iterable[str]) -> None:
        chosen = list(lines)[: self._left]
        if self._left is not None:
            self._left -= len(chosen)
        _write(self._out, chosen)

    def _say(self, notes: list[str]) -> None:
        with suppress(OSError):  # a reader of the errors that has gone is no reason to stop
            _write(self._err, [visible(note) for note in notes])


def _write(descriptor: int, lines: list[str]) -> None:
    """Unbuffered: a thread held up inside Python's own buffers would block the end of the program."""
    data = memoryview("".join(f"{line}\n" for line in lines).encode(errors="backslashreplace"))
    while data:
        try:
            data = data[os.write(descriptor, data) :]
        except BlockingIOError:  # another program has made the terminal or pipe that we share non-blocking
            select.select([], [descriptor], [])
