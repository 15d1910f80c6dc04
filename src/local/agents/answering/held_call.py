"""What a model says, without what may be a tool call written as text: nobody is shown the JSON of a call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from local.models.chat import ContentDelta, Delta, RestartDelta
from local.models.text_calls import may_be_call


class HeldCall:
    """Gives the deltas of one message on, but holds back content from where a line begins like a call, until it is
    clear that it is none. `text` is what is held; at the end of the message the caller knows whether it was a call."""

    def __init__(self, names: Sequence[str]) -> None:
        """`names` are those of the tools."""
        self._names = names
        self.text = ""
        self._begins_line = True

    def hear(self, delta: Delta) -> Iterator[Delta]:
        """What may be told of it now."""
        if isinstance(delta, RestartDelta):
            self.text, self._begins_line = "", True
        if not isinstance(delta, ContentDelta):
            yield delta
        elif said := self._released(delta.text):
            yield ContentDelta(said)

    def _released(self, text: str) -> str:
        said = ""
        self.text += text
        while self.text:
            if self._begins_line and may_be_call(self.text, self._names):
                break
            line, end, rest = self.text.partition("\n")
            said += line + end
            self.text, self._begins_line = rest, bool(end)
        return said
