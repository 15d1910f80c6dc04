"""One message of the model while it is being said."""

from __future__ import annotations

from dataclasses import dataclass, field

from local.models.chat import ContentDelta, Degraded, Delta, Done, ThinkingDelta, ToolCall, Usage


@dataclass(slots=True)
class Spoken:
    """What has been heard of a message so far."""

    _content: list[str] = field(default_factory=list)
    _thinking: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    done: Done = field(default_factory=lambda: Done(Usage()))

    @property
    def content(self) -> str:
        """What is for the user."""
        return "".join(self._content)

    @property
    def thinking(self) -> str:
        """What the model thought before and in between."""
        return "".join(self._thinking)

    def hear(self, delta: Delta) -> None:
        """Take in one more delta."""
        match delta:
            case ContentDelta(text):
                self._content.append(text)
            case ThinkingDelta(text):
                self._thinking.append(text)
            case ToolCall():
                self.calls.append(delta)
            case Degraded(note):
                self.notes.append(note)
            case Done():
                self.done = delta

    def was_call(self, call: ToolCall) -> None:
        """What stood where the content belongs was this call."""
        self._content, self.calls = [], [call]
        self.notes.append(f"the call of {call.name} came as text")
