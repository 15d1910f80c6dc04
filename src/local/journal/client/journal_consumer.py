"""One process's hold on a named durable consumer of the journal."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Sequence

from local.bus.durability import Carrier, Delivered
from local.errors import MalformedFrame
from local.protocol.envelope import Envelope, decode
from local.protocol.journal_messages import (
    JournalAck,
    JournalAttach,
    JournalDeliver,
    JournalDetach,
    JournalFenced,
    JournalOpened,
    JournalWorking,
)

log = logging.getLogger(__name__)

WORKING_SECONDS = 0.25
ATTACH_EVERY = 4  # of these
KEPT_DONE = 4096


class JournalConsumer:
    """Attaches at once and each second; says four times a second what it is working on; acknowledges what is done, and
    again where the journal has not heard it.

    A message is passed on when the one that has to begin before it has been: that one may have been lost on its way
    while this one was not.
    """

    def __init__(
        self,
        carrier: Carrier,
        name: str,
        subjects: Sequence[str],
        receive: Callable[[Delivered], object],
        replaced: Callable[[], object],
        *,
        max_in_hand: int,
        lane_width: int,
    ) -> None:
        self._carrier, self._name, self._post = carrier, name, carrier.post
        self._receive, self._replaced = receive, replaced
        self._attach = JournalAttach(
            consumer=name, subjects=tuple(subjects), max_in_hand=max_in_hand, lane_width=lane_width
        )
        self._attempts: dict[int, int] = {}  # in hand
        self._said: dict[int, int] = {}  # what was in hand at the last beat: only what takes longer is worth a word
        self._done: OrderedDict[int, None] = OrderedDict()
        self._closed = False
        self._ends = [
            carrier.subscribe(JournalDeliver.subject + name, self._deliver),
            carrier.subscribe(JournalFenced.subject + name, self._fenced),
            carrier.subscribe(JournalOpened.subject, lambda _: self._opened()),
        ]
        self._beats = 0
        self._timer: asyncio.Handle | None = None

    def start(self) -> None:
        """As in `Consumer`."""
        self._beat()

    def acknowledge(self, number: int) -> None:
        """As in `Consumer`."""
        self._attempts.pop(number, None)
        self._done[number] = None
        if len(self._done) > KEPT_DONE:
            self._done.popitem(last=False)
        self._post(JournalAck(consumer=self._name, numbers=(number,)))

    def release(self, number: int) -> None:
        """As in `Consumer`."""
        self._attempts.pop(number, None)

    async def close(self) -> None:
        """As in `Consumer`."""
        if not self._closed:
            self._end()
            self._post(JournalDetach(consumer=self._name))

    def _end(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        for end in self._ends:
            end()

    def _opened(self) -> None:
        if self._timer is not None:
            self._post(self._attach)

    def _beat(self) -> None:
        if self._beats % ATTACH_EVERY == 0:
            self._post(self._attach)
        self._beats += 1
        lasting = {number: attempt for number, attempt in self._attempts.items() if number in self._said}
        if lasting:
            self._post(JournalWorking(consumer=self._name, attempts=lasting))
        self._said = dict(self._attempts)
        self._timer = asyncio.get_running_loop().call_later(WORKING_SECONDS, self._beat)

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
            self._post(JournalAck(consumer=self._name, numbers=(number,)))  # the first one was lost
        elif number in self._attempts:
            self._attempts[number] = delivery.attempt
        elif not delivery.after or delivery.after in self._attempts or delivery.after in self._done:
            self._attempts[number] = delivery.attempt
            self._receive(Delivered(number, delivery.attempt, delivered))

    def _fenced(self, envelope: Envelope) -> None:
        if JournalFenced.decode(envelope.payload).instance == self._carrier.instance and not self._closed:
            self._end()
            self._replaced()
