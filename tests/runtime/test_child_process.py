"""A child process as the supervisor sees it."""

import asyncio
import os
import socket
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from local.runtime.child import TERMINATED, ChildProcess, ChildSpec, ForkLost, Lifeline, ProcessStart


async def test_a_child_that_died_before_it_heard_that_it_is_to_stop_is_gone(caplog: pytest.LogCaptureFixture) -> None:
    ours, theirs = socket.socketpair()
    dying = SimpleNamespace(pid=os.getpid())
    child = ChildProcess(dying, ours, *[lambda: None] * 3)  # type: ignore[arg-type] - nothing else of it
    child.ask_to_stop()
    theirs.close()
    async with asyncio.timeout(90):
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


async def test_a_child_of_a_fork_that_nobody_has_confirmed_loses_its_lifeline_and_the_next_one_has_its_own() -> None:
    """The template was killed between the fork and its answer: two processes must not live as one child."""
    kept: list[socket.socket] = []

    async def fork(specs: Sequence[ChildSpec], lifelines: Sequence[socket.socket]) -> Any:
        kept.append(lifelines[0].dup())  # as the child has it
        kept[-1].setblocking(False)
        if len(kept) == 1:
            raise ForkLost
        return "the process"

    process, ours = await ProcessStart([ChildSpec("child", "tool", "a:b")], fork).take("child")
    with ours, kept[0], kept[1]:
        assert process == "the process"
        assert kept[0].recv(1) == b""
        ours.send(b"!")
        assert kept[1].recv(1) == b"!"
