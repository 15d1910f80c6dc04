"""The goals as a door sees them."""

from __future__ import annotations

from typing import Any

from local.apps.participant_client import ParticipantClient
from local.protocol.goal_messages import GoalRecord, GoalRequest, GoalResult, GoalVerb


class Goals(ParticipantClient):
    """Asks reflection, whose heartbeat keeps them."""

    participant = "reflection"
    publishes = (GoalRequest,)

    async def ask(self, verb: GoalVerb, **fields: Any) -> tuple[GoalRecord, ...]:
        """The goals that a `GoalRequest` with these fields is about."""
        return (await self._request(GoalRequest(verb=verb, **fields), GoalResult)).goals
