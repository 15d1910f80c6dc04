"""A model's tool call as servers tell it, understood or refused. No I/O."""

from __future__ import annotations

from typing import Any

from pydantic_core import from_json

from local.errors import ModelError
from local.models.chat import ToolCall


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
