"""A queue that never blocks its reader and never grows without bound."""

import asyncio

import pytest

from local.bus.envelope import Envelope
from local.core.errors import BusClosed
from local.runtime.participant import Inbox


def envelope(number: int, payload: bytes = b"{}") -> Envelope:
    """The nth envelope of a stream."""
    return Envelope("s", f"e{number}", "sender", "i", number, "q", payload)


async def test_envelopes_come_out_in_the_order_they_went_in() -> None:
    inbox = Inbox()
    assert all(inbox.offer(envelope(number)) for number in range(1, 4))
    assert [(await inbox.take()).seq for _ in range(3)] == [1, 2, 3]
    assert len(inbox) == 0


async def test_a_consumer_that_waits_gets_the_next_one() -> None:
    inbox = Inbox()
    taking = asyncio.ensure_future(inbox.take())
    await asyncio.sleep(0)
    inbox.offer(envelope(1))
    assert (await taking).seq == 1


async def test_it_is_full_by_number() -> None:
    inbox = Inbox(max_envelopes=2)
    assert [inbox.offer(envelope(number)) for number in range(1, 4)] == [True, True, False]
    await inbox.take()
    assert inbox.offer(envelope(4))


async def test_it_is_full_by_bytes() -> None:
    inbox = Inbox(max_bytes=100)
    assert inbox.offer(envelope(1, b"x" * 60))
    assert not inbox.offer(envelope(2, b"x" * 60))
    assert inbox.offer(envelope(3, b"x" * 40))
    await inbox.take()
    assert inbox.offer(envelope(4, b"x" * 60))


async def test_a_consumer_that_stopped_waiting_loses_nothing() -> None:
    inbox = Inbox()
    taking = asyncio.ensure_future(inbox.take())
    await asyncio.sleep(0)
    taking.cancel()
    inbox.offer(envelope(1))
    assert (await inbox.take()).seq == 1


async def test_after_closing_what_is_there_can_still_be_taken() -> None:
    inbox = Inbox()
    inbox.offer(envelope(1))
    inbox.close()
    assert [item.seq async for item in inbox] == [1]
    with pytest.raises(BusClosed):
        await inbox.take()


async def test_closing_wakes_a_consumer_that_waits() -> None:
    inbox = Inbox()
    taking = asyncio.ensure_future(inbox.take())
    await asyncio.sleep(0)
    inbox.close()
    with pytest.raises(BusClosed):
        await taking


async def test_what_has_waited_longer_than_its_time_to_live_is_dropped_and_counted() -> None:
    now = 10.0
    inbox = Inbox(clock=lambda: now)
    for number, ttl_ms in ((1, 500), (2, None), (3, 2000), (4, 0)):
        inbox.offer(envelope(number)._replace(ttl_ms=ttl_ms))
    now += 1.0
    inbox.offer(envelope(5)._replace(ttl_ms=0))
    assert [(await inbox.take()).seq for _ in range(3)] == [2, 3, 5]
    assert (inbox.expired, len(inbox)) == (2, 0)
