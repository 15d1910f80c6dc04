"""A child process as the supervisor sees it."""

import asyncio
import os
import socket
from types import SimpleNamespace

import pytest

from local.runtime.child import TERMINATED, ChildProcess, Lifeline


async def test_a_child_that_died_before_it_heard_that_it_is_to_stop_is_gone(caplog: pytest.LogCaptureFixture) -> None:
    ours, theirs = socket.socketpair()
    dying = SimpleNamespace(pid=os.getpid())
    child = ChildProcess(dying, ours, *[lambda: None] * 3)  # type: ignore[arg-type] - nothing else of it
    child.ask_to_stop()
    theirs.close()
    async with asyncio.timeout(30):
        await child.gone.wait()
    child.ask_to_stop()  # without effect
    assert caplog.messages == []


async def test_the_last_words_of_a_child_are_kept_until_it_works() -> None:
    ours, theirs = socket.socketpair()
    ready, terminated = asyncio.Event(), asyncio.Event()
    callbacks = (ready.set, lambda: None, terminated.set)
    with theirs:
        process = SimpleNamespace(pid=os.getpid())
        child = ChildProcess(process, ours, *callbacks)  # type: ignore[arg-type] - nothing else of it
        lifeline = Lifeline(theirs, hang_seconds=5.0)
        lifeline.complain("waiting\nfor room")
        theirs.send(TERMINATED)
        await terminated.wait()
        assert child.last_words == r"waiting\nfor room"
        lifeline.ready()
        await ready.wait()
        lifeline.complain("that it is slow")  # while it works, nobody is to think that it ended because of that
        lifeline.beat()
        lifeline.explain("x" * 10_000)
        theirs.close()
        await child.gone.wait()
    assert child.last_words == "x" * 500
