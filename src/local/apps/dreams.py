"""The dreamer as a door sees it."""

from __future__ import annotations

from local.apps.participant_client import ParticipantClient
from local.protocol.dream_messages import DreamRequest, DreamResult, DreamVerb


class Dreams(ParticipantClient):
    """Asks the dreamer."""

    participant = "dreamer"
    publishes = (DreamRequest,)

    async def ask(self, verb: DreamVerb) -> DreamResult:
        """How it is then."""
        return await self._request(DreamRequest(verb=verb), DreamResult)
