"""The limit of a reading: processor time, with the wall behind it."""

from __future__ import annotations

import asyncio
import threading

import pytest

from local.services.pages.reading_limit import WALL_FACTOR, ReadingLimit


async def test_a_reading_that_waits_for_the_processor_is_not_too_complicated():
    looks, free = list[int](), threading.Event()

    def standing_still() -> float:
        looks.append(len(looks))
        if len(looks) == 4:  # three limits have gone by on the wall
            free.set()
        return 0.0

    limit = ReadingLimit(0.1, standing_still)
    assert await limit.within(lambda: free.wait(30) and "read") == "read"


async def test_a_reading_ends_with_its_processor_time():
    spent, free = iter((1.0, 1.0, 61.0)), threading.Event()
    began = asyncio.get_running_loop().time()
    try:
        with pytest.raises(TimeoutError):
            await ReadingLimit(0.2, lambda: next(spent)).within(lambda: free.wait(30))
    finally:
        free.set()
    assert asyncio.get_running_loop().time() - began < 0.2 * WALL_FACTOR


async def test_a_reading_that_never_gets_the_processor_ends_on_the_wall():
    free = threading.Event()
    try:
        with pytest.raises(TimeoutError):
            await ReadingLimit(0.05, lambda: 0.0).within(lambda: free.wait(30))
    finally:
        free.set()


async def test_what_fails_in_the_thread_fails_for_the_caller():
    with pytest.raises(ZeroDivisionError):
        await ReadingLimit(5.0).within(lambda: 1 // 0)
