"""Tool calls that a server streams in fragments, put together. No I/O."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json

from local.models.chat import Json, ToolCall
from local.models.tool_call import read_call, unclear


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
