"""A child process as the supervisor sees it."""

import asyncio
import os
import socket
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from local.runtime.child_process import ChildProcess


async def test_a_child_that_died_before_it_heard_that_it_is_to_stop_is_gone(caplog: pytest.LogCaptureFixture) -> None:
    ours, theirs = socket.socketpair()
    dying = SimpleNamespace(pid=os.getpid())
    with ThreadPoolExecutor(1) as thread:
        child = ChildProcess(dying, ours, thread, *[lambda: None] * 3)  # type: ignore[arg-type] - nothing else of it
        child.ask_to_stop()
        theirs.close()
        async with asyncio.timeout(10):
            await child.gone.wait()
        child.ask_to_stop()  # without effect
    assert caplog.messages == []
