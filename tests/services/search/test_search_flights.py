"""Flights: a task belongs to those who wait for it."""

from __future__ import annotations

import asyncio

from local.web.search import SharedFlights


async def test_a_task_never_outlives_the_last_who_waited_for_it():
    started, cleaning, released = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def work():
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cleaning.set()
            await released.wait()

    caller = asyncio.create_task(SharedFlights().run("key", work))
    await started.wait()
    caller.cancel()
    await cleaning.wait()
    assert not caller.done()
    released.set()
    await asyncio.wait({caller})
    assert caller.cancelled()
