"""The supervisor's ear on the bus: it starts, stops and restarts children for those who ask."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from weakref import WeakValueDictionary

from local.apps.newcomers import PARTICIPANT, Newcomers
from local.bus.bus import Bus
from local.errors import LocalError
from local.protocol.control_messages import GONE, ParticipantRequest, ParticipantResult
from local.protocol.envelope import Envelope
from local.protocol.messages import ChildStatus, ErrorInfo, Message
from local.runtime.recent_replies import RecentReplies
from local.runtime.supervisor import ChildPhase, ChildState, Supervisor

log = logging.getLogger(__name__)

API = "api"
NOT_IN_SETTINGS = "the settings do not have it any more"
NEEDED = frozenset({"proxy", "journal", API})  # without whom nobody could ask for the start


class StopRefused(LocalError):
    """A participant that may be restarted, and not be left stopped."""

    kind = "conflict"

    def __init__(self, name: str) -> None:
        super().__init__(f"{name} cannot be left stopped: nobody could start it again; restart it, or stop LoCAL2")


class ChildControl:
    """Does one thing at a time with each child, each request once however often it is sent."""

    publishes = (ParticipantResult,)

    def __init__(
        self, bus: Bus, supervisor: Supervisor, newcomers: Newcomers, *, announce: Callable[[], object]
    ) -> None:
        """Subscribes: the bus has to be made ready after that. `announce` tells everybody how the children are: who is
        answered, and looks, finds what came of the request."""
        self._bus, self._supervisor, self._newcomers = bus, supervisor, newcomers
        self._announce = announce
        self._replies = RecentReplies()
        self._one_at_a_time = WeakValueDictionary[str, asyncio.Lock]()  # by the child's name
        self._tasks: set[asyncio.Task[None]] = set()
        bus.subscribe(ParticipantRequest.subject, self._asked, repeats=True)

    def close(self) -> None:
        """Begin nothing more, and leave what was begun."""
        for task in self._tasks:
            task.cancel()

    def _asked(self, envelope: Envelope) -> None:
        request = ParticipantRequest.decode(envelope.payload)
        if not self._replies.begin(envelope.id):
            if reply := self._replies.answer(envelope.id):
                self._begin(self._say(reply, envelope))
            return
        self._begin(self._do(request, envelope))

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work, name="child control")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _do(self, request: ParticipantRequest, envelope: Envelope) -> None:
        log.warning("%s asks for the %s of %s", envelope.sender, request.verb, request.name)
        async with self._one_at_a_time.setdefault(request.name, asyncio.Lock()):
            is_its_own_end = request.name == API and request.verb == "restart"
            if is_its_own_end:
                await self._say(ParticipantResult(verb=request.verb, child=self._child(request.name)), envelope)
            try:
                await self._change(request)
                reply = ParticipantResult(verb=request.verb, child=self._child(request.name))
            except LocalError as error:
                info = ErrorInfo.of(error)
                reply = ParticipantResult(verb=request.verb, error=info)
            self._replies.settle(envelope.id, reply)
            self._announce()
            if not is_its_own_end:
                await self._say(reply, envelope)

    async def _change(self, request: ParticipantRequest) -> None:
        name = request.name
        match request.verb:
            case "stop" if name in NEEDED:
                raise StopRefused(name)
            case "stop":
                await self._supervisor.stop(name)
            case "restart" if self._renew(name):
                await self._supervisor.restart(name)
            case "start" if self._runs(name):
                pass
            case "start" if self._renew(name):
                await self._supervisor.start(name)
            case _:
                await self._supervisor.remove(name)

    def _renew(self, name: str) -> bool:
        """Have it begin with what the settings say by now; False if they do not have it any more, or never had. Raises
        `ConfigError`, with nothing changed."""
        if not self._newcomers.may_change(name, self._find(name)):
            return True
        if (spec := self._newcomers.spec(name)) is None:
            return False
        self._supervisor.add(spec)
        return True

    async def _say(self, reply: Message, envelope: Envelope) -> None:
        try:
            await self._bus.publish(reply, envelope.trace(), in_reply_to=envelope.id)
        except LocalError as error:  # it is asked again, or does not wait any more
            log.warning("an answer to %s did not get away: %s", envelope.sender, error)

    def _runs(self, name: str) -> bool:
        child = self._find(name)
        return child is not None and child.state in (ChildPhase.READY, ChildPhase.STARTING)

    def _child(self, name: str) -> ChildStatus:
        child = self._find(name)
        if child is None:
            return ChildStatus(name=name, kind=PARTICIPANT, state=GONE, detail=NOT_IN_SETTINGS)
        return ChildStatus(
            name=child.name, kind=child.kind, state=child.state, pid=child.pid, restarts=child.restarts,
            detail=child.detail,
        )  # fmt: skip

    def _find(self, name: str) -> ChildState | None:
        return next((child for child in self._supervisor.children if child.name == name), None)
