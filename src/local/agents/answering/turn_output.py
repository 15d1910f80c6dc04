"""What a turn lets others hear while it runs: changes of state, what the model thinks and says, what is left out."""

from __future__ import annotations

import asyncio
from enum import StrEnum

from local.agents.answering.context.prompt_draft import Plan
from local.agents.answering.context.prompt_fitter import compacted
from local.agents.answering.context.prompt_parts import Parts
from local.agents.answering.turn_table import TurnState
from local.bus.bus import Bus
from local.models.chat import ContentDelta, Delta, ThinkingDelta
from local.protocol.envelope import Trace
from local.protocol.messages import GenerationThinking, GenerationToken, Message
from local.runtime.transition_log import TransitionLog


class TurnOutput:
    """Publishes everything in the order in which it happens, and without delay.

    A fragment is published in the loop's next round, so whatever was read from the model's server in one go becomes one
    message, and a lone token leaves at once.
    """

    def __init__(self, bus: Bus, trace: Trace, agent_id: str, query_id: str, respondent_id: str, attempt: int) -> None:
        self._bus, self._trace = bus, trace
        self._query_id, self._respondent_id, self._attempt = query_id, respondent_id, attempt
        self._changes = TransitionLog(
            self._post, agent_id, query_id, respondent_id, passing={TurnState.DISPATCHING_TOOL}
        )
        self._index = 0
        self._kind: type[GenerationThinking] = GenerationToken
        self._texts: list[str] = []
        self._due: asyncio.Handle | None = None

    def changed(self, before: StrEnum, action: StrEnum, after: StrEnum) -> None:
        """The turn's machine has changed its state."""
        self._flush_texts()
        self._changes.note(before, action, after)

    def hear(self, delta: Delta) -> None:
        """The model goes on; only what it thinks and says is told."""
        if not isinstance(delta, ContentDelta | ThinkingDelta):
            return
        self._changes.flush()
        kind = GenerationToken if isinstance(delta, ContentDelta) else GenerationThinking
        if kind is not self._kind:
            self._flush_texts()
            self._kind = kind
        self._texts.append(delta.text)
        if self._due is None:
            self._due = asyncio.get_running_loop().call_soon(self._flush_texts)

    def begin_again(self, attempt: int) -> None:
        """What was said of this message does not count: whoever follows goes by the higher attempt."""
        self._texts.clear()
        self._attempt, self._index = attempt, 0

    def compacted(self, planned: Plan, parts: Parts) -> None:
        """The model is not told everything."""
        self.flush()
        self._post(compacted(planned, parts, self._query_id, self._respondent_id))

    def flush(self) -> None:
        """Publish what has gathered."""
        self._changes.flush()
        self._flush_texts()

    def _flush_texts(self) -> None:
        if self._due is not None:
            self._due.cancel()
            self._due = None
        if not self._texts:
            return
        text = "".join(self._texts)
        self._texts.clear()
        fragment = self._kind(
            query_id=self._query_id,
            respondent_id=self._respondent_id,
            attempt=self._attempt,
            index=self._index,
            text=text,
        )
        self._index += 1
        self._post(fragment)

    def _post(self, message: Message) -> None:
        self._bus.post(message, self._trace)
