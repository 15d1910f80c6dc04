"""A memory's store with a small embedding model, and a memory that is served beside a journal."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import zlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from local.bus.envelope import Envelope, Trace, new_id
from local.bus.message import Message
from local.bus.messages import QueryReceived, ResponseGeneration
from local.core.errors import ModelError
from local.generator.output import response_id
from local.memory.agent import EmbeddingChoice, MemoryAgent, MemoryConfig
from local.memory.messages import MemoryRecalled, MemoryRequest, MemoryResult
from local.memory.service import EngramService
from local.memory.store import EngramDraft
from local.models import arbiter as quiet_period
from local.models import leases
from tests.agents import conftest as agents  # before what it puts on the path

# isort: split

from agent_stage.frontend import SECONDS

if TYPE_CHECKING:
    from agent_stage.served import Served
    from agent_stage.stage import Stage

stage = agents.stage
MEANINGS = {"espresso": "coffee", "beverage": "tea", "automobile": "car", "reside": "live"}
NOW = 1_700_000_000.0


class WordEmbedder:
    """An embedding model: texts with the same words are close, and so are those with words of `MEANINGS`."""

    dimensions = 1024
    relevance_floor = 0.2

    def __init__(self, name: str = "words") -> None:
        self.name = name
        self.texts: list[str] = []
        self.error: ModelError | None = None
        self.failed, self.may_go_on = asyncio.Event(), asyncio.Event()
        self.may_go_on.set()

    async def embed_queries(self, texts: Sequence[str]) -> Any:
        import numpy as np

        if self.error:
            self.failed.set()
            raise self.error
        return np.array([self._vector(text) for text in texts], dtype=np.float32)

    async def embed_documents(self, texts: Sequence[str]) -> Any:
        await self.may_go_on.wait()
        self.texts += texts
        return await self.embed_queries(texts)

    def _vector(self, text: str) -> Any:
        import numpy as np

        vector = np.full(self.dimensions, 1e-3)
        for word in re.findall(r"\w+", text.casefold()):
            if len(word) > 3:
                vector[zlib.crc32(MEANINGS.get(word, word).encode()) % self.dimensions] += 1
        return vector / np.linalg.norm(vector)


@pytest.fixture
def embedder() -> WordEmbedder:
    return WordEmbedder()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "engrams"


@pytest.fixture
def holders(directory: Path, files_with: Callable[..., list[str]]) -> Callable[..., list[str]]:
    """Tells which files below the directory hold one of some texts."""
    return partial(files_with, directory)


@pytest.fixture
def opened(directory: Path, embedder: WordEmbedder) -> Callable[..., Any]:
    """Opens a service, by default with `embedder` and a clock that stands still."""

    @asynccontextmanager
    async def open_service(other: WordEmbedder | None = None) -> AsyncIterator[EngramService]:
        async with EngramService(directory, other or embedder, clock=lambda: NOW) as service:
            yield service

    return open_service


@pytest.fixture
async def service(opened: Callable[..., Any]) -> AsyncIterator[EngramService]:
    async with AsyncExitStack() as stack:
        yield await stack.enter_async_context(opened())


@pytest.fixture
def exported() -> Callable[..., Any]:
    """Everything that is exported of a user, page after page."""

    async def export(service: EngramService, user_id: str) -> list[dict[str, Any]]:
        found, cursor = await service.export(user_id)
        while cursor:
            page, cursor = await service.export(user_id, cursor)
            found += page
        return [json.loads(line) for line in found]

    return export


@pytest.fixture
def exchange() -> Callable[..., EngramDraft]:
    """Makes exchanges, each in a session of its own unless one is named."""
    numbers = itertools.count()

    def make(query: str, answer: str = "Noted.", **fields: Any) -> EngramDraft:
        number = next(numbers)
        told = {"query_id": f"query-{number}", "session_id": f"session-{number}", "user_id": "ann",
                "asked_at": NOW - 1000 + number} | fields  # fmt: skip
        return EngramDraft(query=query, answer=answer, **told)

    return make


class NoEmbedding(EmbeddingChoice):
    """Leaves the search to the words."""

    def __init__(self) -> None:
        self.problem = ""

    async def run(self, engrams: EngramService) -> None:
        pass


class Remembering:
    """What a test says to a served memory and asks of it."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self.frontend = stage, stage.frontend
        self._directory = stage.database.parent / "engrams"

    async def serve(self, *, classify: bool = False, signs_as: str | None = None, fitness: Any = None) -> Served:
        """A process of the memory on the stage's one store."""
        engrams = EngramService(self._directory)
        agent = MemoryAgent(
            MemoryConfig(classify=classify), self.stage.model, "gemma", engrams, NoEmbedding(), None, signs_as, fitness
        )
        return await self.stage.serve(agent)

    async def publish(self, message: Message, trace: Trace, envelope_id: str | None = None) -> Envelope:
        return await self.frontend.bus.publish(message, trace, envelope_id=envelope_id)

    async def answered(
        self, query_id: str, query: str, answer: str = "Noted.", *, session: str = "s", user: str | None = None,
        **fields: Any,
    ) -> Envelope:  # fmt: skip
        """A turn has ended."""
        told: dict[str, Any] = {"status": "answered", "respondent_id": "A"} | fields
        response = ResponseGeneration(query_id=query_id, query=query, answer=answer, **told)
        trace = Trace(query_id, None, session, user)
        return await self.publish(response, trace, response_id(query_id, told["respondent_id"]))

    async def ask(self, verb: Any, *, user: str | None = None, **fields: Any) -> MemoryResult:
        request = MemoryRequest(verb=verb, **fields)
        trace = Trace("asked", None, "asking", user)
        return await self.frontend.bus.request(request, MemoryResult, SECONDS, trace)

    async def asked(self, query_id: str, query: str, *, session: str = "asking", user: str | None = None) -> None:
        """A query was received."""
        await self.publish(QueryReceived(query_id=query_id, query=query), Trace(query_id, None, session, user))

    async def recalled(self, query: str, **trace: Any) -> Any:
        """What the memory finds for a query that is received."""
        query_id = new_id()
        await self.asked(query_id, query, **trace)
        return (await self.stage.frontend.hears(MemoryRecalled, query_id=query_id)).hits

    def classification(self, *facts: dict[str, Any], intent: str = "statement") -> str:
        """What a model replies that obeys the form."""
        whole = [{"certain": True, "retracts": False} | fact for fact in facts]
        return json.dumps({"intent": intent, "entities": [], "facts": whole})


@pytest.fixture
def remembering(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Remembering:
    monkeypatch.setattr(leases, "ALONE_SECONDS", 0.0)  # there is no arbiter to wait for
    monkeypatch.setattr(leases, "BEAT_SECONDS", 0.001)
    monkeypatch.setattr(quiet_period, "QUIET_SECONDS", 0.0)
    return Remembering(stage)
