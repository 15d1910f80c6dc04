"""The body of POST /v1/chat/completions, made of messages as our agents write them. No I/O."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from local.models.chat import CannotThink, Degraded, Json
from local.models.openai_dialects import Dialect, Known

# The first characters of each format in base64.
_IMAGE_TYPES = {"iVBOR": "image/png", "/9j/": "image/jpeg", "R0lGOD": "image/gif", "UklGR": "image/webp"}


@dataclass(frozen=True, slots=True)
class _Open:
    """A call that has no result yet."""

    their_id: str
    our_id: str
    tool: str


def to_openai(messages: Sequence[Json], dialect: Dialect) -> list[Json]:
    """The conversation as /v1/chat/completions takes it.

    Strict servers refuse a call without a result, a result without its call, and ids that are long (OpenAI: 40
    characters) or not nine letters and digits (Mistral). So each call gets an id made of its place in the
    conversation, its result the same; a call that never got one is said to have none, and a result whose call is gone
    is told as the user's text.
    """
    return list(_Translation(dialect).run(messages))


def _with_one_beginning(messages: Sequence[Json]) -> Sequence[Json]:
    """With the system messages at the beginning in one: the templates of many models take no second one."""
    count = next((at for at, each in enumerate(messages) if each.get("role") != "system"), len(messages))
    if count < 2:
        return messages
    text = "\n\n".join(str(each.get("content") or "") for each in messages[:count])
    return [{"role": "system", "content": text}, *messages[count:]]


class _Translation:
    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._calls = 0
        self._open: list[_Open] = []

    def run(self, messages: Sequence[Json]) -> Iterator[Json]:
        for message in _with_one_beginning(messages):
            role = message.get("role")
            if role == "tool":
                yield self._result(message)
                continue
            yield from self._unanswered()
            yield self._assistant(message) if role == "assistant" else _plain(message)
        yield from self._unanswered()

    def _assistant(self, message: Json) -> Json:
        translated = {"role": "assistant", "content": message.get("content") or ""}
        if thinking := message.get("thinking"):
            translated |= dict.fromkeys(self._dialect.thinking_keys, thinking)
        if calls := message.get("tool_calls"):
            translated["tool_calls"] = [self._call(call) for call in calls]
        return translated

    def _call(self, call: Json) -> Json:
        self._calls += 1
        function, our_id = call["function"], f"call{self._calls:05d}"
        self._open.append(_Open(str(call.get("id") or ""), our_id, function["name"]))
        arguments = json.dumps(function.get("arguments") or {})
        return {"id": our_id, "type": "function", "function": {"name": function["name"], "arguments": arguments}}

    def _result(self, message: Json) -> Json:
        tool, content = str(message.get("tool_name") or "a tool"), message.get("content") or ""
        call = self._taken(str(message.get("tool_call_id") or ""), tool)
        if call is None:
            return {"role": "user", "content": f"Result of {tool}: {content}"}
        return self._tool_message(call, content)

    def _taken(self, their_id: str, tool: str) -> _Open | None:
        """The call that a result belongs to: by its id, else by its tool, else the first of those still open."""
        by_id = [call for call in self._open if their_id and call.their_id == their_id]
        by_tool = [call for call in self._open if call.tool == tool]
        call = next(iter(by_id or by_tool or self._open), None)
        if call is not None:
            self._open.remove(call)
        return call

    def _unanswered(self) -> Iterator[Json]:
        for call in self._open:
            yield self._tool_message(call, "(no result)")
        self._open = []

    def _tool_message(self, call: _Open, content: str) -> Json:
        name = {"name": call.tool} if self._dialect.names_tools else {}
        return {"role": "tool", "tool_call_id": call.our_id, **name, "content": content}


def _plain(message: Json) -> Json:
    content = message.get("content") or ""
    images = message.get("images") or ()
    if not images:
        return {"role": message.get("role"), "content": content}
    parts: list[Json] = [{"type": "text", "text": content}] if content else []
    parts += [{"type": "image_url", "image_url": {"url": _image_url(image)}} for image in images]
    return {"role": message.get("role"), "content": parts}


def _image_url(image: str) -> str:
    if image.startswith(("data:", "https://", "http://")):
        return image
    kind = next((kind for start, kind in _IMAGE_TYPES.items() if image.startswith(start)), "image/png")
    return f"data:{kind};base64,{image}"


# The size of the context is set where the server is started; no request can change it.
_NOT_OURS = frozenset({"num_ctx"})


def chat_request(
    known: Known, messages: Sequence[Json], *, tools: Sequence[Json], think: bool, options: Mapping[str, Any] | None
) -> tuple[Json, list[Degraded]]:
    """The body for what this model can do and this server takes, and what had to be left out.

    A server that does not say what the model can do is asked for everything. `options` have Ollama's names.
    """
    model, capabilities, dialect = known.info.name, known.info.capabilities, known.dialect
    body: Json = {
        "model": model,
        "messages": to_openai(messages, dialect),
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    notes: list[Degraded] = []
    if not capabilities or "thinking" in capabilities:
        body |= dialect.thinks if think else dialect.thinks_not
    elif think:
        notes.append(CannotThink.of(model))
    if tools and (not capabilities or "tools" in capabilities):
        body["tools"] = list(tools)
    elif tools:
        notes.append(Degraded(f"{model} cannot call tools; it answers without"))
    given = {name: value for name, value in (options or {}).items() if name not in _NOT_OURS and value is not None}
    if unknown := sorted(given.keys() - dialect.options.keys()):
        notes.append(Degraded(f"the server of {model} has no option {', '.join(unknown)}; it answers without"))
    body |= {
        dialect.options[option]: value for option, value in given.items() if _wanted(option, value, dialect.options)
    }
    return body, notes


def _wanted(option: str, value: Any, known: Mapping[str, str]) -> bool:
    # A negative num_predict means no limit, which here is no field.
    return option in known and not (option == "num_predict" and value < 0)


def response_format(schema: Mapping[str, Any] | None) -> Json:
    """OpenAI's field for a reply that follows a JSON Schema; none without a schema.

    `strict` is for schemas that it allows: every object names all its fields as required and allows no others.
    """
    if schema is None:
        return {}
    described = {"name": "reply", "strict": _is_strict(schema), "schema": dict(schema)}
    return {"response_format": {"type": "json_schema", "json_schema": described}}


def _is_strict(schema: Any) -> bool:
    if isinstance(schema, list):
        return all(map(_is_strict, schema))
    if not isinstance(schema, Mapping):
        return True
    if schema.get("type") == "object":
        required, properties = schema.get("required", ()), schema.get("properties", {})
        if schema.get("additionalProperties") is not False or set(required) != set(properties):
            return False
    return all(map(_is_strict, schema.values()))
