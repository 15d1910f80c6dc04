"""The limits of a reading: a count of steps, and a wide limit of time behind it."""

from __future__ import annotations

import threading

import pytest
from lxml.html import document_fromstring

from local.web.text import ReadingLimit, TooMuchWork, WorkCount, count_steps, counted, text_of


def endless(*, done: threading.Event | None = None) -> None:
    try:
        while True:
            count_steps(1)
    finally:
        if done:
            done.set()


async def test_a_reading_within_its_limits_gives_its_result():
    assert await ReadingLimit(60.0).within(lambda: count_steps(1000) or "read") == "read"


async def test_a_reading_ends_at_its_step_limit():
    with pytest.raises(TooMuchWork):
        await ReadingLimit(60.0, most_steps=1000).within(endless)


async def test_a_reading_that_reaches_the_time_limit_ends_at_its_next_step():
    done = threading.Event()
    with pytest.raises(TooMuchWork):
        await ReadingLimit(0.01, most_steps=10**15).within(lambda: endless(done=done))
    assert done.wait(30)


async def test_a_reading_that_counts_no_steps_is_not_waited_for_beyond_the_time_limit():
    free = threading.Event()
    try:
        with pytest.raises(TooMuchWork):
            await ReadingLimit(0.01).within(lambda: free.wait(30))
    finally:
        free.set()


async def test_what_fails_in_the_thread_fails_for_the_caller():
    with pytest.raises(ZeroDivisionError):
        await ReadingLimit(60.0).within(lambda: 1 // 0)


def test_each_character_of_an_elements_text_is_a_step():
    tree, count = document_fromstring(f"<p>{'a' * 5000}</p>"), WorkCount()
    assert len(counted(lambda: text_of(tree), count)) == 5000
    assert 5000 <= count.steps < 5100
