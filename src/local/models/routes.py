"""Models: list, pull, and choose the one that answers."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, StringConstraints
from starlette.requests import Request
from starlette.responses import Response

from local.api.context import api
from local.api.http import JsonResponse, read_body, takes
from local.api.security import Access, Caller, open_to
from local.models.messages import ModelRequest, ModelResult, ModelVerb

LOAD_SECONDS = 140.0


class ModelBody(BaseModel):
    """A model: its name in Ollama, the path of a GGUF file, or to pull it where it lies."""

    model_config = ConfigDict(extra="forbid", strict=True)
    name: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]


def add_routes(routes: APIRouter) -> None:
    """The routes under /models."""
    models = _Models()
    routes.add_api_route("/models", models.listing, methods=["GET"])
    routes.add_api_route("/models/current", models.use, methods=["PUT"], openapi_extra=takes(ModelBody))
    routes.add_api_route("/models/pull", models.pull, methods=["POST"], openapi_extra=takes(ModelBody))
    routes.add_api_route("/models/pull/stop", models.stop, methods=["POST"], openapi_extra=takes(ModelBody))
    routes.add_api_route("/models/load", models.load, methods=["POST"], openapi_extra=takes(ModelBody))
    routes.add_api_route("/models/unload", models.unload, methods=["POST"], openapi_extra=takes(ModelBody))


class _Models:
    @open_to(Access.USERS)
    async def listing(self, caller: Caller) -> Response:
        """The models that are here, the one that answers by default, the one of the next start, and the pulls; users
        other than the owner see those that they can choose for a query."""
        found = await _ask("list")
        models = found.models
        if not caller.is_owner:
            choosable = await api().guests.choosable([model for model in models if model.chat], caller.user_id)
            models = tuple(model.model_copy(update={"path": None}) for model in choosable)
        default = next((model.id for model in models if model.default), None)
        if default is None and api().guests.has_default(caller.user_id):
            default = api().participants.model
        told = {"models": models, "default": default, "current": found.chosen or None}
        pulls, note = (found.pulls, found.note) if caller.is_owner else ((), "")
        return JsonResponse({**told, "pulls": pulls, "note": note or None})

    @open_to(Access.TOKEN)
    async def use(self, request: Request) -> Response:
        """Have a model answer by default: at once where a running server has it, else from the next start on."""
        asked = await read_body(request, ModelBody)
        found = await _ask("use", asked.name)
        restart = [] if found.at_once else ["system"]
        return JsonResponse({"model": found.models[0], "current": found.chosen, "restart_needed": restart})

    @open_to(Access.TOKEN)
    async def pull(self, request: Request) -> Response:
        """Fetch a model; 202, and how far it is comes as `pull` on /stream and as `model.progress` on the bus."""
        asked = await read_body(request, ModelBody)
        found = await _ask("pull", asked.name)
        return JsonResponse({"pull": found.pulls[0]}, 202)

    @open_to(Access.TOKEN)
    async def stop(self, request: Request) -> Response:
        """Stop pulling a model; its downloaded part is kept, and the next pull resumes there."""
        asked = await read_body(request, ModelBody)
        found = await _ask("stop", asked.name)
        return JsonResponse({"pull": found.pulls[0]})

    @open_to(Access.TOKEN)
    async def load(self, request: Request) -> Response:
        """Have a model in the memory of its server, with the server's own context; only Ollama can be asked."""
        asked = await read_body(request, ModelBody)
        return JsonResponse({"model": (await _ask("load", asked.name, LOAD_SECONDS)).models[0]})

    @open_to(Access.TOKEN)
    async def unload(self, request: Request) -> Response:
        """Have a model in memory no longer; the next question loads it again."""
        asked = await read_body(request, ModelBody)
        return JsonResponse({"model": (await _ask("unload", asked.name)).models[0]})


async def _ask(verb: ModelVerb, model: str = "", seconds: float = 20.0) -> ModelResult:
    request = ModelRequest(verb=verb, model=model)
    return await api().ask("model_keeper", request, ModelResult, seconds=seconds)  # longer than it waits for Ollama
