"""The part of OpenAI's API that its clients need to use LoCAL2 as a model."""

from __future__ import annotations

import time

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from local.apps.api.access import Access, open_to
from local.apps.api.context import ApiContext
from local.apps.api.errors import RequestRefused
from local.apps.api.event_stream import EventStream
from local.apps.api.json_body import JsonResponse, read_body, takes
from local.apps.api.openai_chat import ChatRequest, Completion, answer_to, as_query, completion_chunks, pictures
from local.apps.api.principals import Caller, Principal
from local.protocol.envelope import new_id


def add_routes(routes: APIRouter, context: ApiContext) -> None:
    """The routes under /v1."""

    @routes.post("/v1/chat/completions", openapi_extra=takes(ChatRequest))
    @open_to(Access.USERS)
    async def complete(request: Request, caller: Caller) -> Response:
        """Answer a conversation. The messages sent are the history; no session is kept."""
        asked = await read_body(request, ChatRequest)
        text, history = as_query(asked)
        query_id = new_id()
        attachments = [await _kept(context, data, caller) for data in pictures(asked)]
        query = context.session.ask(
            text, attachments=attachments, query_id=query_id, user_id=caller.user_id, history=history
        )
        completion = Completion(query_id, asked.model, int(time.time()))
        if not asked.stream:
            return JsonResponse(completion.whole(await answer_to(query)))
        await query.accepted()
        chunks = completion_chunks(
            query,
            completion,
            include_usage=asked.includes_usage,
            keep_alive_seconds=context.keep_alive_seconds,
        )
        return EventStream(chunks)

    @routes.get("/v1/models")
    @open_to(Access.USERS)
    async def models() -> Response:
        """The model that answers; another name in a request changes nothing."""
        names = [context.participants.model] if context.participants.model else []
        data = [{"id": name, "object": "model", "created": 0, "owned_by": "local2"} for name in names]
        return JsonResponse({"object": "list", "data": data})


async def _kept(context: ApiContext, data: bytes, caller: Principal) -> str:
    """A picture as an attachment. Raises `RequestRefused` for what is none."""
    kept = await context.attachments.add("picture", data, caller.name)
    if not kept.is_picture:
        raise RequestRefused("invalid", f"messages: {kept.media_type} is no picture; send text as text", "messages")
    return kept.id
