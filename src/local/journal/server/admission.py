"""How a durable consumer of the journal comes into being, and how processes come to serve it."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Sequence

from local.errors import StoreFull
from local.journal.core.delivery_core import Decision, DeliveryCore
from local.journal.core.durable_consumer import DurableConsumer
from local.journal.store.entry import Header
from local.journal.store.store import JournalStore
from local.protocol.journal_messages import ConsumerClaim, JournalAttach

log = logging.getLogger(__name__)

PAGE = 2000


class JournalAdmission:
    """A consumer that is known is attached at once; one that is new, or has changed what it wants, is admitted first:
    it is made from what the store knows of it, and gets everything there is."""

    def __init__(
        self,
        core: DeliveryCore,
        store: JournalStore,
        carry_out: Callable[[Sequence[Decision]], None],
        clock: Callable[[], float],
        *,
        ack_wait: float,
        max_deliver: int,
    ) -> None:
        self._core, self._store, self._carry_out, self._clock = core, store, carry_out, clock
        self._ack_wait, self._max_deliver = ack_wait, max_deliver
        self._admitted: dict[str, ConsumerClaim] = {}
        self._newcomers: dict[str, tuple[ConsumerClaim, str]] = {}

    def attach(self, message: JournalAttach, instance: str) -> bool:
        """A process serves consumers. True if some of them have to be admitted first."""
        for claim in message.consumers:
            if self._admitted.get(claim.name) == claim:
                self._carry_out(self._core.attach(claim.name, instance, self._clock()))
            else:
                self._newcomers[claim.name] = (claim, instance)
        return bool(self._newcomers)

    async def admit_newcomers(self) -> None:
        """Admit those that wait for it. Raises `StoreFailed`."""
        newcomers, self._newcomers = self._newcomers, {}
        for name, (claim, instance) in newcomers.items():
            try:
                if self._admitted.get(name) != claim:  # else it has said so again while earlier ones were admitted
                    await self._admit(claim)
            except StoreFull as error:
                log.error("%s: %s has to wait", error, name)
                continue  # it attaches again
            self._carry_out(self._core.attach(name, instance, self._clock()))

    async def _admit(self, claim: ConsumerClaim) -> None:
        consumer = DurableConsumer(
            claim.name,
            claim.subjects,
            ack_wait=self._ack_wait,
            max_deliver=self._max_deliver,
            max_in_flight=claim.max_in_flight,
            lane_width=claim.lane_width,
            state=await self._store.register(claim.name, claim.subjects, floor=0),
        )
        self._core.register(consumer)
        async for header in self._backlog(consumer):
            lane = header.session_id or header.envelope_id
            self._carry_out(consumer.add(header.number, lane, self._clock()))
        self._admitted[claim.name] = claim

    async def _backlog(self, consumer: DurableConsumer) -> AsyncIterator[Header]:
        """What a consumer may still need, in order."""
        after = consumer.floor
        while headers := await self._store.recovery(consumer.subjects, after, PAGE):
            for header in headers:
                yield header
            after = headers[-1].number
