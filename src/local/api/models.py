"""The models that a caller of the API may ask, and the choice from a query's options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from local.api.clients import ParticipantRefused
from local.api.context import api
from local.api.guests import MODEL_KEEPER, SECONDS, known_models
from local.api.http import RequestRefused
from local.api.security import Principal
from local.bus.messages import DEFAULT_MODEL
from local.models.messages import ModelRecord, ModelRequest, ModelResult

STAND_IN = "stand_in"  # a backend whose models are only names
KINDS = ("not_found", "bad_model")  # of refusals that are about the name


async def model_of(name: str, caller: Principal, aliases: Mapping[str, str] | None = None) -> str:
    """The model that a query names, by its id; "default" for the one that answers where none is named. `aliases` maps
    further names to it. Raises `RequestRefused` with the models that there are, and for one that the caller may not
    use."""
    name = (aliases or {}).get(name, name)
    if name in (DEFAULT_MODEL, api().participants.model):  # it exists, even if the catalogue is not available
        await api().guests.require_default(caller.user_id)
        return DEFAULT_MODEL if api().backend == STAND_IN else name
    try:
        found = await api().ask(MODEL_KEEPER, ModelRequest(verb="find", model=name), ModelResult, seconds=SECONDS)
    except ParticipantRefused as error:
        if error.kind not in KINDS:
            raise
        raise RequestRefused(error.kind, f"model: {error}", "model") from None
    [model] = found.models
    await api().guests.require_model(model, caller.user_id)
    return model.id


async def chat_models(caller: Principal) -> Sequence[ModelRecord]:
    """Return the chat models that a query of the caller's can choose now; none without a model manager."""
    return await api().guests.choosable(await known_models(api().requests), caller.user_id)
