"""Somebody who says yes to everything that asks for leave, as soon as it is on record."""

from __future__ import annotations

from local.bus.envelope import Envelope
from local.core.errors import RequestTimeout
from local.permissions.messages import ApprovalRequest, PermissionRequest, PermissionResult
from local.runtime.participant import Participant, Settingless, on

SECONDS = 5.0


class Person(Participant):
    """A frontend with nobody before it."""

    name = "person"
    publishes = (PermissionRequest,)

    def __init__(self, config: Settingless | None = None) -> None:
        super().__init__(config or Settingless())

    @on(ApprovalRequest, durable="person", concurrency=16, lane_width=4)
    async def allow(self, asked: ApprovalRequest, envelope: Envelope) -> None:
        """Until the gatekeeper has heard it; one that it decided meanwhile is decided."""
        decision = PermissionRequest(verb="decide", call_id=asked.call_id, decision="allow", by="person")
        while True:
            try:
                await self.bus.request(decision, PermissionResult, SECONDS)
                return
            except RequestTimeout:
                continue
