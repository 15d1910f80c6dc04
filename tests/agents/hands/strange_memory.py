"""A memory with content of the user, and untrusted content."""

from __future__ import annotations

from agent_stage.hostile_web import Recollections

from local.bus.envelope import Envelope
from local.memory.messages import MemoryRequest, MemoryResult
from local.runtime.participant import on


class StrangeMemory(Recollections):
    """Finds the user's content, or the untrusted content with the question's last word."""

    @on(MemoryRequest)
    async def answer(self, request: MemoryRequest, envelope: Envelope) -> MemoryResult:
        found = await super().answer(request, envelope)
        word = request.query.rpartition(" ")[2]
        hits = tuple(hit for hit in found.hits if not hit.tainted or word in hit.query)
        return found.model_copy(update={"hits": hits})
