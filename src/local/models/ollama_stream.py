"""The body of a streamed /api/chat, bytes in and deltas out. No I/O."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from local.models.answer_parts import LineBuffer, items, json_object, read_call, text, token_scores, unclear
from local.models.chat import Delta, Done, Json, ThinkingDelta, ToolCall, Usage
from local.models.error_tables import ollama_errors
from local.models.think_tags import ThinkTagSplitter

_NANOSECONDS = 1e9
_DURATIONS = ("total", "load", "prompt_eval", "eval")


class OllamaStream:
    """One assistant message. Thinking, content and calls count in every chunk, the one that says done included."""

    def __init__(self, model: str, server: str) -> None:
        self.started = False
        self.done = False
        self._model, self._errors = model, ollama_errors(server)
        self._lines = LineBuffer(self._errors)
        self._tags = ThinkTagSplitter()

    def feed(self, data: bytes) -> Iterator[Delta]:
        """The deltas completed by `data`; what precedes a failure is yielded before it is raised.

        Raises `ModelError`: bad_stream for what is not Ollama's format, bad_call for a call that cannot be understood,
        and the kind that fits for an `{"error": …}` line.
        """
        for line in self._lines.feed(data):
            if not line.strip():
                continue
            chunk = json_object(line, self._errors)
            self.started = True
            yield from self._deltas(chunk)
            if self.done:
                return

    def end(self) -> Iterator[Delta]:
        """The stream has ended. Raises `ModelError(kind="stream_cut")` unless the model had finished."""
        yield from self.feed(b"\n")
        if not self.done:
            raise self._errors.cut(self._model)

    def _deltas(self, chunk: Json) -> list[Delta]:
        if "error" in chunk:
            raise self._errors.explain(chunk["error"], status=None, model=self._model)
        message = chunk.get("message") or {}
        if not isinstance(message, dict):
            raise self._errors.bad_stream(f"a message that is not an object: {message!r:.80}")
        deltas: list[Delta] = []
        if thinking := text(message, "thinking", self._errors):
            deltas.append(ThinkingDelta(thinking))
        if content := text(message, "content", self._errors):
            deltas += self._tags.feed(content)
        for call in items(message, "tool_calls", self._errors):
            deltas.append(_tool_call(call, self._model))
        deltas += token_scores(chunk, "logprobs")
        if chunk.get("done") is True:
            self.done = True
            deltas += self._tags.close()
            deltas.append(_done(chunk))
        return deltas


def _tool_call(call: Any, model: str) -> ToolCall:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        raise unclear(f"{model} made a tool call that names no function: {call!r:.200}")
    return read_call(function.get("name"), function.get("arguments"), call.get("id"), model)


def _done(chunk: Json) -> Done:
    durations = {name: _number(chunk, f"{name}_duration") / _NANOSECONDS for name in _DURATIONS}
    usage = Usage(_number(chunk, "prompt_eval_count"), _number(chunk, "eval_count"), durations)
    return Done(usage, reason=str(chunk.get("done_reason") or "stop"), model=str(chunk.get("model") or ""))


def _number(chunk: Json, key: str) -> int:
    # Ollama leaves out what is zero.
    value = chunk.get(key)
    return value if isinstance(value, int) else 0
