"""What the children in the tests of the supervisor do; imported by them, by name."""

import asyncio
import logging
import os
import signal
import socket
import sys
import threading
import time
from pathlib import Path

from local.core.errors import ConfigError, LocalError, StoreTooNew
from local.runtime.child import BEATS_PER_HANG, Lifeline


def serve(lifeline: Lifeline) -> None:
    asyncio.run(_serve(lifeline))


async def _serve(lifeline: Lifeline) -> None:
    async with lifeline.serving() as stop:
        lifeline.ready()
        await stop.wait()


def tell(lifeline: Lifeline, whom: socket.socket) -> None:
    """Say something to another child, which may be waiting for it."""
    whom.send(b"!")
    serve(lifeline)


def hear(lifeline: Lifeline, whom: socket.socket) -> None:
    whom.recv(1)
    serve(lifeline)


def answer(lifeline: Lifeline, listener: socket.socket) -> None:
    """Tell every caller our pid."""
    lifeline.ready()
    while True:
        with listener.accept()[0] as caller:
            caller.send(str(os.getpid()).encode())


def last_words(lifeline: Lifeline, whom: socket.socket) -> None:
    serve(lifeline)
    whom.send(b"goodbye")


def slow_goodbye(lifeline: Lifeline, whom: socket.socket) -> None:
    serve(lifeline)
    time.sleep(3 * BEATS_PER_HANG * lifeline.interval)
    whom.send(b"goodbye")


def warn(lifeline: Lifeline) -> None:
    """Serve, after a warning."""
    logging.getLogger().warning("the well is low")
    serve(lifeline)


async def share(lifeline: Lifeline) -> None:
    """Serve beside others in one process."""
    await _serve(lifeline)


async def share_until_told(lifeline: Lifeline, whom: socket.socket) -> None:
    """Serve, and fail as soon as somebody says something."""
    async with lifeline.serving() as stop:
        lifeline.ready()
        await _told_or(stop, whom)
        if not stop.is_set():
            raise LocalError("the well is dry")


async def _told_or(stop: asyncio.Event, whom: socket.socket) -> None:
    whom.setblocking(False)
    waiting = [asyncio.create_task(stop.wait()), asyncio.create_task(asyncio.get_running_loop().sock_recv(whom, 1))]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    for task in waiting:
        task.cancel()


async def share_and_warn(lifeline: Lifeline) -> None:
    logging.getLogger().warning("the well is low")
    await _serve(lifeline)


async def share_without_a_word(_: Lifeline) -> None:
    await asyncio.Event().wait()


def exit_at_once(_: Lifeline) -> None:
    os._exit(7)


def die_once(_: Lifeline, whom: socket.socket) -> None:
    """Die if somebody has said something, else wait for it."""
    whom.recv(1)


def never_ready(_: Lifeline) -> None:
    threading.Event().wait()


def ready_then_mute(lifeline: Lifeline) -> None:
    lifeline.ready()
    threading.Event().wait()


def refuse_to_stop(lifeline: Lifeline) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    lifeline.ready()
    while True:
        lifeline.beat()
        time.sleep(lifeline.interval)


def leave_a_grandchild(lifeline: Lifeline, whom: socket.socket) -> None:
    if pid := os.fork():
        whom.send(str(pid).encode())
        lifeline.ready()
    threading.Event().wait()


def misconfigured(_: Lifeline) -> None:
    raise ConfigError("colour: 'bleu' is not a colour; did you mean 'blue'?")


def fail_by_name(_: Lifeline) -> None:
    raise LocalError("the well is dry")


def fail_while_there_is(lifeline: Lifeline, trouble: str) -> None:
    if Path(trouble).exists():
        raise LocalError("there is trouble")
    serve(lifeline)


def wait_for_room(_: Lifeline) -> None:
    logging.getLogger(__name__).warning("waiting for room")
    threading.Event().wait()


def wait_for_room_once_more(lifeline: Lifeline, marker: str) -> None:
    """Die at first; then say for a while what there is to wait for, and serve."""
    if not Path(marker).exists():
        Path(marker).touch()
        os._exit(7)
    for _ in range(30):
        logging.getLogger(__name__).warning("waiting for room")
        time.sleep(0.02)
    serve(lifeline)


def newer_store(_: Lifeline) -> None:
    raise StoreTooNew("notes.db: schema version 7 is newer than this program's 3")


def tell_whether_wave_is_there(_: Lifeline) -> None:
    raise ConfigError(str("wave" in sys.modules))


def fail_in_a_task(lifeline: Lifeline) -> None:
    """End as a task of a task group of a task group does."""
    inner = ExceptionGroup("unhandled errors in a TaskGroup", [LocalError("the disk has gone"), KeyError("x")])
    raise ExceptionGroup("unhandled errors in a TaskGroup", [inner])
