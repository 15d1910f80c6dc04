"""What tools have changed, as a door sees it."""

from __future__ import annotations

from typing import Any

from local.apps.participant_client import ParticipantClient
from local.protocol.change_messages import ChangeRequest, ChangeResult, ChangeVerb


class Changes(ParticipantClient):
    """Asks whoever changes files."""

    participant = "files"
    answer_seconds = 30.0
    publishes = (ChangeRequest,)

    async def ask(self, verb: ChangeVerb, **fields: Any) -> ChangeResult:
        """The answer to a `ChangeRequest` with these fields."""
        return await self._request(ChangeRequest(verb=verb, **fields), ChangeResult)
