"""What a door does to the system itself: participants are started, stopped and restarted, over the bus."""

from __future__ import annotations

from local.apps.participant_client import accepted
from local.bus.bus import Bus
from local.protocol.control_messages import ControlVerb, ParticipantRequest, ParticipantResult
from local.protocol.messages import ChildStatus

CONTROL_SECONDS = 120.0  # a child gets ten to stop, and five times twenty to start


class SystemControl:
    """Asks the supervisor, which is no participant."""

    publishes = (ParticipantRequest,)

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def participant(self, verb: ControlVerb, name: str) -> ChildStatus | None:
        """Start, stop or restart a participant; returns how it is when that is done. Raises `ParticipantRefused`,
        `RequestTimeout`."""
        request = ParticipantRequest(verb=verb, name=name)
        return accepted(await self._bus.request(request, ParticipantResult, CONTROL_SECONDS)).child
