"""A chat request in Ollama's form, parsed once and trusted afterwards."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

from local.errors import LocalError


class OllamaRefusal(LocalError):
    """Becomes HTTP `status` with Ollama's error body; the message is Ollama's own wording where it has one."""

    kind = "refused"

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def model_missing(name: str) -> OllamaRefusal:
    """What Ollama says of a model it does not have."""
    return OllamaRefusal(404, f"model '{name}' not found")


Json = dict[str, Any]

_THINK_LEVELS = ("high", "medium", "low")
_MOST_TOP_LOGPROBS = 20


@dataclass(frozen=True, slots=True)
class OllamaRequest:
    """The fields of POST /api/chat; `think` None means that it was left out."""

    model: str
    messages: tuple[Json, ...] = ()
    tools: tuple[Json, ...] = ()
    options: Json | None = None
    think: bool | str | None = None
    stream: bool = True
    truncate: bool = True
    format: Json | str | None = None
    logprobs: bool = False
    top_logprobs: int = 0
    keep_alive: Any = None

    def option(self, name: str, default: int) -> int:
        """A whole number among the options; a `OllamaRefusal` 400 if it is something else."""
        return whole_number(self.options or {}, name, default)


def whole_number(options: Json, name: str, default: int) -> int:
    """A field as a whole number, `default` if it is missing; a `OllamaRefusal` 400 if it is something else."""
    value = options.get(name)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise OllamaRefusal(400, f'option "{name}" must be of type integer')
    return int(value)


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def parse_json(body: bytes) -> Json:
    """The JSON object in a request body; `OllamaRefusal` 400 in the words of Go's decoder."""
    text = body.decode("utf-8", "replace")
    if not text.strip():
        raise OllamaRefusal(400, "missing request body")
    try:
        value = json.loads(text, parse_constant=_no_constant)
        if "\\ud" in text.lower():
            # As Go does: half a surrogate pair, which no answer could carry, becomes the replacement character.
            paired = json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass")
            value = json.loads(paired.decode("utf-16", "replace"))
    except json.JSONDecodeError as error:
        at_end = error.pos >= len(text.rstrip())
        found = "unexpected EOF" if at_end else f"invalid character {text[error.pos]!r} looking for beginning of value"
        raise OllamaRefusal(400, found) from None
    except RecursionError:
        raise OllamaRefusal(400, "exceeded max depth") from None
    except ValueError:
        raise OllamaRefusal(400, "invalid number literal") from None
    if not isinstance(value, dict):
        raise OllamaRefusal(400, f"json: cannot unmarshal {_kind(value)} into Go value of type api.ChatRequest")
    return value


def parse_chat(body: Json) -> OllamaRequest:
    """Check the shape of a chat request; `OllamaRefusal` 400 names the field."""
    for message in objects(body, "messages"):
        for name, kind in (("role", str), ("content", str), ("thinking", str), ("tool_calls", list)):
            field(message, f"messages.{name}", kind)
        message["role"] = str(message.get("role", "")).lower()
        message["content"] = message.get("content") or ""
        _check_calls(message)
    for tool in objects(body, "tools"):
        function = field(tool, "tools.function", dict) or {}
        if not isinstance(function.get("name"), str):
            raise _mismatch(function.get("name"), "tools.function.name", "string")
        parameters = field(function, "tools.function.parameters", dict) or {}
        field(parameters, "tools.function.parameters.properties", dict)
    return OllamaRequest(
        model=field(body, "model", str) or "",
        messages=tuple(body.get("messages") or ()),
        tools=tuple(body.get("tools") or ()),
        options=field(body, "options", dict),
        think=_think(body.get("think")),
        stream=field(body, "stream", bool) is not False,
        truncate=field(body, "truncate", bool) is not False,
        format=_format(body.get("format")),
        logprobs=field(body, "logprobs", bool) is True,
        top_logprobs=_top_logprobs(body),
        keep_alive=body.get("keep_alive"),
    )


def _check_calls(message: Json) -> None:
    for call in message.get("tool_calls") or ():
        if not isinstance(call, dict):
            raise _mismatch(call, "messages.tool_calls", "api.ToolCall")
        function = field(call, "messages.tool_calls.function", dict) or {}
        field(function, "messages.tool_calls.function.name", str)
        field(function, "messages.tool_calls.function.arguments", dict)


def objects(body: Json, name: str) -> list[Json]:
    """The list of objects in that field, empty if it is missing; a `OllamaRefusal` 400 if it is something else."""
    values = field(body, name, list) or []
    for value in values:
        if not isinstance(value, dict):
            raise _mismatch(value, name, "object")
    return list(values)


def field(body: Json, path: str, kind: type) -> Any:
    """The value that `path` ends in, None if it is missing; a `OllamaRefusal` 400 if it is not of that type."""
    value = body.get(path.rpartition(".")[2])
    if value is not None and not isinstance(value, kind):
        raise _mismatch(value, path, kind.__name__)
    return value


def _top_logprobs(body: Json) -> int:
    number = field(body, "top_logprobs", int) or 0
    if not 0 <= number <= _MOST_TOP_LOGPROBS:
        raise OllamaRefusal(400, f"top_logprobs must be between 0 and {_MOST_TOP_LOGPROBS}")
    return int(number)


def _think(value: Any) -> bool | str | None:
    if value is None or isinstance(value, bool) or value in _THINK_LEVELS:
        return value  # type: ignore[no-any-return]  # narrowed by the test above
    raise OllamaRefusal(
        400, f'invalid think value: {json.dumps(value)} (must be "high", "medium", "low", true, or false)'
    )


def _format(value: Any) -> Json | str | None:
    if value in (None, ""):
        return None
    if value == "json" or isinstance(value, dict):
        return value  # type: ignore[no-any-return]  # narrowed by the test above
    raise OllamaRefusal(400, f'invalid format: {json.dumps(value)}; expected "json" or a valid JSON Schema object')


def _mismatch(value: Any, path: str, wanted: str) -> OllamaRefusal:
    return OllamaRefusal(
        400, f"json: cannot unmarshal {_kind(value)} into Go struct field ChatRequest.{path} of type {wanted}"
    )


def _kind(value: Any) -> str:
    names = {str: "string", bool: "bool", int: "number", float: "number", list: "array", dict: "object"}
    return names.get(type(value), "null")
