"""The child's side: its lifeline, and how it behaves under a supervisor."""

import asyncio
import os
import signal
import socket

import psutil
import pytest

from local.runtime.child import EXIT_FAILED, ChildSpec, Lifeline, _alone
from local.runtime.supervisor import Supervisor

pytestmark = pytest.mark.usefixtures("targets_on_the_path")


def test_a_beat_before_the_child_is_ready_says_nothing(pair: tuple[socket.socket, socket.socket]) -> None:
    lifeline = Lifeline(pair[0], hang_seconds=5.0)
    lifeline.beat()
    lifeline.ready()
    lifeline.beat()

    assert pair[1].recv(16) == b"rb"


def test_a_beat_never_waits_for_a_supervisor_that_does_not_listen(pair: tuple[socket.socket, socket.socket]) -> None:
    lifeline = Lifeline(pair[0], hang_seconds=5.0)
    lifeline.ready()
    for _ in range(10_000):
        lifeline.beat()


async def test_while_serving_a_child_beats_and_stops_when_the_supervisor_says_so(
    pair: tuple[socket.socket, socket.socket], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "_exit", lambda _: None)  # what a child does when the other end has gone
    lifeline = Lifeline(pair[0], hang_seconds=0.05)
    async with lifeline.serving() as stop:
        lifeline.ready()
        heard = b""
        while heard.count(b"b") < 3:
            heard += await asyncio.to_thread(pair[1].recv, 16)
        os.kill(os.getpid(), signal.SIGTERM)
        while b"t" not in heard:
            heard += await asyncio.to_thread(pair[1].recv, 16)
        assert not stop.is_set()
        obeying = asyncio.create_task(asyncio.to_thread(lifeline.obey_supervisor))
        pair[1].send(b"s")
        await stop.wait()
        pair[1].close()
        await obeying

    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


async def test_what_a_terminal_sends_does_not_end_a_child(pair: tuple[socket.socket, socket.socket]) -> None:
    async with Supervisor([ChildSpec("critic", "agent", "supervised:last_words", (pair[1],))]) as supervisor:
        for number in (signal.SIGINT, signal.SIGHUP):
            psutil.Process(supervisor.children[0].pid).send_signal(number)
        await supervisor.stop("critic")

    assert pair[0].recv(16) == b"goodbye"


def test_what_tasks_have_wrapped_is_told_in_its_own_words(
    pair: tuple[socket.socket, socket.socket], caplog: pytest.LogCaptureFixture
) -> None:
    spec = ChildSpec("critic", "agent", "supervised:fail_in_a_task")

    assert _alone(spec, Lifeline(pair[0], hang_seconds=5.0)) == EXIT_FAILED

    assert [record.getMessage() for record in caplog.records] == ["the disk has gone", "KeyError: 'x'"]
