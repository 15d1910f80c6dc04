"""What the model is saying, on the bus as it says it."""

from __future__ import annotations

import asyncio

from local.bus.bus import Bus
from local.models.chat import ContentDelta, Delta, ThinkingDelta
from local.protocol.envelope import Trace
from local.protocol.messages import GenerationThinking, GenerationToken


class TokenStream:
    """Publishes fragments without delay; those that the model's server sent together travel together.

    A fragment is published in the loop's next round, so whatever was read from the server in one go becomes one
    message, and a lone token leaves at once.
    """

    def __init__(self, bus: Bus, trace: Trace, query_id: str, respondent_id: str, attempt: int) -> None:
        self._bus, self._trace = bus, trace
        self._query_id, self._respondent_id, self._attempt = query_id, respondent_id, attempt
        self._index = 0
        self._kind: type[GenerationThinking] = GenerationToken
        self._texts: list[str] = []
        self._due: asyncio.Handle | None = None

    def push(self, delta: Delta) -> None:
        """Take one delta; only what is thought and said is streamed."""
        if not isinstance(delta, ContentDelta | ThinkingDelta):
            return
        kind = GenerationToken if isinstance(delta, ContentDelta) else GenerationThinking
        if kind is not self._kind:
            self.flush()
            self._kind = kind
        self._texts.append(delta.text)
        if self._due is None:
            self._due = asyncio.get_running_loop().call_soon(self.flush)

    def begin_again(self, attempt: int) -> None:
        """What was said of this message does not count: whoever follows goes by the higher attempt."""
        self._texts.clear()
        self._attempt, self._index = attempt, 0

    def flush(self) -> None:
        """Publish what has gathered."""
        if self._due is not None:
            self._due.cancel()
            self._due = None
        if not self._texts:
            return
        text = "".join(self._texts)
        self._texts.clear()
        message = self._kind(
            query_id=self._query_id,
            respondent_id=self._respondent_id,
            attempt=self._attempt,
            index=self._index,
            text=text,
        )
        self._index += 1
        self._bus.post(message, self._trace)
