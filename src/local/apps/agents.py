"""Agents as a door sees them: which there are and what they do, and one stopped."""

from __future__ import annotations

from typing import Any

from local.apps.participant_client import ParticipantClient
from local.protocol.agent_messages import AgentRequest, AgentResult, AgentVerb


class Agents(ParticipantClient):
    """Asks the swarm."""

    participant = "swarm"
    publishes = (AgentRequest,)

    async def ask(self, verb: AgentVerb, of_user: str | None, **fields: Any) -> AgentResult:
        """The answer to an `AgentRequest` with these fields."""
        return await self._request(AgentRequest(verb=verb, of_user=of_user, **fields), AgentResult)
