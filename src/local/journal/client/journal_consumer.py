"""One process's hold on named durable consumers of the journal."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from itertools import count

from local.bus.durability import Carrier, Delivered
from local.errors import MalformedFrame
from local.protocol.envelope import Envelope, decode
from local.protocol.journal_messages import (
    ConsumerClaim,
    JournalAck,
    JournalAttach,
    JournalDeliver,
    JournalDetach,
    JournalFailed,
    JournalFenced,
    JournalGiven,
    JournalHurry,
    JournalWorking,
)
from local.tick import until_next_tick

log = logging.getLogger(__name__)

WORKING_SECONDS = 0.25
ATTACH_SECONDS = 2.0
KEPT_DONE = 4096
MAX_REASON = 2000  # characters


class JournalConsumers:
    """All durable consumers that one process serves: what is said to keep hold of them is said in one message.

    Attaches at once, when the journal has opened, and each `ATTACH_SECONDS`; says four times a second what takes
    longer than that.
    """

    def __init__(self, carrier: Carrier, clock: Callable[[], asyncio.AbstractEventLoop]) -> None:
        self.carrier, self.clock = carrier, clock
        self._serving: list[JournalConsumer] = []
        self._attaching: asyncio.TimerHandle | None = None
        self._working: asyncio.TimerHandle | None = None

    def add(self, consumer: JournalConsumer) -> None:
        """A consumer is ready to be given messages."""
        self._serving.append(consumer)
        self._attach_in(0.0)

    def remove(self, consumer: JournalConsumer) -> None:
        """A consumer ends."""
        if consumer in self._serving:
            self._serving.remove(consumer)
        if not self._serving and self._attaching is not None:
            self._attaching.cancel()

    def attach(self) -> None:
        """Say which consumers this process serves, if it does serve any."""
        if self._serving:
            self.carrier.post(JournalAttach(consumers=tuple(consumer.claim for consumer in self._serving)))
            self._attach_in(until_next_tick(self.clock().time(), ATTACH_SECONDS))

    def holds_something(self) -> None:
        """A consumer was given a message: if it is still held in a while, that is said."""
        if self._working is None:
            self._working = self.clock().call_later(WORKING_SECONDS, self._say_what_takes_long)

    def _attach_in(self, seconds: float) -> None:
        if self._attaching is not None:
            self._attaching.cancel()
        self._attaching = self.clock().call_later(seconds, self.attach)

    def _say_what_takes_long(self) -> None:
        self._working = None
        attempts = {consumer.claim.name: lasting for consumer in self._serving if (lasting := consumer.lasting())}
        if attempts:
            self.carrier.post(JournalWorking(attempts=attempts))
        if any(consumer.attempts for consumer in self._serving):
            self.holds_something()


class JournalConsumer:
    """Acknowledges what is done, and again where the journal has not heard it.

    A message is passed on when the one that has to begin before it has been: that one may have been lost on its way
    while this one was not.
    """

    def __init__(
        self,
        all_of_them: JournalConsumers,
        claim: ConsumerClaim,
        receive: Callable[[Delivered], object],
        replaced: Callable[[], object],
    ) -> None:
        self._all, self._carrier = all_of_them, all_of_them.carrier
        self._receive, self._replaced = receive, replaced
        self.claim = claim
        self.attempts: dict[int, int] = {}  # of the messages in flight
        self._said: dict[int, int] = {}  # what was in flight at the last beat: only what takes longer is worth a word
        self._done: OrderedDict[int, None] = OrderedDict()
        self._unsaid: list[int] = []  # of these, what the journal is told with what else is done in a moment
        self._closed = False
        self._marks = count(1)
        self._hurries: dict[int, asyncio.Future[None]] = {}  # by mark
        self._ended = asyncio.Event()  # something in flight has
        self._ends = [
            self._carrier.subscribe(JournalDeliver.subject + claim.name, self._deliver),
            self._carrier.subscribe(JournalFenced.subject + claim.name, self._fenced),
            self._carrier.subscribe(JournalGiven.subject + claim.name, self._given),
        ]

    def start(self) -> None:
        """As in `Consumer`."""
        self._all.add(self)

    def acknowledge(self, number: int) -> None:
        """As in `Consumer`."""
        self._pop(number)
        self._done[number] = None
        if len(self._done) > KEPT_DONE:
            self._done.popitem(last=False)
        if not self._unsaid:
            self._all.clock().call_later(self.claim.linger_ms / 1000, self._say_what_is_done)
        self._unsaid.append(number)

    async def caught_up(self, seconds: float) -> bool:
        """As in `Consumer`."""
        try:
            async with asyncio.timeout(seconds):
                await self._hurry()
                before = set(self.attempts)
                while not before.isdisjoint(self.attempts):
                    self._ended.clear()
                    await self._ended.wait()
        except TimeoutError:
            return False
        return True

    def release(self, number: int) -> None:
        """As in `Consumer`."""
        self._pop(number)

    def fail(self, number: int, reason: str) -> None:
        """As in `Consumer`."""
        attempt = self._pop(number)
        if attempt is not None and not self._closed:
            self._carrier.post(
                JournalFailed(consumer=self.claim.name, number=number, attempt=attempt, reason=reason[:MAX_REASON])
            )

    async def close(self) -> None:
        """As in `Consumer`."""
        if not self._closed:
            self._say_what_is_done()
            self._end()
            self._carrier.post(JournalDetach(consumer=self.claim.name))

    def lasting(self) -> dict[int, int]:
        """The attempts in flight that were so when this was last asked."""
        lasting = {number: attempt for number, attempt in self.attempts.items() if number in self._said}
        self._said = dict(self.attempts)
        return lasting

    def _pop(self, number: int) -> int | None:
        self._ended.set()
        return self.attempts.pop(number, None)

    async def _hurry(self) -> None:
        """Returns when the journal has given what there was."""
        mark, given = next(self._marks), asyncio.get_running_loop().create_future()
        self._hurries[mark] = given
        self._say_what_is_done()  # there is room for as much
        try:
            self._carrier.post(JournalHurry(consumer=self.claim.name, mark=mark))
            await given
        finally:
            del self._hurries[mark]

    def _given(self, envelope: Envelope) -> None:
        given = JournalGiven.decode(envelope.payload)
        hurry = self._hurries.get(given.mark)
        if given.instance == self._carrier.instance and hurry is not None and not hurry.done():
            hurry.set_result(None)

    def _say_what_is_done(self) -> None:
        if self._unsaid and not self._closed:
            self._carrier.post(JournalAck(consumer=self.claim.name, numbers=tuple(self._unsaid)))
        self._unsaid.clear()

    def _end(self) -> None:
        self._closed = True
        self._all.remove(self)
        for end in self._ends:
            end()

    def _deliver(self, envelope: Envelope) -> None:
        try:
            delivery = JournalDeliver.decode(self._carrier.unpack_now(envelope.payload))
            if delivery.instance != self._carrier.instance:
                return
            delivered = decode(delivery.frame.encode())
        except MalformedFrame as error:
            log.error("a delivery cannot be read: %s", error)
            return
        number = delivery.number
        if number in self._done:
            self._carrier.post(JournalAck(consumer=self.claim.name, numbers=(number,)))  # the first one was lost
        elif number in self.attempts:
            self.attempts[number] = delivery.attempt
        elif not delivery.after or delivery.after in self.attempts or delivery.after in self._done:
            self.attempts[number] = delivery.attempt
            self._all.holds_something()
            self._receive(Delivered(number, delivery.attempt, delivered))

    def _fenced(self, envelope: Envelope) -> None:
        if JournalFenced.decode(envelope.payload).instance == self._carrier.instance and not self._closed:
            self._end()
            self._replaced()
