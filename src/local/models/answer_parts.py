"""What the answers of all servers are made of: lines of JSON, tool calls, scores of tokens. No I/O."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic_core import from_json

from local.errors import ModelError
from local.models.chat import Json, TokenScore, TokenScores, ToolCall
from local.models.model_errors import ServerErrors

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


def json_object(line: bytes, errors: ServerErrors) -> Json:
    """The object that a line holds. Raises `ModelError(kind="bad_stream")` for anything else."""
    try:
        value = from_json(line)
    except ValueError as error:
        raise errors.bad_stream(f"a line that is not JSON ({error}): {line[:80]!r}") from error
    if not isinstance(value, dict):
        raise errors.bad_stream(f"a line that is not a JSON object: {line[:80]!r}")
    return value


def text(message: Json, key: str, errors: ServerErrors) -> str:
    """The text under that key, empty if there is none. Raises `ModelError(kind="bad_stream")` for anything else."""
    value = message.get(key)
    if value is not None and not isinstance(value, str):
        raise errors.bad_stream(f"{key} that is not text: {value!r:.80}")
    return value or ""


def items(message: Json, key: str, errors: ServerErrors) -> list[Any]:
    """The list under that key, empty if there is none. Raises `ModelError(kind="bad_stream")` for anything else."""
    value = message.get(key) or []
    if not isinstance(value, list):
        raise errors.bad_stream(f"{key} that are no list: {value!r:.80}")
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
