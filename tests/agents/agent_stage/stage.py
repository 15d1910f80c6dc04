"""A journal, a frontend, and participants on one bus."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from agent_stage.frontend import SECONDS, Frontend
from agent_stage.scripted_model import ScriptedModel
from agent_stage.served import Record, Served

from local.bus.blobs import BlobStore
from local.bus.envelope import decode
from local.bus.message import Message
from local.bus.messages import BusDead, ParticipantStatus, QueryFailed, QueryReceived, ResponseGeneration, ToolSchema
from local.bus.zeromq import MemoryHub
from local.generator.agent import CONSUMER, GeneratorAgent, SecondRespondent
from local.generator.config import GeneratorConfig
from local.journal.messages import JournalAck, JournalEntries, JournalEntry, JournalRead
from local.journal.server import Journal, JournalConfig
from local.journal.store import JournalStore
from local.permissions.gatekeeper import GatekeeperService
from local.permissions.policy import GatekeeperConfig
from local.runtime.participant import Participant, Resources
from local.tools.tool import Tool


class Stage:
    """One bus with a journal, a frontend, and the served participants."""

    def __init__(self, hub: MemoryHub, frontend: Frontend, database: Path) -> None:
        self.hub, self.frontend, self.database = hub, frontend, database
        self.model, self.model_b = ScriptedModel(), ScriptedModel()
        self.loses_live_queries = False  # then turns begin with what the journal delivers
        self.blobs: BlobStore | None = None  # of participants served from then on
        self._served: list[Served] = []
        self._journal: Served
        self._generator: Served
        self._deadly, self._passes = "", 0

    async def serve(self, participant: Participant, sender: str = "") -> Served:
        return await self._ready(Served(participant, self.hub, sender or participant.name, blobs=self.blobs))

    async def generator(self, **settings: Any) -> Served:
        """A generator on the stage's one file, ready."""
        config = GeneratorConfig(model="gemma", system_prompt="Be brief.", **{"make_titles": False, **settings})
        record = Record(self.database)
        agent = GeneratorAgent(config, self.model, record)
        if self.loses_live_queries:
            agent.compute = _nothing  # type: ignore[method-assign]
        self._generator = Served(agent, self.hub, "generator", record, self.blobs)
        return await self._ready(self._generator)

    async def second_respondent(self, **settings: Any) -> Served:
        """Return a ready one with its own model and file."""
        config = GeneratorConfig(model="other", system_prompt="Be brief.", **settings)
        policy = SecondRespondent.policy
        record = Record(self.database.with_name(policy.record), policy.respondent_id)
        agent = SecondRespondent(config, self.model_b, record)
        return await self._ready(Served(agent, self.hub, agent.name, record, self.blobs))

    async def doomed_generator(self, failpoint: str, passes: int = 1) -> Served:
        """Return one that is killed when it has reached that point so many times."""
        self._deadly, self._passes = failpoint, passes
        return await self.generator()

    async def journal(self, **settings: Any) -> Served:
        """A journal on the stage's one file, ready; in the place of the one there was."""
        await self.no_journal()
        journal = Journal(JournalConfig(**settings), JournalStore(self.database.with_name("journal.db")))
        self._journal = await self.serve(journal)
        return self._journal

    async def no_journal(self) -> None:
        """The journal ends, if there is one."""
        if hasattr(self, "_journal"):
            await self._journal.end()

    async def gatekeeper(self, **settings: Any) -> Served:
        """Return a gatekeeper on the stage's one file, after its announcement, which knows every existing tool."""
        before = len(self.frontend.of(ParticipantStatus, name="gatekeeper"))
        resources = Resources(self.database.parent, layers=(self.database.parent / "settings",))
        kept = GatekeeperService.build(GatekeeperConfig(**settings), resources)
        served = await self.serve(kept)
        await self.frontend.hears(ParticipantStatus, before + 1, name="gatekeeper")
        return served

    async def tool(self, tool: Tool, sender: str = "") -> Served:
        """Return a tool after its schema has arrived everywhere."""
        before = len(self.frontend.of(ToolSchema))
        tool.lent(Resources(self.database.parent))
        served = await self.serve(tool, sender)
        await self.frontend.hears(ToolSchema, before + 1)
        return served

    def reach(self, failpoint: str) -> None:
        """Stands in for `failpoints.reach`."""
        if failpoint != self._deadly:
            return
        self._passes -= 1
        if self._passes == 0:
            self._generator.die()
            raise asyncio.CancelledError  # not one step further

    async def on_record(self, query_id: str, *kinds: type[Message]) -> list[JournalEntry]:
        """Return the journal's messages of a query, in order."""
        request = JournalRead(subjects=tuple(kind.subject for kind in kinds), correlation_id=query_id)
        return list((await self.frontend.bus.request(request, JournalEntries, SECONDS)).entries)

    def acknowledged(self) -> set[int]:
        """The numbers of the messages that the generator is done with."""
        return {number for ack in self.frontend.of(JournalAck, consumer=CONSUMER) for number in ack.numbers}

    async def end_of(self, query_id: str) -> ResponseGeneration | QueryFailed:
        """Return how a query ended, once the generator has acknowledged it, or its dead letter.

        There is one recorded end, and every received end is a copy of it.
        """
        kinds: tuple[type[ResponseGeneration | QueryFailed], ...] = (ResponseGeneration, QueryFailed)
        await self.frontend.until(lambda: any(self.frontend.of(kind, query_id=query_id) for kind in kinds))
        number = (await self.on_record(query_id, QueryReceived, BusDead))[-1].number
        await self.frontend.until(lambda: number in self.acknowledged())
        [entry] = await self.on_record(query_id, *kinds)
        end = decode(entry.frame.encode())
        heard = [envelope for kind in kinds for envelope in self.frontend.envelopes(kind, query_id=query_id)]
        assert {(envelope.id, envelope.payload) for envelope in heard} == {(end.id, end.payload)}
        return next(kind for kind in kinds if kind.subject == end.subject).decode(end.payload)

    async def _ready(self, served: Served) -> Served:
        self._served.append(served)
        await served.ready()
        return served

    async def end(self) -> None:
        for served in reversed(self._served):
            await served.end()


async def _nothing(*_: object) -> None:
    """Stands in for a handler whose messages are lost."""
