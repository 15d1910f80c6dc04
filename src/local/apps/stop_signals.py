"""What has a system end: a signal, or the end of whoever has started it for a while."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable

from local.runtime.supervisor import Supervisor


def stop_when_asked(stop: asyncio.Event, supervisor: Supervisor, starter: int | None = None) -> None:
    """Set `stop` by Ctrl-C, by SIGTERM, or because the terminal closes, unless nohup has started us; and where a
    `starter` holds the other end of that pipe, once it has ended, even by SIGKILL.

    A signal may go to the children as well, as systemd sends it: they leave it to the supervisor from then on.
    """
    loop = asyncio.get_running_loop()

    def end() -> None:
        supervisor.wind_down()
        stop.set()

    numbers = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        numbers.append(signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, end)
    if starter is not None:
        _when_at_its_end(loop, starter, end)


def _when_at_its_end(loop: asyncio.AbstractEventLoop, pipe: int, end: Callable[[], None]) -> None:
    def ended() -> None:
        loop.remove_reader(pipe)
        end()

    os.set_inheritable(pipe, False)
    loop.add_reader(pipe, ended)  # nobody ever writes to it
