"""An agent that asks: whatever takes part in the system can have a question of its own answered."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from local.bus.bus import Bus
from local.bus.envelope import Envelope
from local.bus.messages import QueryReceived, ToolRequest, ToolResult
from local.journal.client import JournalClient
from local.queries.asker import Asker
from local.runtime.participant import Kind, Participant, Settingless, on
from local.runtime.runner import ParticipantRunner

Stage = Any  # of conftest.py


class Scheduler(Participant):
    """Asks what it is told to ask, and answers with the answer."""

    name = "scheduler"
    kind = Kind.AGENT

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        async with Asker(self.bus) as self._asker:
            await self.bus.ready()
            yield

    @on(ToolRequest)
    async def ask(self, request: ToolRequest, envelope: Envelope) -> ToolResult:
        query = self._asker.ask(request.args["query"], session_id=envelope.session_id, user_id=envelope.user_id)
        told = {"query_id": request.query_id, "call_id": request.call_id, "tool": request.tool}
        return ToolResult(result=(await query.outcome()).answer, **told)


async def test_an_agent_asks_and_gets_its_answer(stage: Stage) -> None:
    stop, ready = asyncio.Event(), asyncio.Event()
    bus = await stage.bus("caller")
    async with asyncio.TaskGroup() as tasks:
        runner = ParticipantRunner(
            Scheduler(Settingless()), Bus("scheduler", stage.hub.transport(), durability=JournalClient())
        )
        tasks.create_task(runner.run(stop, ready.set))
        await asyncio.wait_for(ready.wait(), 5)
        await bus.ready()
        request = ToolRequest(query_id="q", call_id="q:0:0", tool="scheduler", args={"query": "really?"})
        asking = tasks.create_task(bus.request(request, ToolResult, 5))
        heard = await stage.generator.hears()
        assert QueryReceived.decode(heard.payload).query == "really?"
        await stage.generator.answers(heard)
        assert (await asking).result == "Yes."
        stop.set()
