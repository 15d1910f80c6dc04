"""The body of a streamed answer, bytes in and deltas out, as far as all kinds of servers are alike. No I/O."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

from pydantic_core import from_json

from local.errors import ModelError
from local.models.chat import Delta, Json, TokenScore, TokenScores, ToolCall
from local.models.model_errors import ServerErrors
from local.models.think_tags import ThinkTagSplitter

MAX_LINE_BYTES = 4 * 1024 * 1024


class LineBuffer:
    """Keeps the line that is not complete yet, at most `MAX_LINE_BYTES` of it."""

    def __init__(self, errors: ServerErrors) -> None:
        self._errors = errors
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """The lines completed by `data`, without their ends. Raises `ModelError(kind="bad_stream")` for a huge one."""
        lines = (self._rest + data).split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > MAX_LINE_BYTES:
            raise self._errors.bad_stream(f"a line of more than {MAX_LINE_BYTES} bytes")
        return lines


class AnswerStream:
    """One assistant message while it comes. `heard` once the model has said something more, until the reader takes note
    of it; `finished` once the model has told why it stopped, after which only the usage may follow; `done` once `Done`
    was given."""

    def __init__(self, model: str, errors: ServerErrors) -> None:
        self.heard = self.finished = self.done = False
        self._model, self._errors = model, errors
        self._lines, self._tags = LineBuffer(errors), ThinkTagSplitter()

    @abstractmethod
    def feed(self, data: bytes) -> Iterator[Delta]:
        """The deltas completed by `data`; what precedes a failure is yielded before it is raised.

        Raises `ModelError`: bad_stream for what is not in the server's format, bad_call for a call that cannot be
        understood, filtered for an answer that the server suppressed, and the kind that fits for an error told in it.
        """

    @abstractmethod
    def end(self) -> Iterator[Delta]:
        """The stream has ended. Raises `ModelError(kind="stream_cut")` unless the model had finished."""

    def _text(self, message: Json, key: str) -> str:
        value = message.get(key)
        if value is not None and not isinstance(value, str):
            raise self._errors.bad_stream(f"{key} that is not text: {value!r:.80}")
        return value or ""

    def _items(self, message: Json, key: str) -> list[Any]:
        value = message.get(key) or []
        if not isinstance(value, list):
            raise self._errors.bad_stream(f"{key} that are no list: {value!r:.80}")
        return value

    def _object(self, value: Any, what: str) -> Json:
        if not isinstance(value, dict):
            raise self._errors.bad_stream(f"{what} that is not an object: {value!r:.80}")
        return value


def json_object(line: bytes, errors: ServerErrors) -> Json:
    """The object that a line holds. Raises `ModelError(kind="bad_stream")` for anything else."""
    try:
        value = from_json(line)
    except ValueError as error:
        raise errors.bad_stream(f"a line that is not JSON ({error}): {line[:80]!r}") from error
    if not isinstance(value, dict):
        raise errors.bad_stream(f"a line that is not a JSON object: {line[:80]!r}")
    return value


def read_call(name: Any, arguments: Any, call_id: Any, model: str) -> ToolCall:
    """Missing arguments are none and a JSON string is read; a call that stays unclear is never guessed at, since a
    tool called with other arguments than the model meant may do harm. Raises `ModelError(kind="bad_call")`.
    """
    if not isinstance(name, str) or not name:
        raise unclear(f"{model} made a tool call without a name (arguments {arguments!r:.200})")
    return ToolCall(name=name, arguments=_object(name, arguments, model), id=str(call_id or ""))


def unclear(found: str) -> ModelError:
    """The error for a call that cannot be understood."""
    return ModelError(f"{found}; ask again", kind="bad_call")


def _object(name: str, arguments: Any, model: str) -> dict[str, Any]:
    value = arguments or {}
    if isinstance(value, str):
        try:
            value = from_json(value)
        except ValueError:
            value = None
    if not isinstance(value, dict):
        raise unclear(f"{model} called {name} with arguments that are no object: {arguments!r:.200}")
    return value


def token_scores(holder: Any, key: str) -> Iterator[TokenScores]:
    """The scores under that key of an object: `[{"token", "logprob", "top_logprobs": [{"token", "logprob"}]}]`.

    None where there are none. They are an extra: what is not in that form is left out and breaks no answer.
    """
    entries = holder.get(key) if isinstance(holder, dict) else None
    if isinstance(entries, list) and entries:
        yield TokenScores(tuple(_score(entry) for entry in entries if isinstance(entry, dict)))


def _score(entry: Json) -> TokenScore:
    top = entry.get("top_logprobs")
    found = [entry, *(top if isinstance(top, list) else ())]
    alternatives = {
        str(one.get("token", "")): float(one["logprob"])
        for one in found
        if isinstance(one, dict) and isinstance(one.get("logprob"), int | float)
    }
    return TokenScore(str(entry.get("token", "")), alternatives)
