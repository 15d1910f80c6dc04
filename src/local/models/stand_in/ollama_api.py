"""Ollama's HTTP API under /api (shapes: Ollama's docs/api.md, server/routes.go and api/types.go)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from local.models.stand_in import embedding
from local.models.stand_in.endpoint import Generation, IncomingRequest, Talk, endpoint, json_line, ollama_error
from local.models.stand_in.faults import encoded
from local.models.stand_in.ollama_request import OllamaRefusal, OllamaRequest, parse_chat
from local.models.stand_in.stand_in import StandIn, chunk, now

Json = dict[str, Any]

VERSION = "0.32.0"
NDJSON = "application/x-ndjson"
JSON = "application/json; charset=utf-8"


def routes(stand_in: StandIn) -> list[Route]:
    """Every route of the API."""

    async def tags(_: Request) -> Response:
        return JSONResponse({"models": stand_in.library.listed()})

    async def running(_: Request) -> Response:
        return JSONResponse({"models": stand_in.library.running(now())})

    async def version(_: Request) -> Response:
        return JSONResponse({"version": VERSION})

    async def alive(_: Request) -> Response:
        return PlainTextResponse("Ollama is running")

    handlers = {
        "/api/chat": chat,
        "/api/generate": generate,
        "/api/embed": embedding.embed,
        "/api/embeddings": embedding.embeddings,
        "/api/show": show,
        "/api/pull": pull,
    }
    return [
        Route("/", alive),
        Route("/api/tags", tags),
        Route("/api/ps", running),
        Route("/api/version", version),
        Route("/api/delete", endpoint(stand_in, delete), methods=["DELETE"]),
        *(Route(path, endpoint(stand_in, handler), methods=["POST"]) for path, handler in handlers.items()),
    ]


def chat(stand_in: StandIn, asked: IncomingRequest) -> Response:
    """POST /api/chat: NDJSON chunks, or one object with `stream` false."""
    request = parse_chat(asked.body)
    if not request.messages:
        stand_in.check(request)
        return _loaded(request, {"message": {"role": "assistant", "content": ""}})
    return _answer(stand_in, asked, request, lambda part: part)


def generate(stand_in: StandIn, asked: IncomingRequest) -> Response:
    """POST /api/generate: a chat of one question, worded as `response`."""
    body = asked.body
    prompt = body.get("prompt") or ""
    system = [{"role": "system", "content": body["system"]}] if body.get("system") else []
    messages = [*system, {"role": "user", "content": prompt}]
    request = parse_chat({key: value for key, value in body.items() if key != "tools"} | {"messages": messages})
    if not prompt:
        stand_in.check(request)
        return _loaded(request, {"response": ""})
    return _answer(stand_in, asked, request, _as_response)


def _answer(
    stand_in: StandIn, asked: IncomingRequest, request: OllamaRequest, shape: Callable[[Json], Json]
) -> Response:
    talk = Talk.begin(stand_in, asked, request)
    if request.stream:
        parts = encoded(talk.chunks, lambda part: json_line(shape(part)), asked.faults)
        return Generation(stand_in, talk.record, parts, NDJSON, ollama_error)
    whole = encoded(talk.whole(), lambda part: _json_or_error(shape(part)), asked.faults)
    return Generation(stand_in, talk.record, whole, JSON, ollama_error)


def _loaded(request: OllamaRequest, said: Json) -> Response:
    reason = "unload" if request.keep_alive in (0, "0", "0s", "0m") else "load"
    answer = chunk(request.model, {}) | {"done": True, "done_reason": reason}
    del answer["message"]
    return JSONResponse(answer | said)


def _json_or_error(part: Json) -> bytes:
    if "error" in part:
        raise OllamaRefusal(500, part["error"])
    return json_line(part)


def _as_response(part: Json) -> Json:
    if "message" not in part:
        return part
    message = part["message"]
    thinking = {"thinking": message["thinking"]} if message.get("thinking") else {}
    rest = {key: value for key, value in part.items() if key != "message"}
    return rest | {"response": message["content"]} | thinking | ({"context": []} if part["done"] else {})


def show(stand_in: StandIn, asked: IncomingRequest) -> Response:
    """POST /api/show: what a model can do."""
    return JSONResponse(stand_in.library.find(_name(asked)).shown())


def delete(stand_in: StandIn, asked: IncomingRequest) -> Response:
    """DELETE /api/delete: forget a model."""
    stand_in.library.delete(_name(asked))
    return Response()


def pull(stand_in: StandIn, asked: IncomingRequest) -> Response:
    """POST /api/pull: progress lines; a model that is in no catalogue is an error."""
    steps = list(_pulling(stand_in, _name(asked)))
    if asked.body.get("stream") is False:
        failure = steps[-1].get("error")
        return ollama_error(OllamaRefusal(500, failure)) if failure else JSONResponse(steps[-1])
    return Response(b"".join(map(json_line, steps)), media_type=NDJSON)


def _pulling(stand_in: StandIn, name: str) -> Iterable[Json]:
    yield {"status": "pulling manifest"}
    model = stand_in.library.pull(name)
    if model is None:
        yield {"error": "pull model manifest: file does not exist"}
        return
    layer = {"status": f"pulling {model.digest[:12]}", "digest": f"sha256:{model.digest}", "total": model.size}
    yield from (layer | {"completed": model.size * quarter // 4} for quarter in range(1, 5))
    yield from ({"status": status} for status in ("verifying sha256 digest", "writing manifest", "success"))


def _name(asked: IncomingRequest) -> str:
    name = asked.body.get("model") or asked.body.get("name")
    if not isinstance(name, str):
        raise OllamaRefusal(400, "model is required")
    return name
