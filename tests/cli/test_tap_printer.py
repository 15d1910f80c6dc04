"""The thread that prints: bounded, and never in anybody's way."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from local.cli import tap as printer_module
from local.cli.main import OutputFailed
from local.cli.tap import MAX_ITEMS, PlainView, Printer

SECONDS = 90.0


@dataclass
class Pipe:
    """Both ends of a pipe."""

    ends: tuple[int, int] = field(default_factory=os.pipe)

    @property
    def reading(self) -> int:
        return self.ends[0]

    @property
    def writing(self) -> int:
        return self.ends[1]

    def close(self, *ends: int) -> None:
        for end in ends or self.ends:
            os.close(end)

    def read(self) -> str:
        """Everything until the writing end is closed."""
        with os.fdopen(self.reading) as file:
            return file.read()

    def rest(self) -> str:
        """Everything written; nothing more will be."""
        os.close(self.writing)
        return self.read()


@pytest.fixture
def errors() -> Iterator[Pipe]:
    yield Pipe()


async def test_lines_are_printed_in_order(errors: Pipe) -> None:
    out = Pipe()
    async with Printer(PlainView(), on_end=lambda: None, out=out.writing, err=errors.writing) as printer:
        for number in range(1000):
            printer.offer(str(number), 1)
    assert out.rest().split() == [str(number) for number in range(1000)]
    assert errors.rest() == ""


async def test_it_ends_by_itself_after_as_many_lines_as_wanted(errors: Pipe) -> None:
    out, ended = Pipe(), asyncio.Event()
    async with Printer(PlainView(), on_end=ended.set, count=3, out=out.writing, err=errors.writing) as printer:
        printer.offer("a\nb", 3)
        printer.offer("c\nd", 3)
        await asyncio.wait_for(ended.wait(), SECONDS)
    assert out.rest() == "a\nb\nc\n"
    errors.close()


async def test_a_reader_that_has_seen_enough_ends_it_quietly(errors: Pipe) -> None:
    out, ended = Pipe(), asyncio.Event()
    out.close(out.reading)
    async with Printer(PlainView(), on_end=ended.set, out=out.writing, err=errors.writing) as printer:
        printer.offer("nobody reads this", 1)
        await asyncio.wait_for(ended.wait(), SECONDS)
    assert errors.rest() == ""
    out.close(out.writing)


async def test_an_output_that_cannot_be_written_is_an_error_with_its_reason(errors: Pipe) -> None:
    ended = asyncio.Event()
    with Path("/dev/full").open("wb") as full, pytest.raises(OutputFailed, match="No space"):  # noqa: ASYNC230
        async with Printer(PlainView(), on_end=ended.set, out=full.fileno(), err=errors.writing) as printer:
            printer.offer("x", 1)
            await asyncio.wait_for(ended.wait(), SECONDS)
    errors.close()


async def test_a_pipe_that_nobody_reads_costs_items_that_are_counted_and_no_time(
    errors: Pipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(printer_module, "CLOSE_SECONDS", SECONDS)  # the reader comes; nothing is to be given up
    out = Pipe()
    printed = asyncio.Event()
    async with Printer(PlainView(), on_end=printed.set, out=out.writing, err=errors.writing) as printer:
        for _ in range(3 * MAX_ITEMS):
            printer.offer("x" * 100, 100)  # the pipe holds 64 kB
        reading = asyncio.create_task(asyncio.to_thread(out.read))
    await asyncio.wait_for(printed.wait(), SECONDS)
    os.close(out.writing)
    lines = (await reading).split()
    lost = int(errors.rest().removeprefix("lost ").split(" because the output is slower")[0])
    assert lost > 0
    assert len(lines) + lost == 3 * MAX_ITEMS


async def test_what_a_hanging_output_never_showed_is_counted_at_the_end(errors: Pipe) -> None:
    out = Pipe()
    printed = asyncio.Event()
    async with Printer(PlainView(), on_end=printed.set, out=out.writing, err=errors.writing) as printer:
        for _ in range(MAX_ITEMS):
            printer.offer("x" * 100, 100)
    os.set_blocking(out.reading, False)
    shown = os.read(out.reading, 1024 * 1024).count(b"\n")
    said = os.read(errors.reading, 1024).decode()
    assert said == f"lost {MAX_ITEMS - shown} because the output is slower than the bus\n"
    os.set_blocking(out.reading, True)
    reading = asyncio.create_task(asyncio.to_thread(out.read))
    await asyncio.wait_for(printed.wait(), SECONDS)
    os.close(out.writing)
    await reading
    errors.close()


async def test_items_are_bounded_by_bytes_too(errors: Pipe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(printer_module, "MAX_BYTES", 10)
    out = Pipe()
    printer = Printer(PlainView(), on_end=lambda: None, out=out.writing, err=errors.writing)
    printer.offer("kept", 6)
    printer.offer("lost", 6)
    async with printer:
        pass
    assert out.rest() == "kept\n"
    assert errors.rest() == "lost 1 because the output is slower than the bus\n"


async def test_losses_are_added_up_and_reported_on_the_error_output_without_control_characters(errors: Pipe) -> None:
    out = Pipe()
    async with Printer(PlainView(), on_end=lambda: None, out=out.writing, err=errors.writing) as printer:
        printer.lost(Counter({"of generation.token from gen\x1b": 5}))
        printer.lost(Counter({"of generation.token from gen\x1b": 7}))
    assert errors.rest() == "lost 12 of generation.token from gen\\x1b\n"
    out.close()


async def test_a_pipe_that_was_made_non_blocking_loses_nothing(errors: Pipe) -> None:
    out = Pipe()
    os.set_blocking(out.writing, False)
    printed = asyncio.Event()
    async with Printer(PlainView(), on_end=printed.set, count=2000, out=out.writing, err=errors.writing) as printer:
        for _ in range(2000):
            printer.offer("x" * 100, 100)
        reading = asyncio.create_task(asyncio.to_thread(out.read))
        await asyncio.wait_for(printed.wait(), SECONDS)
    os.close(out.writing)
    assert len((await reading).split()) == 2000
    errors.close()
