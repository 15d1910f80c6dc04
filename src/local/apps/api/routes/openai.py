"""The part of OpenAI's API that its clients need to use LoCAL2 as a model."""

from __future__ import annotations

import asyncio
import time

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from local.apps.api.access import Access, open_to
from local.apps.api.context import api
from local.apps.api.errors import RequestRefused
from local.apps.api.event_stream import EventStream
from local.apps.api.json_body import JsonResponse, read_body, takes
from local.apps.api.openai_chat import (
    DEFAULT_NAMES,
    OURS,
    OWN_NAME,
    REMEMBER,
    ChatRequest,
    as_query,
    profile_in,
)
from local.apps.api.openai_completion import Completion, answer_to, completion_chunks
from local.apps.api.openai_embedding import BATCH, EmbeddingRequest, embeddings
from local.apps.api.principals import Caller, Principal
from local.apps.api.query_models import chat_models, model_of
from local.apps.api.query_profiles import profiles_for, with_profile
from local.errors import LocalError
from local.instructions.built_in_profiles import ALIASES
from local.instructions.profile_registry import Profiles
from local.protocol.answer_options import DEFAULT_MODEL, with_mode, with_model
from local.protocol.envelope import new_id
from local.protocol.safety import NOBODY_THERE

Json = dict[str, object]


def add_routes(routes: APIRouter) -> None:
    """The routes under /v1."""
    openai = _OpenAi()
    chat, texts = takes(ChatRequest), takes(EmbeddingRequest)
    routes.add_api_route("/v1/chat/completions", openai.complete, methods=["POST"], openapi_extra=chat)
    routes.add_api_route("/v1/embeddings", openai.embed, methods=["POST"], openapi_extra=texts)
    routes.add_api_route("/v1/models", openai.models, methods=["GET"])
    routes.add_api_route("/v1/models/{model_id:path}", openai.model, methods=["GET"])


class _OpenAi:
    @open_to(Access.USERS)
    async def complete(self, request: Request, caller: Caller) -> Response:
        """Answer a conversation. The messages sent are the history; no session is kept."""
        asked = await read_body(request, ChatRequest)
        named = profile_in(asked.model)
        found = Profiles({}) if named is None else await profiles_for(caller)
        chat = await asyncio.to_thread(as_query, asked, {*found.by_name, *ALIASES})
        options = chat.options if named is None else with_profile(chat.options, found.find(named))
        model = None
        if named is None and asked.model not in DEFAULT_NAMES:
            model = await model_of(asked.model, api().openai_aliases)
        await api().require_budget(caller.user_id)
        query_id = new_id()
        query = api().session.ask(
            chat.text,
            attachments=[await _kept(data, caller) for data in chat.pictures],
            query_id=query_id,
            user_id=caller.user_id,
            history=chat.history,
            continued=chat.continued,
            options=with_mode(with_model(options, model), NOBODY_THERE),
        )
        profile = options.profile if options is not None else None
        answering = model or (profile.model if profile else None) or DEFAULT_MODEL
        if answering == DEFAULT_MODEL:
            answering = api().participants.model or OWN_NAME
        completion = Completion(query_id, asked, int(time.time()), answering)
        if not asked.stream:
            return JsonResponse(completion.whole(await answer_to(query)))
        await query.accepted()
        return EventStream(completion_chunks(query, completion, api().keep_alive_seconds))

    @open_to(Access.USERS)
    async def embed(self, request: Request, caller: Caller) -> Response:
        """Vectors of texts, made by the memory's embedding model, in the order of the texts."""
        asked = await read_body(request, EmbeddingRequest)
        texts, model = asked.texts(), ""
        vectors: list[tuple[float, ...]] = []
        for start in range(0, len(texts), BATCH):
            batch = tuple(texts[start : start + BATCH])
            found = await api().memories.ask("embed", caller.name, texts=batch)
            vectors += found.vectors
            model = found.embedded_by
        return JsonResponse(embeddings(asked, model, vectors))

    @open_to(Access.USERS)
    async def models(self, caller: Caller) -> Response:
        """The model that answers by default, the others that can be chosen, `local2` for the default, its name for
        conversations that are remembered, and one for each profile."""
        return JsonResponse({"object": "list", "data": [_model(name) for name in await self._names(caller)]})

    @open_to(Access.USERS)
    async def model(self, model_id: str, caller: Caller) -> Response:
        """One of them."""
        if model_id not in await self._names(caller):
            raise RequestRefused("not_found", f"there is no model {model_id[:100]}; GET /v1/models lists them", "model")
        return JsonResponse(_model(model_id))

    async def _names(self, caller: Principal) -> list[str]:
        model = api().participants.model
        if not model:
            return []
        try:
            others = [each.id for each in await chat_models()]
        except LocalError:  # then there is the one that answers
            others = []
        profiles = (f"{OURS}{name}" for name in (await profiles_for(caller)).by_name)
        return list(dict.fromkeys([model, *others, OWN_NAME, REMEMBER, *profiles]))


def _model(name: str) -> Json:
    return {"id": name, "object": "model", "created": 0, "owned_by": "local2"}


async def _kept(data: bytes, caller: Principal) -> str:
    """A picture as an attachment. Raises `RequestRefused` for what is none."""
    kept = await api().attachments.add("picture", data, caller.name)
    if not kept.is_picture:
        raise RequestRefused("invalid", f"messages: {kept.media_type} is no picture; send text as text", "messages")
    return kept.id
