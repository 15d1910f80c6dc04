"""The models as a door sees them: asked of the model keeper over the bus, and perhaps nobody answers."""

from __future__ import annotations

from local.bus.bus import Bus
from local.errors import LocalError, RequestTimeout
from local.protocol.envelope import Trace, new_id
from local.protocol.model_messages import ModelRequest, ModelResult, ModelVerb

ANSWER_SECONDS = 20.0  # longer than Ollama is waited for


class ModelKeeperAway(LocalError):
    """Nobody keeps the models."""

    kind = "unavailable"

    def __init__(self) -> None:
        super().__init__(
            "the model keeper does not answer: it takes part if `model_keeper` is among the `participants` in"
            " system.yaml; if it is, it comes back, so ask again"
        )


class ModelRefused(LocalError):
    """The model keeper did not do what it was asked; `kind` and text are its own."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Models:
    """Asks which models there are, has them pulled and chosen. How a pull goes on is `model.progress` on the bus.

    For `GET /models`: `ask("list")`; `POST /models/pull`: `ask("pull", name)`, which answers at once, and is repeated
    without harm; `DELETE` of that: `ask("stop", name)`; `PUT /models/current`: `ask("use", name)`. All of it is the
    owner's alone. Raises `ModelKeeperAway` and `ModelRefused`, of the kinds bad_name, model_missing, unreachable,
    config and others.
    """

    publishes = (ModelRequest,)

    def __init__(self, bus: Bus) -> None:
        self._bus = bus

    async def ask(self, verb: ModelVerb, model: str = "") -> ModelResult:
        """The answer to a `ModelRequest`."""
        try:
            request = ModelRequest(verb=verb, model=model)
            result = await self._bus.request(request, ModelResult, ANSWER_SECONDS, Trace(new_id()))
        except RequestTimeout:
            raise ModelKeeperAway from None
        if result.error is not None:
            raise ModelRefused(result.error.kind, result.error.message)
        return result
