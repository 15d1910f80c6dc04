"""The models that a caller of the API may ask, and the choice from a query's options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from local.api.clients import ParticipantRefused
from local.api.context import api
from local.api.http import RequestRefused
from local.bus.messages import DEFAULT_MODEL
from local.models.messages import ModelRecord, ModelRequest, ModelResult

MODEL_KEEPER, SECONDS = "model_keeper", 20.0  # longer than it waits for Ollama
STAND_IN = "stand_in"  # a backend whose models are only names
KINDS = ("not_found", "bad_model")  # of refusals that are about the name


async def model_of(name: str, aliases: Mapping[str, str] | None = None) -> str:
    """The model that a query names, by its id; "default" for the one that answers where none is named. `aliases` maps
    further names to it. Raises `RequestRefused` with the models that there are."""
    name = (aliases or {}).get(name, name)
    if name == DEFAULT_MODEL:
        return name
    if name == api().participants.model:  # the answering model exists, even if the catalogue is not available
        return DEFAULT_MODEL if api().backend == STAND_IN else name
    try:
        found = await api().ask(MODEL_KEEPER, ModelRequest(verb="find", model=name), ModelResult, seconds=SECONDS)
    except ParticipantRefused as error:
        if error.kind not in KINDS:
            raise
        raise RequestRefused(error.kind, f"model: {error}", "model") from None
    [model] = found.models
    return model.id


async def chat_models() -> Sequence[ModelRecord]:
    """Return the chat models that a query can choose now; none without a model manager."""
    if not api().requests.expects(MODEL_KEEPER):
        return ()
    found = await api().ask(MODEL_KEEPER, ModelRequest(verb="list"), ModelResult, seconds=SECONDS)
    return [model for model in found.models if model.chat]
