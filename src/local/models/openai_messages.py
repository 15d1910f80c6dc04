"""Messages as our agents write them, which is Ollama's way, to OpenAI's. No I/O."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from local.models.chat import Json
from local.models.openai_dialects import Dialect

# The first characters of each format in base64.
_IMAGE_TYPES = {"iVBOR": "image/png", "/9j/": "image/jpeg", "R0lGOD": "image/gif", "UklGR": "image/webp"}


@dataclass(frozen=True, slots=True)
class _Open:
    """A call that has no result yet."""

    their_id: str
    our_id: str
    tool: str


def to_openai(messages: Sequence[Json], dialect: Dialect) -> list[Json]:
    """The same conversation for /v1/chat/completions.

    Strict servers refuse a call without a result, a result without its call, and ids that are long (OpenAI: 40
    characters) or not nine letters and digits (Mistral). So each call gets an id made of its place in the
    conversation, its result the same; a call that never got one is said to have none, and a result whose call is gone
    is told as the user's text.
    """
    return list(_Translation(dialect).run(messages))


class _Translation:
    def __init__(self, dialect: Dialect) -> None:
        self._dialect = dialect
        self._calls = 0
        self._open: list[_Open] = []

    def run(self, messages: Sequence[Json]) -> Iterator[Json]:
        for message in messages:
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
