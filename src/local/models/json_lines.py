"""Bytes in pieces of any size to lines, lines to JSON objects, and what these hold. No I/O."""

from __future__ import annotations

from typing import Any

from pydantic_core import from_json

from local.models.chat import Json
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
