"""Turns that are computed before their queries are on record: in memory, and unheard until then (output commit)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple

from local import failpoints
from local.agents.answering.turn_runner import TurnRunner
from local.services.conversation import Asked, ConversationService, Past, StoredTurn

log = logging.getLogger(__name__)

MAX_AT_ONCE = 64
SILENCE_SECONDS = 10.0  # of the journal: then the query was refused, or its publisher will ask again


class Computed(NamedTuple):
    """A turn that has been started, and the past that it was started from."""

    runner: TurnRunner
    past: Past


@dataclass(frozen=True, slots=True)
class Speculation:
    """One turn that is not on record, and what it is made from."""

    asked: Asked
    computing: asyncio.Task[Computed | None]
    end: asyncio.TimerHandle

    async def computed(self) -> Computed | None:
        """What there is of the turn as soon as its model is asked; None if it is not computed ahead."""
        await asyncio.wait({self.computing})
        return None if self.computing.cancelled() else self.computing.result()

    def fits(self, stored: StoredTurn, past: Past) -> bool:
        """Whether that turn is this one, word for word, begins now for the first time, and from the same past."""
        asked = replace(self.asked, tools=stored.tools, model=None)  # which the body has, too
        delivered = Asked(
            stored.query_id, stored.session_id, stored.user_id, stored.envelope_id, stored.query, stored.body,
            stored.in_history, stored.tools, stored.incognito, stored.attempt,
        )  # fmt: skip
        return asked == delivered and not stored.cancelled and stored.beginning == past


class Speculations:
    """At most one of a session, and 64 in all. `is_open` has to be entered before the first one.

    The journal stays the authority: only what it has delivered is taken over, and everything else is closed unseen.
    """

    def __init__(
        self, conversation: ConversationService, start: Callable[[Asked, Past], Awaitable[TurnRunner]]
    ) -> None:
        """`start(asked, past)` makes the runner of a turn."""
        self._conversation, self._make = conversation, start
        self._begun: dict[str, Speculation] = {}  # by session_id
        self._group: asyncio.TaskGroup

    def __len__(self) -> int:
        return len(self._begun)

    @asynccontextmanager
    async def is_open(self) -> AsyncIterator[None]:
        """Own what is computed; at the end it is closed."""
        async with asyncio.TaskGroup() as self._group:
            try:
                yield
            finally:
                self.drop_all()

    def begin(self, asked: Asked) -> None:
        """Compute the turn of a query that was heard, unless there is no place, or something of its session."""
        session_id = asked.session_id
        if session_id in self._begun or len(self) >= MAX_AT_ONCE:
            return
        computing = self._group.create_task(self._compute(asked), name=f"compute {asked.query_id}")
        end = asyncio.get_running_loop().call_later(SILENCE_SECONDS, self.drop, asked.query_id)
        self._begun[session_id] = Speculation(asked, computing, end)

    async def take(self, stored: StoredTurn) -> TurnRunner | None:
        """The runner of a turn that the journal has delivered and that may begin, if it was computed from just that.

        Whatever else was computed of its session is closed: it did not know of this turn.
        """
        speculation = self._begun.get(stored.session_id)
        if speculation is None:
            return None
        computed = await speculation.computed() if speculation.asked.query_id == stored.query_id else None
        fits = computed is not None and speculation.fits(stored, computed.past)
        if self._begun.get(stored.session_id) is not speculation or computed is None or not fits:
            self._close(stored.session_id)
            return None
        del self._begun[stored.session_id]
        speculation.end.cancel()
        failpoints.reach("generator.adopted")
        return computed.runner

    def drop(self, query_id: str) -> None:
        """Close what was computed for a query: it is cancelled, or the journal is silent."""
        for session_id, speculation in list(self._begun.items()):
            if speculation.asked.query_id == query_id:
                self._close(session_id)

    def drop_all(self) -> None:
        """Close everything: what it was made from does not hold any more, or the process ends."""
        for session_id in list(self._begun):
            self._close(session_id)

    async def _compute(self, asked: Asked) -> Computed | None:
        try:
            past = self._conversation.foresee(asked)
            if past is not None:
                runner = await self._make(asked, past)
                runner.start()
                failpoints.reach("generator.speculated")
                return Computed(runner, past)
        except Exception as error:  # noqa: BLE001 - what is wrong is told when the turn runs
            log.debug("query %s is not computed ahead: %s", asked.query_id, error)
        self.drop(asked.query_id)
        return None

    def _close(self, session_id: str) -> None:
        speculation = self._begun.pop(session_id, None)
        if speculation is not None:
            speculation.end.cancel()
            self._group.create_task(_abandon(speculation), name=f"close {speculation.asked.query_id}")


async def _abandon(speculation: Speculation) -> None:
    computed = await speculation.computed()
    if computed is not None:
        await computed.runner.abandon()
