"""The models as a door sees them."""

from __future__ import annotations

from local.apps.participant_client import ParticipantClient
from local.protocol.model_messages import ModelRequest, ModelResult, ModelVerb


class Models(ParticipantClient):
    """Asks which models there are, has them pulled and chosen. How a pull goes on is `model.progress` on the bus."""

    participant = "model_keeper"
    answer_seconds = 20.0  # longer than Ollama is waited for
    publishes = (ModelRequest,)

    async def ask(self, verb: ModelVerb, model: str = "") -> ModelResult:
        """The answer to a `ModelRequest`."""
        return await self._request(ModelRequest(verb=verb, model=model), ModelResult)
