"""Serves one participant: connect, subscribe, ready, announce, serve, stop."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Literal

from local.bus.bus import Bus
from local.bus.inbox import Inbox
from local.errors import LocalError, MalformedFrame
from local.protocol.envelope import Envelope
from local.protocol.messages import BusDead, ErrorInfo, Message, ParticipantStatus
from local.runtime.logs import query_id_var
from local.runtime.participant import Handles, Participant
from local.runtime.replies import RecentReplies

log = logging.getLogger(__name__)

STATUS_SECONDS = 1.0
STOP_SECONDS = 10.0
YIELD_EVERY = 128  # messages handled without a pause before the socket's reader gets its turn


class Intake:
    """One handler's subscription and what has arrived for it."""

    def __init__(self, bus: Bus, participant: Participant, handles: Handles) -> None:
        self.handles = handles
        self.inbox = Inbox()
        self._bus = bus
        self._end = bus.subscribe(participant.subject_of(handles.message), self._receive)

    def close(self) -> None:
        """Take nothing more; what has arrived can still be handled."""
        self._end()
        self.inbox.close()

    def _receive(self, envelope: Envelope) -> None:
        if not self.inbox.offer(envelope):
            self._bus.overflowed(envelope)


class Host:
    """Runs a participant on a bus until told to stop. Counts `handled`, `failed` and `answered_again`."""

    def __init__(self, participant: Participant, bus: Bus) -> None:
        self._participant, self._bus = participant, bus
        participant.bus = bus
        self._counters: Counter[str] = Counter()
        self._replies = RecentReplies()
        self._inflight = 0
        self._state: Literal["starting", "ready", "stopping"] = "starting"
        self._announcing: asyncio.Task[None] | None = None

    async def run(self, stop: asyncio.Event, on_ready: Callable[[], object] = lambda: None) -> None:
        """The whole life of the participant, in order; returns after `stop` is set and the work in hand is done."""
        async with self._bus:
            intakes = [Intake(self._bus, self._participant, handles) for handles in self._participant.handlers()]
            await self._bus.ready()
            async with self._participant.lifespan(), asyncio.TaskGroup() as tasks:
                workers = [tasks.create_task(self._worker(intake)) for intake in intakes]
                await self._participant.announce()
                self._bus.on_reconnect.append(self._announce_again)
                self._state = "ready"
                beat = tasks.create_task(self._beat())
                on_ready()
                await stop.wait()
                self._state = "stopping"
                await self._finish(intakes, workers)
                beat.cancel()
                self._bus.post(self._status())

    def _worker(self, intake: Intake) -> Coroutine[None, None, None]:
        return self._work_in_order(intake) if intake.handles.concurrency == 1 else self._work_side_by_side(intake)

    async def _work_in_order(self, intake: Intake) -> None:
        done = 0
        async for envelope in intake.inbox:
            await self._handle(intake.handles, envelope)
            done += 1
            if done % YIELD_EVERY == 0:
                await asyncio.sleep(0)

    async def _work_side_by_side(self, intake: Intake) -> None:
        places = asyncio.Semaphore(intake.handles.concurrency)
        async with asyncio.TaskGroup() as tasks:
            async for envelope in intake.inbox:
                await places.acquire()
                task = tasks.create_task(self._handle(intake.handles, envelope))
                task.add_done_callback(lambda _: places.release())

    async def _handle(self, handles: Handles, envelope: Envelope) -> None:
        self._inflight += 1
        try:
            message = await self._bus.decode(handles.message, envelope)
            if not handles.message.is_request:
                await self._publish(await self._call(handles, message, envelope), envelope)
            elif self._replies.begin(envelope.id):
                reply = await self._call(handles, message, envelope)
                if reply is not None:
                    self._replies.settle(envelope.id, reply)
                await self._publish(reply, envelope, in_reply_to=envelope.id)
            else:
                self._counters["answered_again"] += 1
                await self._publish(self._replies.answer(envelope.id), envelope, in_reply_to=envelope.id)
        except MalformedFrame as error:
            self._bus.reject(str(error), envelope.payload)
        except LocalError as error:
            log.error("the reply to %s could not be published: %s", envelope.subject, error)
        finally:
            self._inflight -= 1

    async def _call(self, handles: Handles, message: Message, envelope: Envelope) -> Message | None:
        query_id_var.set(getattr(message, "query_id", "-"))
        self._counters["handled"] += 1
        try:
            reply: Message | None = await getattr(self._participant, handles.method)(message, envelope)
            return reply
        except Exception as error:  # an exception never crosses the bus: it becomes a message
            self._counters["failed"] += 1
            log.error("%s: %s: %s", envelope.subject, type(error).__name__, error, exc_info=log.isEnabledFor(10))
            return self._participant.error_reply(message, error) or BusDead(
                participant=self._participant.name,
                envelope_id=envelope.id,
                dead_subject=envelope.subject,
                error=ErrorInfo(kind=getattr(error, "kind", "internal"), message=str(error) or type(error).__name__),
            )

    async def _publish(self, reply: Message | None, envelope: Envelope, in_reply_to: str | None = None) -> None:
        if reply is not None:
            await self._bus.publish(reply, envelope.trace(), in_reply_to=in_reply_to)

    async def _finish(self, intakes: list[Intake], workers: list[asyncio.Task[None]]) -> None:
        """Take no more work; give what is in hand ten seconds."""
        for intake in intakes:
            intake.close()
        if not workers:
            return
        _, unfinished = await asyncio.wait(workers, timeout=STOP_SECONDS)
        if unfinished:
            log.warning("%d messages in hand after %g s are left undone", self._inflight, STOP_SECONDS)
        for worker in unfinished:
            worker.cancel()

    async def _beat(self) -> None:
        while True:
            self._bus.post(self._status())
            try:
                for gap in self._bus.take_gaps():
                    log.warning("missed %d of %s from %s", gap.missed, gap.missed_subject, gap.sender)
                    await self._bus.publish(gap)
            except LocalError as error:
                log.warning("a gap could not be reported: %s", error)
            await asyncio.sleep(STATUS_SECONDS)

    def _status(self) -> ParticipantStatus:
        return ParticipantStatus(
            name=self._participant.name,
            kind=self._participant.kind,
            pid=os.getpid(),
            instance=self._bus.instance,
            state=self._state,
            inflight=self._inflight,
            counters={**self._bus.counters, **self._counters, **self._participant.figures()},
            last_seq=self._bus.last_seq,
        )

    def _announce_again(self) -> None:
        self._announcing = asyncio.create_task(self._participant.announce(), name="announce")
