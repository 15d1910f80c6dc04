"""Leave as a door sees it: what waits for a decision, and what was allowed for whole conversations."""

from __future__ import annotations

from typing import Any

from local.apps.participant_client import ParticipantClient
from local.protocol.permission_messages import PermissionRequest, PermissionResult, PermissionVerb


class Permissions(ParticipantClient):
    """Asks the gatekeeper."""

    participant = "gatekeeper"
    publishes = (PermissionRequest,)

    async def ask(self, verb: PermissionVerb, of_user: str | None, **fields: Any) -> PermissionResult:
        """The answer to a `PermissionRequest` with these fields."""
        return await self._request(PermissionRequest(verb=verb, of_user=of_user, **fields), PermissionResult)
