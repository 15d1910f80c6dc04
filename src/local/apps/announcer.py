"""The supervisor on the bus: what it knows of its children, told at every change and as often as participants do."""

from __future__ import annotations

import asyncio
import logging
import os
from contextlib import suppress

from local.apps.child_control import ChildControl
from local.apps.newcomers import Newcomers
from local.bus.bus import Bus
from local.bus.sender_guard import Declaration
from local.errors import BusNotReady
from local.protocol.messages import ChildStatus, ParticipantStatus
from local.runtime.declaring import what_everybody_says
from local.runtime.presence import BEAT_SECONDS
from local.runtime.supervisor import ChildPhase, ChildState, Supervisor
from local.tick import until_next_tick

log = logging.getLogger(__name__)


class Announcer:
    """Publishes the supervisor's status. Call `changed` from the supervisor's `on_change`."""

    def __init__(self, bus: Bus, notice: str = "") -> None:
        """`notice` is something that users should know of this start."""
        self._bus = bus
        self._wake = asyncio.Event()
        self._details = {"notice": notice} if notice else {}

    def changed(self, child: ChildState) -> None:
        """A child's state has changed."""
        self._wake.set()

    def tell_problem(self, problem: str) -> None:
        """Something is wrong with the system as a whole; empty when it is not any more."""
        self._details.pop("problem", None)
        self._details |= {"problem": problem} if problem else {}
        self._wake.set()

    async def run(self, supervisor: Supervisor, newcomers: Newcomers) -> None:
        """Tell until cancelled. The supervisor works without a bus, too: until the proxy is there, nothing is told."""
        control = ChildControl(self._bus, supervisor, newcomers, announce=lambda: self._announce(supervisor))
        try:
            await supervisor.wait_until(_has_bus)  # a start that takes long is no trouble of the bus
            await self._connect()
            await self._tell(supervisor)
        finally:
            control.close()

    async def _tell(self, supervisor: Supervisor) -> None:
        self._bus.on_newcomer.append(self._wake.set)
        self._bus.on_reconnect.append(self._wake.set)  # what was said meanwhile is lost
        loop = asyncio.get_running_loop()
        while True:
            self._wake.clear()
            self._announce(supervisor)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), until_next_tick(loop.time(), BEAT_SECONDS))

    def _announce(self, supervisor: Supervisor) -> None:
        self._bus.post(_status(supervisor, self._bus, self._details))

    async def _connect(self) -> None:
        while True:
            try:
                return await self._bus.ready()
            except BusNotReady as error:
                log.warning("%s", error)


def what_supervisor_says() -> Declaration:
    """What everybody says, and what came of the requests that the supervisor gets."""
    said = frozenset(message.subject for message in ChildControl.publishes)
    return Declaration(what_everybody_says().says | said)


def _has_bus(children: tuple[ChildState, ...]) -> bool:
    return bool(children) and children[0].state is ChildPhase.READY


def _detail(child: ChildState) -> str:
    """What ended it last; of one that is given up, also when it is tried again."""
    if child.state is not ChildPhase.FAILED:
        return child.detail
    if child.retry_at is None:
        return f"{child.detail}; tried again now"
    seconds = child.retry_at - asyncio.get_running_loop().time()
    return f"{child.detail}; next try in {max(0.0, seconds):.0f} s"


def _status(supervisor: Supervisor, bus: Bus, details: dict[str, str]) -> ParticipantStatus:
    return ParticipantStatus(
        name="supervisor",
        kind="supervisor",
        pid=os.getpid(),
        instance=bus.instance,
        state="ready" if all(child.state is ChildPhase.READY for child in supervisor.children) else "starting",
        children=tuple(
            ChildStatus(
                name=child.name,
                kind=child.kind,
                state=child.state,
                pid=child.pid,
                restarts=child.restarts,
                detail=_detail(child),
            )
            for child in supervisor.children
        ),
        details=dict(details),
        last_seq=bus.last_seq,
        subscriptions=dict.fromkeys(bus.heard(), ""),
    )
