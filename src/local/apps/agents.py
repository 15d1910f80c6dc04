"""Agents as a door sees them: which there are and what they do, and one stopped; over the bus."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from local.bus.bus import Bus
from local.errors import LocalError, RequestTimeout
from local.protocol.agent_messages import AgentRequest, AgentResult, AgentVerb
from local.protocol.message import ErrorInfo

ANSWER_SECONDS = 10.0
UNSEEN_SECONDS = 1.5  # for one that is there all the same: its first status beat may be on its way


class SwarmAway(LocalError):
    """Nobody who has agents work takes part."""

    kind = "unavailable"

    def __init__(self) -> None:
        super().__init__("no swarm answers: one takes part if `swarm` is among the `participants`")


class AgentRefused(LocalError):
    """What was asked for was not done; `kind` and text are the swarm's."""

    def __init__(self, error: ErrorInfo) -> None:
        super().__init__(error.message)
        self.kind = error.kind


class Agents:
    """Asks the swarm. `is_there()` says whether one was heard of lately."""

    publishes = (AgentRequest,)

    def __init__(self, bus: Bus, is_there: Callable[[], bool]) -> None:
        self._bus, self._is_there = bus, is_there

    async def ask(self, verb: AgentVerb, of_user: str | None, **fields: Any) -> AgentResult:
        """The answer to an `AgentRequest` with these fields. Raises `AgentRefused` and `SwarmAway`."""
        request = AgentRequest(verb=verb, of_user=of_user, **fields)
        seconds = ANSWER_SECONDS if self._is_there() else UNSEEN_SECONDS
        try:
            result = await self._bus.request(request, AgentResult, seconds)
        except RequestTimeout:
            raise SwarmAway from None
        if result.error is not None:
            raise AgentRefused(result.error)
        return result
