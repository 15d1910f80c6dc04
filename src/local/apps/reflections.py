"""The routines of reflection as a door sees them."""

from __future__ import annotations

from local.apps.participant_client import ParticipantClient
from local.protocol.reflection_messages import RoutineName, RoutineRecord, RoutineRequest, RoutineResult, RoutineVerb


class Reflections(ParticipantClient):
    """Asks reflection for one of its routines."""

    participant = "reflection"
    publishes = (RoutineRequest,)

    async def ask(self, routine: RoutineName, verb: RoutineVerb) -> RoutineRecord:
        """How the routine is then; of now, `why` says why it is not done, and is empty if it is."""
        return (await self._request(RoutineRequest(verb=verb, routine=routine), RoutineResult)).state
