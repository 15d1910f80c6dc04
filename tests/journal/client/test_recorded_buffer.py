"""Recorded messages on the publisher's side: kept until they are confirmed, within bounds."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping

import pytest

from local.bus.sending import RetryTable
from local.journal import client as journal_client
from local.journal.client import RecordedBuffer


class Kept:
    """A buffer, what it has sent again, and what it has reported as dropped."""

    def __init__(self, count: int, *, max_count: int = 10_000, max_bytes: int = 1_000_000) -> None:
        self.sent: list[bytes] = []
        self.gaps: Counter[str] = Counter()
        self.retries: RetryTable[None] = RetryTable(self.sent.append)
        self.buffer = RecordedBuffer(self.retries, self._dropped, max_count, max_bytes)
        for number in range(1, count + 1):
            self.buffer.add(f"{number}", "agent.transition", b"%03d" % number)

    def sends_again(self) -> list[bytes]:
        """What it would send again now."""
        self.sent.clear()
        self.retries.hasten()
        return self.sent

    def _dropped(self, gaps: Mapping[str, int]) -> None:
        self.gaps.update(gaps)


async def test_what_is_not_confirmed_is_sent_again_in_order() -> None:
    kept = Kept(3)
    kept.buffer.confirmed("2")
    kept.buffer.confirmed("of somebody else")
    assert kept.sends_again() == [b"001", b"003"]
    assert len(kept.buffer) == 2


async def test_one_that_is_sent_twice_by_its_publisher_is_kept_once() -> None:
    kept = Kept(1)
    kept.buffer.add("1", "agent.transition", b"again")
    assert kept.sends_again() == [b"001"]
    kept.buffer.confirmed("1")
    assert kept.sends_again() == []


async def test_only_a_window_is_sent_again_and_a_confirmation_lets_the_next_one_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(journal_client, "WINDOW", 2)
    kept = Kept(5)
    assert kept.sends_again() == [b"001", b"002"]
    kept.buffer.confirmed("4")
    kept.buffer.confirmed("1")
    assert kept.sends_again() == [b"002", b"003"]
    kept.buffer.confirmed("2")
    assert kept.sends_again() == [b"003", b"005"]


async def test_what_comes_into_the_window_late_goes_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_client, "WINDOW", 1)
    monkeypatch.setattr(journal_client, "PAUSE", 0.1)
    kept = Kept(2)
    async with asyncio.timeout(30):
        while b"001" not in kept.sent:  # noqa: ASYNC110 - what a timer does says nothing to anybody
            await asyncio.sleep(0.01)
        kept.buffer.confirmed("1")
        while b"002" not in kept.sent:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_too_many_drop_the_oldest_and_say_so() -> None:
    kept = Kept(5, max_count=3)
    assert kept.sends_again() == [b"003", b"004", b"005"]
    assert kept.gaps == {"agent.transition": 2}


async def test_too_many_bytes_drop_the_oldest_but_never_the_newest() -> None:
    kept = Kept(5, max_bytes=7)
    assert kept.sends_again() == [b"004", b"005"]
    kept.buffer.add("6", "agent.transition", b"more than seven")
    assert kept.sends_again() == [b"more than seven"]
