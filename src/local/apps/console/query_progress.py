"""What is known of a query while it is followed: its text so far, its calls, how it ended."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from local.apps.system_client import StreamEvent

Json = dict[str, Any]
ENDS = ("response", "error")
MOST_OUTPUT = 4000  # characters that are known of what a running call has written


@dataclass(slots=True)
class QueryProgress:
    """The fold of a query's events. `said` is what the model says since its last tool call, `before` what it said
    earlier; `calls` has each call's latest event by its call_id."""

    before: str = ""
    said: str = ""
    thinking: str = ""
    thoughts: int = 0  # fragments of thinking, which is about as many tokens
    state: str = ""
    waiting: str = ""  # why nothing happens
    reading: str = ""  # how far the model has read its prompt
    calls: dict[str, Json] = field(default_factory=dict)
    context: Json | None = None  # what the model was told of the user unasked
    end: StreamEvent | None = None
    _outputs: dict[str, str] = field(default_factory=dict)  # of running calls, by call_id

    def receive(self, event: StreamEvent) -> bool:
        """Take an event; returns whether it said anything new: what is on the bus may be said again."""
        data = event.data
        if event.name in ENDS:
            self.end = event
        elif event.name == "snapshot":
            self.before, self.said, self.thinking = "", data["answer"], data["thinking"]
            self.calls = {call["call_id"]: call for call in data["tool_calls"]}
        elif event.name == "token":
            self.said += data["text"]
        elif event.name == "thinking":
            self.thinking += data["text"]
            self.thoughts += 1
        elif event.name == "context":
            is_known, self.context = data == self.context, data
            return not is_known
        elif event.name in ("tool_call", "tool_result"):
            return self._receive_call(data)
        elif event.name == "tool_progress":
            return self._receive_output(data)
        self.state = data["to"] if event.name == "state" else self.state
        self.waiting = data["reason"] if event.name == "waiting" else ""
        read = data if event.name == "progress" else data.get("reading") if event.name == "snapshot" else None
        self.reading = f"reading {read['done']:,} of {read['total']:,} tokens" if read else ""
        return True

    @property
    def open_calls(self) -> list[Json]:
        """The calls without a result."""
        return [call for call in self.calls.values() if not is_settled(call)]

    def output_of(self, call_id: str) -> str:
        """The end of what a call without a result has written so far."""
        return self._outputs.get(call_id, "")

    def _receive_output(self, data: Json) -> bool:
        call_id = data["call_id"]
        call = self.calls.get(call_id)
        if call is None or is_settled(call):
            return False
        self._outputs[call_id] = f"{self.output_of(call_id)}{data['text']}"[-MOST_OUTPUT:]
        return True

    def _receive_call(self, data: Json) -> bool:
        known = self.calls.get(data["call_id"])
        if known is not None and (is_settled(known) or not is_settled(data)):
            return False
        if known is None:
            self.before, self.said = f"{self.before}{self.said}", ""
        self.calls[data["call_id"]] = {**(known or {}), **data}
        return True


def is_settled(call: Json) -> bool:
    """Whether a call has its result, or the error in its place."""
    return call.get("result") is not None or call.get("error") is not None
