"""Serves one participant: connect, subscribe, ready, announce, serve, stop."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import sys
import sysconfig
import time
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import Literal

from local.bus.bus import Bus
from local.bus.envelope import Envelope
from local.bus.message import ErrorInfo, Message, is_said_again
from local.bus.messages import BusDead, ParticipantStatus
from local.core import failpoints
from local.core.database import unwritable
from local.core.errors import (
    BadRequest,
    BlobNotStored,
    BusClosed,
    HandedBack,
    LocalError,
    MalformedFrame,
    NotConfirmed,
    PublishTimeout,
    StoreFailed,
    StoreFenced,
)
from local.core.files import tick_number, until_next_tick
from local.runtime.logs import query_id_var
from local.runtime.participant import (
    DurableSubscriptions,
    Kind,
    LiveSubscription,
    Participant,
    RecentReplies,
    Subscription,
)

# Errors in words that lead to the line that raised them.

_LIBRARIES = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
_OURS = str(Path(__file__).parents[1])


def explained(error: BaseException) -> str:
    """Return an exception in a line, such as "ValueError at my_tools/dice.py:12: too many sides". Our own errors need
    no place.
    """
    name, text = type(error).__name__, str(error)
    if isinstance(error, SyntaxError) and error.filename:
        text = error.msg  # the place precedes it
    if isinstance(error, LocalError):
        return f"{name}: {text}"
    return f"{located(error)}: {text}" if text else located(error)


def located(error: BaseException) -> str:
    """Return the error's name and where it was raised: the innermost place in a user's own file, else in ours, else
    none. Its text, which may repeat a user's words, is left out.
    """
    places = list(_places(error))
    place = next((place for place in places if not place[0].startswith(_OURS)), next(iter(places), None))
    return type(error).__name__ + (f" at {_shortened(place[0])}:{place[1]}" if place else "")


def _places(error: BaseException) -> Iterator[tuple[str, int]]:
    """Yield file and line of the calls outside of libraries, the innermost first; then those of the error's cause. For
    a module that is not valid Python, its invalid line comes first.
    """
    if isinstance(error, SyntaxError) and error.filename:
        yield error.filename, error.lineno or 1
    yield from reversed([*_calls(error.__traceback__)])
    if error.__cause__ is not None:
        yield from _places(error.__cause__)


def _calls(traceback: TracebackType | None) -> Iterator[tuple[str, int]]:
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if not file.startswith((*_LIBRARIES, "<")):
            yield file, traceback.tb_lineno
        traceback = traceback.tb_next


def _shortened(file: str) -> str:
    """Return the path relative to the import path, or to the current folder."""
    folders = [f"{folder.rstrip('/')}/" for folder in (*sys.path, str(Path.cwd())) if folder]
    return file.removeprefix(max(filter(file.startswith, folders), key=len, default=""))


# The presence of participants: the interval of their statuses, and the silence after which one counts as gone. Only
# decided here.

LOOK_SECONDS = 1.0  # changes of a participant's status are published within it
BEAT_SECONDS = 5.0  # an unchanged status is published this often
SILENT_SECONDS = 12.0  # two beats may get lost
STORE_PROBLEM = "store_problem"  # in the details of a status: why nothing can be stored
KEPT = ("starting", "ready", "restarting")  # children that the supervisor keeps alive
OF_THE_BEATS = {"published", "received", "handled"}  # counters that every beat changes


class StatusBeat:
    """The schedule of a participant's status messages: soon after anything but the beats themselves has changed, or
    after a newcomer that does not know the status yet; else every five seconds, aligned with all others.
    """

    def __init__(self) -> None:
        self._told: object = None
        self._told_in = -1

    def renew(self) -> None:
        """Publish the status again soon, because a receiver may have missed it."""
        self._told = None

    def is_due(self, status: ParticipantStatus, now: float) -> bool:
        """Whether to publish this status at `now`, in seconds of one monotonic clock."""
        counters = {name: count for name, count in status.counters.items() if name not in OF_THE_BEATS}
        last_seq = {subject: seq for subject, seq in status.last_seq.items() if subject != status.subject}
        what = (status.state, status.inflight, counters, status.details, last_seq, status.subscriptions)
        beat = tick_number(now, BEAT_SECONDS)
        if what == self._told and beat == self._told_in:
            return False
        self._told, self._told_in = what, beat
        return True


class Presence:
    """The presence of one participant, by name, from the statuses passed to `update`. It lives until it has been silent
    for too long, and only while it reports that it is ready.
    """

    def __init__(self, name: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._name, self._clock = name, clock
        self._heard_at = -math.inf
        self._heard = asyncio.Event()

    def update(self, status: ParticipantStatus) -> bool:
        """Record a status; returns whether it is from this participant."""
        if status.name != self._name:
            return False
        self._heard_at = self._clock() if status.state == "ready" else -math.inf
        self._heard.set()
        return True

    @property
    def lives(self) -> bool:
        """Whether a recent status of the participant says that it is ready."""
        return self._clock() - self._heard_at <= SILENT_SECONDS

    async def lives_within(self, seconds: float) -> bool:
        """Whether the participant lives, waiting so long for a sign of it."""
        try:
            async with asyncio.timeout(seconds):
                while not self.lives:
                    self._heard.clear()
                    await self._heard.wait()
        except TimeoutError:
            return False
        return True


log = logging.getLogger(__name__)

STOP_SECONDS = 10.0
LOG_AGAIN_SECONDS = 60.0  # the repeated log of an unchanged reason to postpone messages
YIELD_EVERY = 128  # messages handled without a pause before the socket's reader gets its turn
# The errors of a durable handler whose work cannot be done now: it gets the message again.
NOT_NOW = (BlobNotStored, StoreFailed, NotConfirmed, PublishTimeout, BusClosed, HandedBack)


class HandlerFailed(Exception):
    """A durable handler raised an unexpected error; its message is delivered again after a while."""


class ParticipantRunner:
    """The loop that serves one participant on a bus; `child` is its name for the supervisor. Counts `handled`,
    `failed`, `answered_again` and `expired`."""

    def __init__(self, participant: Participant, bus: Bus, child: str = "") -> None:
        self._participant, self._bus, self._child = participant, bus, child
        participant.bus = bus
        self._counters: Counter[str] = Counter()
        self._replies = RecentReplies()
        self._subscriptions: list[Subscription] = []
        self._durable: list[DurableSubscriptions] = []
        self._inflight = 0
        self._logged_postponed = "", 0.0  # the latest reason, and when that was
        self._state: Literal["starting", "ready", "stopping"] = "starting"
        self._reconnected = asyncio.Event()
        self._status_beat = StatusBeat()

    async def run(self, stop: asyncio.Event, on_ready: Callable[[], object] = lambda: None) -> None:
        """The whole life of the participant, in order; returns after `stop` is set and the work in flight is done."""
        async with self._bus:
            self._stop = stop
            self._make_subscriptions()
            await self._bus.ready()
            async with self._participant.lifespan(), asyncio.TaskGroup() as tasks:
                workers = [tasks.create_task(self._worker(subscription)) for subscription in self._subscriptions]
                self._bus.on_reconnect += [self._reconnected.set, self._status_beat.renew]
                self._bus.on_newcomer.append(self._status_beat.renew)
                await self._announce()
                self._state = "ready"
                manners = [tasks.create_task(self._beat()), tasks.create_task(self._announce_again())]
                for durable in self._durable:
                    durable.consumer.start()
                on_ready()
                await stop.wait()
                self._state = "stopping"
                self._bus.post(self._status())
                self._participant.hand_back()
                await self._finish(workers)
                for durable in self._durable:
                    await durable.consumer.close()
                for task in manners:
                    task.cancel()
                self._bus.post(self._status())  # with the last numbers, so that a loss at the very end shows

    def _replaced(self, why: str = "another process has replaced this one") -> None:
        log.error("%s: this process ends", why)
        self._stop.set()

    def _make_subscriptions(self) -> None:
        handlers = sorted(self._participant.handlers(), key=lambda handles: handles.durable or "")
        for name, group in groupby(handlers, key=lambda handles: handles.durable):
            if name is None:
                self._subscriptions += [LiveSubscription(self._bus, self._participant, handles) for handles in group]
            else:
                self._durable.append(DurableSubscriptions(self._bus, self._participant, name, group, self._replaced))
                self._subscriptions += self._durable[-1].subscriptions

    def _worker(self, subscription: Subscription) -> Coroutine[None, None, None]:
        return (
            self._work_in_order(subscription)
            if subscription.handles.concurrency == 1
            else self._work_side_by_side(subscription)
        )

    async def _work_in_order(self, subscription: Subscription) -> None:
        done = 0
        async for envelope in subscription.inbox:
            await self._handle(subscription, envelope)
            done += 1
            if done % YIELD_EVERY == 0:
                await asyncio.sleep(0)

    async def _work_side_by_side(self, subscription: Subscription) -> None:
        places = asyncio.Semaphore(subscription.handles.concurrency)
        async with asyncio.TaskGroup() as tasks:
            await places.acquire()  # before an envelope is taken: it waits where it can expire
            async for envelope in subscription.inbox:
                task = tasks.create_task(self._handle(subscription, envelope))
                task.add_done_callback(lambda _: places.release())
                await places.acquire()

    async def _handle(self, subscription: Subscription, envelope: Envelope) -> None:
        self._inflight += 1
        try:
            await self._process(subscription, envelope)
            if self._participant.kind is Kind.OBSERVER and subscription.handles.durable is not None:
                failpoints.reach("observer.handled")
            subscription.done(envelope)
        except MalformedFrame as error:
            self._bus.reject(str(error), envelope.payload)
            subscription.done(envelope)
        except HandlerFailed as error:
            subscription.failed(envelope, str(error))
        except StoreFenced as error:
            subscription.not_done(envelope)
            self._replaced(str(error))
        except NOT_NOW as error:
            self._counters["put_off"] += 1
            self._log_postponed(error)
            subscription.not_done(envelope)
        except Exception as error:  # noqa: BLE001 - nobody can be told any more, and the participant must not die of it
            self._fail(f"the reply to {envelope.subject} could not be published", error)
            subscription.not_done(envelope)
        finally:
            self._inflight -= 1

    def _log_postponed(self, error: LocalError) -> None:
        """Log a cause that affects all messages, such as a full disk, at first and then once a minute."""
        now, sentence = asyncio.get_running_loop().time(), str(error)
        told, told_at = self._logged_postponed
        is_told = not isinstance(error, HandedBack) and (sentence != told or now - told_at >= LOG_AGAIN_SECONDS)
        if is_told:
            self._logged_postponed = sentence, now
        log.log(logging.WARNING if is_told else logging.DEBUG, "postponed: %s", error)

    async def _process(self, subscription: Subscription, envelope: Envelope) -> None:
        handles = subscription.handles
        message = handles.message.decode(await self._bus.unpack(envelope))
        query_id_var.set(getattr(message, "query_id", "-"))
        if not handles.message.is_request:
            reply = await self._call(subscription, message, envelope)
            if reply is not None:
                await self._reply(reply, message, envelope)
        elif self._replies.begin(envelope.id):
            reply = await self._call(subscription, message, envelope)
            if reply is None:  # the answer comes later: it may be lost, so a repeated request is for the handler
                self._replies.forget(envelope.id)
            await self._reply(reply, message, envelope, envelope.id)
        else:
            self._counters["answered_again"] += 1
            await self._reply(self._replies.answer(envelope.id), message, envelope, envelope.id)

    async def _call(self, subscription: Subscription, message: Message, envelope: Envelope) -> Message | None:
        """Return the handler's reply, or its error."""
        self._counters["handled"] += 1
        try:
            return await subscription.method(message, envelope)
        except Exception as error:
            is_put_off = subscription.handles.durable is not None and isinstance(error, NOT_NOW)
            if is_put_off or isinstance(error, StoreFenced):
                raise
            if message.is_request and isinstance(error, BadRequest):
                log.info("%s: refused: %s", envelope.subject, error)
            else:
                self._fail(envelope.subject, error)
            reply = self._participant.error_reply(message, error)
            if subscription.handles.durable is not None and reply is None:
                raise HandlerFailed(located(error)) from error  # its text is in the log
            return reply or self._dead_letter(envelope, error)

    async def _reply(
        self, reply: Message | None, message: Message, envelope: Envelope, in_reply_to: str | None = None
    ) -> None:
        if reply is None:
            return
        try:
            if in_reply_to is not None:
                self._replies.settle(in_reply_to, reply)
            await self._bus.publish(reply, envelope.trace(), in_reply_to=in_reply_to)
        except NOT_NOW:  # the reply is fine: a repeated request gets it
            raise
        except Exception as error:  # noqa: BLE001 - too large, or no message at all: the asker has to hear that
            self._fail(f"the reply to {envelope.subject} cannot be sent", error)
            reply = self._participant.error_reply(message, error) or self._dead_letter(envelope, error)
            if in_reply_to is not None:
                self._replies.settle(in_reply_to, reply)
            await self._bus.publish(reply, envelope.trace(), in_reply_to=in_reply_to)

    def _dead_letter(self, envelope: Envelope, error: Exception) -> BusDead:
        return BusDead(
            participant=self._participant.name,
            envelope_id=envelope.id,
            dead_subject=envelope.subject,
            error=ErrorInfo.of(error),
        )

    def _fail(self, what: str, error: Exception) -> None:
        self._counters["failed"] += 1
        known = isinstance(error, LocalError) and not log.isEnabledFor(logging.DEBUG)
        log.error("%s: %s", what, explained(error), exc_info=None if known else error)

    async def _finish(self, workers: list[asyncio.Task[None]]) -> None:
        """Accept no more work; wait up to ten seconds for the handlers in flight."""
        for subscription in self._subscriptions:
            subscription.close()
        if not workers:
            return
        _, unfinished = await asyncio.wait(workers, timeout=STOP_SECONDS)
        if unfinished:
            log.warning("%d messages in flight after %g s are left undone", self._inflight, STOP_SECONDS)
        for worker in unfinished:
            worker.cancel()

    async def _announce(self) -> None:
        try:
            await self._participant.announce()
        except Exception as error:  # noqa: BLE001 - clients that know the participant are served all the same
            self._fail("the announcement failed", error)

    async def _announce_again(self) -> None:
        while True:
            await self._reconnected.wait()
            self._reconnected.clear()
            await self._announce()

    async def _beat(self) -> None:
        while True:
            status = self._status()
            if self._status_beat.is_due(status, asyncio.get_running_loop().time()):
                self._bus.post(status)
            try:
                for gap in self._bus.take_gaps():
                    level = logging.DEBUG if _is_out_of_date(gap.missed_subject) else logging.WARNING
                    log.log(level, "missed %d of %s from %s", gap.missed, gap.missed_subject, gap.sender)
                    await self._bus.publish(gap)
            except LocalError as error:
                log.warning("a gap could not be reported: %s", error)
            await asyncio.sleep(until_next_tick(asyncio.get_running_loop().time(), LOOK_SECONDS))

    def _status(self) -> ParticipantStatus:
        expired = sum(subscription.inbox.expired for subscription in self._subscriptions)
        return ParticipantStatus(
            name=self._participant.name,
            kind=self._participant.kind,
            pid=os.getpid(),
            instance=self._bus.instance,
            state=self._state,
            child=self._child,
            inflight=self._inflight,
            counters={**self._bus.counters, **self._counters, "expired": expired, **self._participant.metrics()},
            details=self._details(),
            last_seq={s: n for s, n in self._bus.last_seq.items() if not is_said_again(s)},
            subscriptions=self._heard(),
        )

    def _details(self) -> dict[str, str]:
        details, store_problem = self._participant.details(), unwritable()
        return {**details, STORE_PROBLEM: store_problem} if store_problem and "problem" not in details else details

    def _heard(self) -> dict[str, str]:
        live = dict.fromkeys(self._bus.heard(), "")
        durable = {subject: each.name for each in self._durable for subject in each.subjects}
        return dict(sorted({**live, **durable}.items()))


def _is_out_of_date(subject: str) -> bool:
    """Whether the missed message was replaced by a newer one. When a proxy dies, every participant misses messages of
    all others.
    """
    return subject == ParticipantStatus.subject or is_said_again(subject)


# How busy a thread is.

SCHEDSTAT = Path("/proc/thread-self/schedstat")  # of Linux: nanoseconds run, nanoseconds ready to run, times
LEAST_SECONDS = 0.5
STEP = 10  # per cent: smaller changes are not reported


class ThreadLoad:
    """The load of a thread: the share of time in which it ran or, where the system reports that, waited for a
    processor. Near 100 % more work delays everything, whichever process keeps the processors busy.
    """

    def __init__(self) -> None:
        self._at, self._busy, self._percent = time.monotonic(), _busy_seconds(), 0

    def percent(self) -> int:
        """From 0 to 100, in tens, since the last look, which is half a second ago at least. For the thread itself."""
        now = time.monotonic()
        if now - self._at >= LEAST_SECONDS:
            busy = _busy_seconds()
            share = (busy - self._busy) / (now - self._at)
            self._percent = min(100, STEP * round(100 * share / STEP))
            self._at, self._busy = now, busy
        return self._percent


def _busy_seconds() -> float:
    try:
        run, ready, _ = SCHEDSTAT.read_text().split()
    except (OSError, ValueError):
        return time.thread_time()
    return (int(run) + int(ready)) / 1e9
