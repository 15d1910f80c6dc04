"""What is said of the list that a model keeps of what is to be done."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from local.protocol.message import Data, RespondentMessage
from local.protocol.turn_tools import TODO_LIST

MOST_ITEMS, MOST_CHARACTERS = 50, 300
WorkState = Literal["open", "doing", "done", "dropped"]
CLOSED: frozenset[WorkState] = frozenset({"done", "dropped"})


class TodoItem(Data):
    """One thing to be done, and how it stands."""

    model_config = ConfigDict(extra="forbid")
    text: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MOST_CHARACTERS)]
    state: WorkState = "open"


class TodoUpdated(RespondentMessage):
    """A respondent, when its model has written its list anew: all of it, in order."""

    subject = "todo.updated"
    call_id: str
    items: tuple[TodoItem, ...]


class TodoArguments(BaseModel):
    """The arguments of the tool: the whole list."""

    model_config = ConfigDict(extra="forbid")
    items: Annotated[tuple[TodoItem, ...], Field(max_length=MOST_ITEMS)]


def latest_list(calls: Iterable[Mapping[str, Any]]) -> tuple[TodoItem, ...]:
    """The list after these calls of tools, each with `tool`, `args` and `result`; empty if there is none."""
    for call in reversed(list(calls)):
        if call.get("tool") == TODO_LIST and call.get("result") is not None:
            try:
                return TodoArguments.model_validate(call.get("args")).items
            except ValidationError:
                continue
    return ()
