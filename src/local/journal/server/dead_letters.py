"""Messages that a durable consumer is given no more: this is told, and on request they are given again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable

from local.bus.bus import Bus
from local.errors import LocalError
from local.journal.core.consumer_decision import DeadLetter
from local.journal.core.consumer_state import ConsumerChanges, ConsumerState, Deaths
from local.journal.store.store import JournalStore
from local.protocol.envelope import Envelope, Trace
from local.protocol.journal_messages import JournalRedeliver
from local.protocol.messages import BusDead, ErrorInfo

log = logging.getLogger(__name__)

GivenAgain = dict[str, tuple[int, ...]]  # numbers by consumer


class DeadLetters:
    """The dead letters of one journal.

    `give(consumer, number, deaths)` has one given again that is on record as such; `wake` leads to a `give_again` soon,
    for what is in `asked`.
    """

    def __init__(
        self,
        bus: Bus,
        store: JournalStore,
        give: Callable[[str, int, Deaths], Awaitable[None]],
        wake: Callable[[], object],
    ) -> None:
        self._bus, self._store, self._give, self._wake = bus, store, give, wake
        self.asked: list[tuple[JournalRedeliver, asyncio.Future[GivenAgain]]] = []

    async def tell(self, dead: DeadLetter) -> Envelope:
        """The `bus.dead` that tells of a message that a consumer is given no more."""
        [found] = await self._store.read(limit=1, after=dead.number - 1)
        log.error("message %d is given up for %s: %s", dead.number, dead.consumer, dead.reason)
        message = BusDead(
            participant=dead.consumer,
            envelope_id=found.entry.envelope_id,
            dead_subject=found.entry.subject,
            error=ErrorInfo(kind="gave_up", message=dead.reason),
        )
        trace = Trace(found.entry.correlation_id, found.entry.envelope_id, found.entry.session_id)
        return self._bus.seal(message, trace)

    async def redeliver(self, request: JournalRedeliver) -> GivenAgain:
        """Have dead letters given again; returns which are to be, when that is on record. It happens between two
        commits, so that all is on record that was done before. Raises `LocalError`: no such consumer, a full disk."""
        answer: asyncio.Future[GivenAgain] = asyncio.get_running_loop().create_future()
        self.asked.append((request, answer))
        self._wake()
        return await answer

    async def give_again(self) -> None:
        """Do what was asked for, one after the other."""
        asked, self.asked = self.asked, []
        for request, answer in asked:
            try:
                given = await self._give_again(request)
            except LocalError as error:
                if not answer.done():
                    answer.set_exception(error)
            else:
                if not answer.done():
                    answer.set_result(given)

    async def _give_again(self, request: JournalRedeliver) -> GivenAgain:
        names = await self._store.consumer_names() if request.consumer is None else [request.consumer]
        states = {name: await self._store.consumer(name) for name in names}
        dead = {name: _chosen(state.dead_letters, request) for name, state in states.items()}
        changes = {name: _again(states[name], numbers) for name, numbers in dead.items() if numbers}
        if changes:
            await self._store.commit([], changes)
        for name, change in changes.items():
            log.info("given again to %s: %s", name, ", ".join(map(str, sorted(change.again))))
            for number in sorted(change.again):
                await self._give(name, number, change.deaths[number])
        both = {name: _chosen({*dead[name], *state.again}, request) for name, state in states.items()}
        return {name: numbers for name, numbers in both.items() if numbers}


def _chosen(numbers: Iterable[int], request: JournalRedeliver) -> tuple[int, ...]:
    return tuple(sorted(set(numbers) & set(request.numbers) if request.numbers else numbers))


def _again(state: ConsumerState, numbers: Iterable[int]) -> ConsumerChanges:
    """One that has killed processes runs alone, and may do so as often as the first time."""
    deaths = {number: Deaths(state.deaths.get(number, Deaths()).total, 0) for number in numbers}
    return ConsumerChanges(again=set(numbers), deaths=deaths)
