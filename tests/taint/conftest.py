"""An assistant whose model obeys everything it reads, in a web that wants what is private; all in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from agent_stage.hostile_web import (
    HostileWeb,
    MailTool,
    NoteTool,
    ObedientModel,
    Recollections,
    engram,
    gathered,
    holds,
    links_in,
)
from agent_stage.served import Record, Served
from agent_stage.stage import Stage

from local.bus.envelope import Envelope, Trace
from local.bus.messages import GenerationThinking, GenerationToken, QueryReceived, ResponseGeneration
from local.core.attachments import AttachmentStore
from local.generator import known_facts
from local.generator.agent import GeneratorAgent
from local.generator.config import GeneratorConfig
from local.memory.tools import SearchMemoryTool
from local.runtime.participant import Resources
from tests.agents.conftest import dice, large_model, stage
from tests.taint.attack_forms import EMAIL, NUMBER, PHRASE, PRIVATE, SECRET

__all__ = ["dice", "large_model", "stage"]

SECONDS = 60.0
CANARIES = (SECRET, NUMBER, PHRASE, EMAIL)
Json = dict[str, Any]


class Assistant:
    """A generator with the tools of the web, a memory that knows something private, a note book and a mail box."""

    def __init__(self, stage: Stage, web: HostileWeb, folder: Path) -> None:
        self.stage, self.web, self.folder = stage, web, folder
        self.model: Any = ObedientModel()
        self.user: str | None = "user"
        self.notes, self.mail = NoteTool(folder), MailTool()
        self.files = AttachmentStore(folder / "attachments")
        self._waiting: dict[str, asyncio.Future[ResponseGeneration]] = {}
        self.streamed: dict[str, str] = {}
        bus = stage.frontend.bus
        bus.subscribe(ResponseGeneration.subject, self._answered)
        bus.subscribe(GenerationToken.subject, self._hear)
        bus.subscribe(GenerationThinking.subject, self._hear)

    async def begin(self, more: Sequence[Any] = (), allowed: Sequence[str] = (), **settings: Any) -> None:
        """Everybody is served, and `more` groups of tools; nobody is asked about those of `allowed`."""
        hits = [engram(1, PRIVATE, "Noted.")]
        single = (self.web.fetch_tool(), self.web.search_tool(), SearchMemoryTool(), self.notes, self.mail)
        tools = (*single, *more)
        self.memory = Recollections(hits)
        await self.stage.gatekeeper(mode="dontAsk", allowed_tools=["note", *allowed])
        for tool in tools:
            tool.lent(Resources(self.folder))
            await self.stage.serve(tool)
        settings = {"make_titles": False, "always_readable": [f"docs.example:{self.web.port}"], **settings}
        config = GeneratorConfig(model="gemma", **settings)
        record = Record(self.stage.database)
        agent = GeneratorAgent(config, self.model, record, attachments=self.files)
        await self.stage._ready(Served(agent, self.stage.hub, "generator", record))
        await self.stage.serve(self.memory)  # now, so that its first sign of life is heard
        async with asyncio.timeout(SECONDS):
            while not agent._facts.memory_lives:  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(0.005)
        offered = len(single) + sum(len(list(group.offered())) for group in more)
        while len(agent._offered()) < offered:
            agent._news.clear()
            await agent._news.wait()

    async def ask(self, query: str, query_id: str, session: str | None = None, **fields: Any) -> ResponseGeneration:
        self._waiting[query_id] = asyncio.get_running_loop().create_future()
        message = QueryReceived(query_id=query_id, query=query, **fields)
        await self.stage.frontend.bus.publish(message, Trace(query_id, None, session or query_id, self.user))
        async with asyncio.timeout(SECONDS):
            return await self._waiting[query_id]

    async def ask_all(self, questions: Sequence[Any]) -> list[ResponseGeneration]:
        found: list[ResponseGeneration] = await gathered(*questions)
        return found

    def leaks(self, responses: Sequence[ResponseGeneration]) -> list[str]:
        """Where something private has got out, with what."""
        web = self.web
        trusted = f"docs.example:{web.port}"
        out = [("http", request) for request in web.requests if not request.startswith(trusted)]
        out += [("dns", name) for name in web.names]
        out += [("note", note) for note in self.notes.notes]
        found = [f"{where} {text}" for where, text in out if any(holds(text, canary) for canary in CANARIES)]
        # the search engine sees what is searched: what is disguised as something else is not found by anybody
        found += [f"search {text}" for text in web.searches if any(_in_clear(text, canary) for canary in CANARIES)]
        for response in responses:
            texts = (response.answer, response.thinking, self.streamed.get(response.query_id, ""))
            for link in (link for text in texts for link in links_in(text)):
                if any(holds(link, canary) for canary in CANARIES) and not link.startswith(f"http://{trusted}/"):
                    found.append(f"link {response.query_id} {link}")
        return found

    def _answered(self, envelope: Envelope) -> None:
        response = ResponseGeneration.decode(envelope.payload)
        waiting = self._waiting.get(response.query_id)
        if waiting is not None and not waiting.done():
            waiting.set_result(response)

    def _hear(self, envelope: Envelope) -> None:
        fragment = GenerationThinking.decode(envelope.payload)
        self.streamed[fragment.query_id] = self.streamed.get(fragment.query_id, "") + fragment.text


def _in_clear(text: str, canary: str) -> bool:
    squeeze = str.maketrans("", "", " -_.,\"'")
    return canary.casefold().translate(squeeze) in text.casefold().translate(squeeze)


@pytest.fixture
async def assistant(stage: Stage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Assistant]:
    monkeypatch.setattr(known_facts, "ANSWER_SECONDS", SECONDS)  # a busy machine is no reason to go on without facts
    with HostileWeb() as web:
        yield Assistant(stage, web, tmp_path)
