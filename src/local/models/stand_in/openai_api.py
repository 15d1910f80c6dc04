"""The part of OpenAI's HTTP API that Ollama speaks under /v1 (shapes: Ollama's openai/ and middleware/openai.go)."""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable
from datetime import datetime
from typing import Any
from uuid import uuid4

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from local.models.stand_in import embedding
from local.models.stand_in.endpoint import Generation, IncomingRequest, Talk, endpoint
from local.models.stand_in.faults import encoded
from local.models.stand_in.ollama_request import OllamaRefusal, field, objects, parse_chat
from local.models.stand_in.stand_in import StandIn

Json = dict[str, Any]

_ERROR_TYPES = {400: "invalid_request_error", 404: "not_found_error"}


def routes(stand_in: StandIn) -> list[Route]:
    """Every route of the API."""

    async def models(_: Request) -> Response:
        return JSONResponse({"object": "list", "data": [_model(entry) for entry in stand_in.library.listed()]})

    async def model(request: Request) -> Response:
        try:
            return JSONResponse(_model(stand_in.library.find(request.path_params["name"]).listed()))
        except OllamaRefusal as refusal:
            return openai_error(refusal)

    return [
        Route("/v1/models", models),
        Route("/v1/models/{name:path}", model),
        Route("/v1/chat/completions", endpoint(stand_in, complete, openai_error), methods=["POST"]),
        Route("/v1/embeddings", endpoint(stand_in, embed, openai_error), methods=["POST"]),
    ]


def openai_error(refusal: OllamaRefusal) -> Response:
    """OpenAI's error body."""
    return JSONResponse(_error(str(refusal), refusal.status), refusal.status)


def _error(message: str, status: int) -> Json:
    kind = _ERROR_TYPES.get(status, "api_error")
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


def _model(entry: Json) -> Json:
    created = int(datetime.fromisoformat(entry["modified_at"]).timestamp())
    return {"id": entry["name"], "object": "model", "created": created, "owned_by": "library"}


def complete(stand_in: StandIn, asked: IncomingRequest) -> Response:
    """POST /v1/chat/completions: server-sent events, or one object."""
    if not asked.body.get("messages"):
        raise OllamaRefusal(400, "[] is too short - 'messages'")
    request = parse_chat(to_ollama(asked.body))
    talk = Talk.begin(stand_in, asked, request)
    completion_id = f"chatcmpl-{uuid4().hex[:12]}"
    if not request.stream:
        whole = encoded(talk.whole(), lambda part: _completion(completion_id, part), asked.faults)
        return Generation(stand_in, talk.record, whole, "application/json", openai_error)
    with_usage = bool((field(asked.body, "stream_options", dict) or {}).get("include_usage"))
    events = encoded(talk.chunks, _event_maker(completion_id, with_usage), asked.faults)
    return Generation(stand_in, talk.record, events, "text/event-stream", openai_error)


def _head(completion_id: str, kind: str, part: Json) -> Json:
    created = int(datetime.fromisoformat(part["created_at"]).timestamp())
    head = {"id": completion_id, "object": kind, "created": created}
    return head | {"model": part["model"], "system_fingerprint": "fp_ollama"}


def _completion(completion_id: str, part: Json) -> bytes:
    if "error" in part:
        raise OllamaRefusal(500, part["error"])
    message = _message(part)
    reason = "tool_calls" if "tool_calls" in message else part["done_reason"]
    choice = {"index": 0, "message": message, "finish_reason": reason} | _logprobs(part)
    return json.dumps(
        _head(completion_id, "chat.completion", part) | {"choices": [choice], "usage": _usage(part)}
    ).encode()


def _event_maker(completion_id: str, with_usage: bool) -> Callable[[Json], bytes]:
    called = False

    def events(part: Json) -> bytes:
        nonlocal called
        if "error" in part:
            return _event(_error(part["error"], 500))
        head, delta = _head(completion_id, "chat.completion.chunk", part), _message(part)
        called = called or "tool_calls" in delta
        reason = ("tool_calls" if called else part["done_reason"]) if part["done"] else None
        choice = {"index": 0, "delta": delta, "finish_reason": reason} | _logprobs(part)
        sent = _event(head | {"choices": [choice]})
        if part["done"]:
            sent += _event(head | {"choices": [], "usage": _usage(part)}) if with_usage else b""
            sent += b"data: [DONE]\n\n"
        return sent

    return events


def _event(value: Json) -> bytes:
    return b"data: " + json.dumps(value, separators=(",", ":")).encode() + b"\n\n"


def _message(part: Json) -> Json:
    message = part["message"]
    said: Json = {"role": message["role"], "content": message["content"]}
    if message.get("thinking"):
        said["reasoning"] = message["thinking"]
    if message.get("tool_calls"):
        said["tool_calls"] = [_call(call) for call in message["tool_calls"]]
    return said


def _logprobs(part: Json) -> Json:
    return {"logprobs": {"content": part["logprobs"]}} if part.get("logprobs") else {}


def _call(call: Json) -> Json:
    function = call["function"]
    worded = {"name": function["name"], "arguments": json.dumps(function["arguments"])}
    return {"id": call["id"], "index": function["index"], "type": "function", "function": worded}


def _usage(part: Json) -> Json:
    prompt, completion = part["prompt_eval_count"], part["eval_count"]
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def embed(stand_in: StandIn, asked: IncomingRequest) -> Response:
    """POST /v1/embeddings, as numbers or as base64 of 32-bit floats."""
    encoding = str(asked.body.get("encoding_format") or "float").lower()
    if encoding not in ("float", "base64"):
        supported = "Supported values: ['float', 'base64']."
        raise OllamaRefusal(400, f"Invalid value for 'encoding_format' = {encoding}. {supported}")
    if asked.body.get("input") in (None, []):
        raise OllamaRefusal(400, "invalid input")
    answer = embedding.embedded(stand_in, asked.body)
    vectors = (_base64(v) if encoding == "base64" else v for v in answer["embeddings"])
    data = [{"object": "embedding", "embedding": v, "index": index} for index, v in enumerate(vectors)]
    usage = {"prompt_tokens": answer["prompt_eval_count"], "total_tokens": answer["prompt_eval_count"]}
    return JSONResponse({"object": "list", "data": data, "model": answer["model"], "usage": usage})


def _base64(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def to_ollama(body: Json) -> Json:
    """The body of POST /api/chat that asks the same; `OllamaRefusal` 400 for what Ollama refuses."""
    messages = objects(body, "messages")
    names = {call.get("id"): _function(call).get("name") for m in messages for call in objects(m, "tool_calls")}
    effort = field(body, "reasoning_effort", str) or (field(body, "reasoning", dict) or {}).get("effort")
    return {
        "model": body.get("model"),
        "messages": [_ollama_message(message, names) for message in messages],
        "tools": body.get("tools"),
        "stream": bool(body.get("stream")),
        "options": _options(body),
        "think": False if effort == "none" else effort,
        "format": _ollama_format(field(body, "response_format", dict) or {}),
        "logprobs": body.get("logprobs"),
        "top_logprobs": body.get("top_logprobs"),
    }


def _ollama_message(message: Json, names: dict[Any, Any]) -> Json:
    content = message.get("content")
    if content is None and not message.get("tool_calls"):
        raise OllamaRefusal(400, "invalid message content type: <nil>")
    rewritten: Json = {
        "role": message.get("role"),
        "content": _plain_text(content),
        "thinking": message.get("reasoning"),
    }
    if message.get("role") == "tool":
        rewritten["tool_name"] = message.get("name") or names.get(message.get("tool_call_id"))
        rewritten["tool_call_id"] = message.get("tool_call_id")
    if calls := objects(message, "tool_calls"):
        rewritten["tool_calls"] = [_ollama_call(call) for call in calls]
    return rewritten


def _plain_text(content: Any) -> str:
    if not isinstance(content, list):
        return content or ""
    if not all(isinstance(part, dict) and part.get("type") in ("text", "image_url") for part in content):
        raise OllamaRefusal(400, "invalid message format")
    return "\n".join(str(part["text"]) for part in content if part.get("text"))


def _ollama_call(call: Json) -> Json:
    function = _function(call)
    try:
        arguments = json.loads(function.get("arguments") or "{}")
    except (TypeError, json.JSONDecodeError):
        raise OllamaRefusal(400, "invalid tool call arguments") from None
    return {"id": call.get("id"), "function": {"name": function.get("name"), "arguments": arguments}}


def _function(call: Json) -> Json:
    return field(call, "tool_calls.function", dict) or {}


def _options(body: Json) -> Json:
    names = {"max_tokens": "num_predict", "max_completion_tokens": "num_predict"}
    names |= {name: name for name in ("seed", "stop", "temperature", "top_p", "frequency_penalty", "presence_penalty")}
    return {option: body[name] for name, option in names.items() if body.get(name) is not None}


def _ollama_format(wanted: Json) -> Any:
    match wanted.get("type"):
        case "json_object":
            return "json"
        case "json_schema":
            return (field(wanted, "response_format.json_schema", dict) or {}).get("schema")
    return None
