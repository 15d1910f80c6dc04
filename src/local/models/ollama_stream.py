"""The body of a streamed /api/chat, bytes in and deltas out. No I/O."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic_core import from_json

from local.errors import ModelError
from local.models.chat import Delta, Done, Json, ThinkingDelta, ToolCall, Usage
from local.models.ollama_errors import bad_stream, explain
from local.models.think_tags import ThinkTagSplitter

MAX_LINE_BYTES = 4 * 1024 * 1024

_NANOSECONDS = 1e9
_DURATIONS = ("total", "load", "prompt_eval", "eval")


class LineSplitter:
    """Bytes in pieces of any size to the JSON objects of an NDJSON stream."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Json]:
        """The objects completed by `data`. Raises `ModelError(kind="bad_stream")` for anything but an object."""
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > MAX_LINE_BYTES:
            raise bad_stream(self._server, f"a line of more than {MAX_LINE_BYTES} bytes")
        for line in lines:
            if line.strip():
                yield self._parse(line)

    def _parse(self, line: bytes) -> Json:
        try:
            chunk = from_json(line)
        except ValueError as error:
            raise bad_stream(self._server, f"a line that is not JSON ({error}): {line[:80]!r}") from error
        if not isinstance(chunk, dict):
            raise bad_stream(self._server, f"a line that is not a JSON object: {line[:80]!r}")
        return chunk


class ChatStreamDecoder:
    """One assistant message. Thinking, content and calls count in every chunk, the one that says done included."""

    def __init__(self, model: str, server: str) -> None:
        self.started = False
        self.done = False
        self._model, self._server = model, server
        self._lines = LineSplitter(server)
        self._tags = ThinkTagSplitter()

    def feed(self, data: bytes) -> Iterator[Delta]:
        """The deltas completed by `data`; what precedes a failure is yielded before it is raised.

        Raises `ModelError`: bad_stream for what is not Ollama's format, bad_call for a call that cannot be understood,
        and the kind that fits for an `{"error": …}` line.
        """
        for chunk in self._lines.feed(data):
            self.started = True
            yield from self._deltas(chunk)
            if self.done:
                return

    def end(self) -> Iterator[Delta]:
        """The stream has ended. Raises `ModelError(kind="stream_cut")` unless the model had finished."""
        yield from self.feed(b"\n")
        if not self.done:
            message = f"the Ollama server at {self._server} stopped in the middle of an answer of {self._model}"
            raise ModelError(message, kind="stream_cut")

    def _deltas(self, chunk: Json) -> list[Delta]:
        if "error" in chunk:
            raise explain(chunk["error"], status=None, model=self._model, server=self._server)
        message = chunk.get("message") or {}
        if not isinstance(message, dict):
            raise bad_stream(self._server, f"a message that is not an object: {message!r:.80}")
        deltas: list[Delta] = []
        if thinking := self._text(message, "thinking"):
            deltas.append(ThinkingDelta(thinking))
        if content := self._text(message, "content"):
            deltas += self._tags.feed(content)
        for call in message.get("tool_calls") or ():
            deltas.append(_tool_call(call, self._model))
        if chunk.get("done") is True:
            self.done = True
            deltas += self._tags.close()
            deltas.append(_done(chunk))
        return deltas

    def _text(self, message: Json, key: str) -> str:
        text = message.get(key)
        if text is not None and not isinstance(text, str):
            raise bad_stream(self._server, f"{key} that is not text: {text!r:.80}")
        return text or ""


def _tool_call(call: Any, model: str) -> ToolCall:
    """Missing arguments are none and a JSON string is read; a call that stays unclear is never guessed at, since a
    tool called with other arguments than the model meant may do harm.
    """
    function = call.get("function") if isinstance(call, dict) else None
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(function, dict) or not isinstance(name, str) or not name:
        raise ModelError(f"{model} made a tool call without a name: {call!r:.200}; ask again", kind="bad_call")
    arguments = function.get("arguments") or {}
    if isinstance(arguments, str):
        try:
            arguments = from_json(arguments)
        except ValueError:
            arguments = None
    if not isinstance(arguments, dict):
        found = f"{function.get('arguments')!r:.200}"
        raise ModelError(
            f"{model} called {name} with arguments that are no object: {found}; ask again", kind="bad_call"
        )
    return ToolCall(name=name, arguments=arguments, id=str(call.get("id") or ""))


def _done(chunk: Json) -> Done:
    durations = {name: _number(chunk, f"{name}_duration") / _NANOSECONDS for name in _DURATIONS}
    usage = Usage(_number(chunk, "prompt_eval_count"), _number(chunk, "eval_count"), durations)
    return Done(usage, reason=str(chunk.get("done_reason") or "stop"), model=str(chunk.get("model") or ""))


def _number(chunk: Json, key: str) -> int:
    # Ollama leaves out what is zero.
    value = chunk.get(key)
    return value if isinstance(value, int) else 0
