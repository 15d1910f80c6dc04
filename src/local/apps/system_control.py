"""What a door does to the system itself: participants are restarted, and models chosen and pulled, all over the bus."""

from __future__ import annotations

from local.bus.bus import Bus
from local.errors import LocalError, RequestTimeout
from local.protocol.control_messages import ControlVerb, ParticipantRequest, ParticipantResult
from local.protocol.message import ErrorInfo
from local.protocol.messages import ChildStatus
from local.protocol.model_messages import ModelRequest, ModelResult, ModelVerb

CONTROL_SECONDS = 60.0  # a child gets ten to stop, and starts again
MODEL_SECONDS = 20.0


class ControlRefused(LocalError):
    """What was asked for was not done; `kind` and text are those of whoever refused."""

    def __init__(self, error: ErrorInfo) -> None:
        super().__init__(error.message)
        self.kind = "not_found" if error.kind in ("unknown_participant", "model_missing") else error.kind


class KeeperAway(LocalError):
    """Nobody who keeps the models takes part."""

    kind = "unavailable"

    def __init__(self) -> None:
        super().__init__("no model keeper answers: one takes part if `model_keeper` is among the `participants`")


class SystemControl:
    """Every method raises `ControlRefused` and `RequestTimeout`."""

    publishes = (ParticipantRequest, ModelRequest)

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def participant(self, verb: ControlVerb, name: str) -> ChildStatus | None:
        """Start, stop or restart a participant; returns how it is when that is done."""
        request = ParticipantRequest(verb=verb, name=name)
        result = await self._bus.request(request, ParticipantResult, CONTROL_SECONDS)
        if result.error is not None:
            raise ControlRefused(result.error)
        return result.child

    async def models(self, verb: ModelVerb, model: str = "") -> ModelResult:
        """What the model keeper answers. Raises `KeeperAway`, too."""
        try:
            result = await self._bus.request(ModelRequest(verb=verb, model=model), ModelResult, MODEL_SECONDS)
        except RequestTimeout:
            raise KeeperAway from None
        if result.error is not None:
            raise ControlRefused(result.error)
        return result
