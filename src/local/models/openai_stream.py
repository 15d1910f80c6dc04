"""The body of a streamed /v1/chat/completions, bytes in and deltas out. No I/O."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json

from local.models.answer_stream import (
    AnswerStream,
    json_object,
    read_call,
    token_scores,
    unclear,
)
from local.models.chat import Delta, Done, Json, ProgressDelta, ThinkingDelta, ToolCall, Usage
from local.models.model_errors import ServerErrors, error_object

_END = b"[DONE]"
_FIELDS_WITHOUT_MEANING = (b"event", b"id", b"retry")
_FILTERED = frozenset({"content_filter", "safety", "prohibited_content"})
_MILLISECONDS = 1e3


class OpenAIStream(AnswerStream):
    """One assistant message, as server-sent events or, from a server that does not stream, as one JSON body."""

    def __init__(self, model: str, errors: ServerErrors, content_type: str) -> None:
        super().__init__(model, errors)
        self._whole = _is_whole(content_type, errors)
        self._body: list[bytes] = []
        self._calls = CallAssembler(model)
        self._usage: Json = {}
        self._timings: Json = {}
        self._reason = ""
        self._answers_as = ""

    def feed(self, data: bytes) -> Iterator[Delta]:
        """See `AnswerStream.feed`."""
        for line in self._lines.feed(data):
            if self._whole:
                self._body.append(line)
            elif payload := self._payload(line.strip()):
                yield from self._finish() if payload == _END else self._deltas(json_object(payload, self._errors))
            if self.done:
                return

    def end(self) -> Iterator[Delta]:
        """See `AnswerStream.end`."""
        if not self.finished:
            yield from self.feed(b"\n")
        if self._whole:
            yield from self._deltas(_first(b"\n".join(self._body), self._errors))
        if not self.finished:
            raise self._errors.cut(self._model)
        if not self.done:
            yield from self._finish()

    def _payload(self, line: bytes) -> bytes:
        """What an event says, empty for a line that says nothing. Each line is an event: JSON needs no second one."""
        name, _, value = line.partition(b":")
        if name == b"data":
            return value.strip()
        if name == b"error":
            # llama-server before September 2025.
            return b'{"error":%s}' % value
        if line.startswith(b"{"):
            # An error passed on without its framing.
            return line
        if name and name not in _FIELDS_WITHOUT_MEANING:
            raise self._errors.bad_stream(f"a line that is no server-sent event: {line[:80]!r}")
        return b""

    def _deltas(self, chunk: Json) -> Iterator[Delta]:
        self._check(chunk)
        self._answers_as = str(chunk.get("model") or self._answers_as)
        self._usage = _dict(chunk, "usage") or self._usage
        self._timings = _dict(chunk, "timings") or self._timings
        read = _dict(chunk, "prompt_progress")
        if _number(read, "total") and "processed" in read:
            self.heard = True
            yield ProgressDelta(_number(read, "processed"), _number(read, "total"), _number(read, "cache"))
        for choice in self._items(chunk, "choices")[:1]:
            self._check(self._object(choice, "a choice"))
            yield from self._message(choice.get("delta") or choice.get("message") or {})
            yield from token_scores(choice.get("logprobs"), "content")
            if reason := choice.get("finish_reason"):
                self._stop(str(reason))

    def _message(self, message: Any) -> Iterator[Delta]:
        message = self._object(message, "a message")
        # Servers that have renamed the field send both.
        if thinking := self._text(message, "reasoning_content") or self._text(message, "reasoning"):
            self.heard = True
            yield ThinkingDelta(thinking)
        if content := self._text(message, "content") or self._text(message, "refusal"):
            self.heard = True
            yield from self._tags.feed(content)
        for fragment in self._items(message, "tool_calls"):
            self.heard = True
            self._calls.add(fragment)

    def _stop(self, reason: str) -> None:
        self.heard = True
        self.finished, self._reason = True, reason
        if reason.lower() in _FILTERED:
            raise self._errors.explain(f"content_filter: {reason}", status=None, model=self._model)
        if "malformed_function_call" in reason.lower():
            raise unclear(f"{self._model} made a tool call that its server could not read")
        if reason == "error":
            raise self._errors.explain("the model stopped with an error", status=None, model=self._model)

    def _finish(self) -> Iterator[Delta]:
        self.finished = self.done = True
        yield from self._tags.close()
        yield from self._calls.calls(self._reason)
        usage = Usage(
            _number(self._usage, "prompt_tokens"), _number(self._usage, "completion_tokens"), self._durations()
        )
        yield Done(usage, reason=self._reason or "stop", model=self._answers_as)

    def _durations(self) -> dict[str, float]:
        """Seconds by Ollama's names; only llama-server tells them."""
        names = {"prompt_eval": "prompt_ms", "eval": "predicted_ms"}
        told = {ours: self._timings[theirs] for ours, theirs in names.items() if theirs in self._timings}
        return {name: value / _MILLISECONDS for name, value in told.items() if isinstance(value, int | float)}

    def _check(self, part: Json) -> None:
        """Raise the error that a chunk or choice tells; vLLM once sent it without an envelope."""
        if not part.get("error") and part.get("object") != "error":
            return
        code = error_object(part).get("code")
        status = code if isinstance(code, int) and 400 <= code < 600 else None
        raise self._errors.explain(part, status=status, model=self._model)


def _is_whole(content_type: str, errors: ServerErrors) -> bool:
    kind = content_type.partition(";")[0].strip().lower()
    if kind not in ("text/event-stream", "application/json"):
        raise errors.bad_stream(f"{content_type} instead of server-sent events")
    return kind == "application/json"


def _first(body: bytes, errors: ServerErrors) -> Json:
    """The object of a whole body; Google wraps an error in a list."""
    body = body.strip()
    return json_object(body[1:-1] if body.startswith(b"[") else body, errors)


def _dict(body: Json, key: str) -> Json:
    value = body.get(key)
    return value if isinstance(value, dict) else {}


def _number(body: Json, key: str) -> int:
    value = body.get(key)
    return value if isinstance(value, int) else 0


@dataclass(slots=True)
class _Slot:
    """A call so far."""

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""

    @property
    def is_complete(self) -> bool:
        try:
            return isinstance(from_json(self.arguments), dict)
        except ValueError:
            return False


class CallAssembler:
    """Takes the fragments of `delta.tool_calls`, gives the calls in the order of their index.

    OpenAI gives each call an index, and its id and name once. Others leave the index out (Google), give every call
    the index 0 (gateways in front of Gemini), repeat id and name in every fragment, or send arguments as an object.
    """

    def __init__(self, model: str) -> None:
        self._model = model
        self._slots: list[_Slot] = []

    def add(self, fragment: Any) -> None:
        """One fragment. Raises `ModelError(kind="bad_call")` for what belongs to no call."""
        function = fragment.get("function") if isinstance(fragment, dict) else None
        if not isinstance(fragment, dict) or not isinstance(function or {}, dict):
            raise unclear(f"{self._model} made a tool call that is no object: {fragment!r:.200}")
        part = _part(fragment, function or {})
        slot = self._slot(part, indexed=isinstance(fragment.get("index"), int))
        slot.id, slot.name = slot.id or part.id, slot.name or part.name
        slot.arguments += part.arguments

    def calls(self, reason: str) -> list[ToolCall]:
        """All calls; `reason` is why the model stopped. Raises `ModelError(kind="bad_call")` for an unclear one."""
        if reason == "length" and self._slots and not self._slots[-1].is_complete:
            name = self._slots[-1].name
            raise unclear(f"{self._model} reached its token limit within a call of {name}: raise num_predict")
        ordered = sorted(self._slots, key=lambda slot: slot.index)
        return [read_call(slot.name, slot.arguments, slot.id, self._model) for slot in ordered]

    def _slot(self, part: _Slot, *, indexed: bool) -> _Slot:
        """The call that a fragment continues, or a new one."""
        if indexed:
            slot = next((slot for slot in reversed(self._slots) if slot.index == part.index), None)
        else:
            same = [slot for slot in self._slots if part.id and slot.id == part.id]
            slot = same[-1] if same else self._slots[-1] if self._slots else None
            part.index = slot.index if slot else 0
        if slot is not None and not _begins_another(slot, part):
            return slot
        self._slots.append(_Slot(part.index))
        return self._slots[-1]


def _begins_another(slot: _Slot, part: _Slot) -> bool:
    if part.id and slot.id and part.id != slot.id:
        return True
    if not (part.name and slot.name):
        return False
    return part.name != slot.name or bool(part.arguments.strip() and slot.is_complete)


def _part(fragment: Json, function: Json) -> _Slot:
    index, arguments = fragment.get("index"), function.get("arguments")
    if arguments is not None and not isinstance(arguments, str):
        arguments = json.dumps(arguments)
    name, call_id = str(function.get("name") or ""), str(fragment.get("id") or "")
    return _Slot(index if isinstance(index, int) else 0, call_id, name, arguments or "")
