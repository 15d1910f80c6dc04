"""Rewrites an OpenAI chat request as Ollama's, as Ollama's own `FromChatRequest` does."""

from __future__ import annotations

import json
from typing import Any

from local.models.stand_in.chat_request import field, objects
from local.models.stand_in.refusal import Refusal

Json = dict[str, Any]


def to_ollama(body: Json) -> Json:
    """The body of POST /api/chat that asks the same; `Refusal` 400 for what Ollama refuses."""
    messages = objects(body, "messages")
    names = {call.get("id"): _function(call).get("name") for m in messages for call in objects(m, "tool_calls")}
    effort = field(body, "reasoning_effort", str) or (field(body, "reasoning", dict) or {}).get("effort")
    return {
        "model": body.get("model"),
        "messages": [_message(message, names) for message in messages],
        "tools": body.get("tools"),
        "stream": bool(body.get("stream")),
        "options": _options(body),
        "think": False if effort == "none" else effort,
        "format": _format(field(body, "response_format", dict) or {}),
        "logprobs": body.get("logprobs"),
        "top_logprobs": body.get("top_logprobs"),
    }


def _message(message: Json, names: dict[Any, Any]) -> Json:
    content = message.get("content")
    if content is None and not message.get("tool_calls"):
        raise Refusal(400, "invalid message content type: <nil>")
    rewritten: Json = {"role": message.get("role"), "content": _text(content), "thinking": message.get("reasoning")}
    if message.get("role") == "tool":
        rewritten["tool_name"] = message.get("name") or names.get(message.get("tool_call_id"))
        rewritten["tool_call_id"] = message.get("tool_call_id")
    if calls := objects(message, "tool_calls"):
        rewritten["tool_calls"] = [_call(call) for call in calls]
    return rewritten


def _text(content: Any) -> str:
    if not isinstance(content, list):
        return content or ""
    if not all(isinstance(part, dict) and part.get("type") in ("text", "image_url") for part in content):
        raise Refusal(400, "invalid message format")
    return "\n".join(str(part["text"]) for part in content if part.get("text"))


def _call(call: Json) -> Json:
    function = _function(call)
    try:
        arguments = json.loads(function.get("arguments") or "{}")
    except (TypeError, json.JSONDecodeError):
        raise Refusal(400, "invalid tool call arguments") from None
    return {"id": call.get("id"), "function": {"name": function.get("name"), "arguments": arguments}}


def _function(call: Json) -> Json:
    return field(call, "tool_calls.function", dict) or {}


def _options(body: Json) -> Json:
    names = {"max_tokens": "num_predict", "max_completion_tokens": "num_predict"}
    names |= {name: name for name in ("seed", "stop", "temperature", "top_p", "frequency_penalty", "presence_penalty")}
    return {option: body[name] for name, option in names.items() if body.get(name) is not None}


def _format(wanted: Json) -> Any:
    match wanted.get("type"):
        case "json_object":
            return "json"
        case "json_schema":
            return (field(wanted, "response_format.json_schema", dict) or {}).get("schema")
    return None
