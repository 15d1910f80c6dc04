"""Which model embeds, and when: the server's if it has one, the bundled one else, while users are quiet."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from agent_stage.scripted_model import ScriptedModel

from local.core.errors import ModelError
from local.memory import agent as embedding_choice
from local.memory.agent import EmbeddingChoice
from local.memory.messages import MemoryIngested
from local.memory.service import EngramService
from local.memory.store import EngramDraft
from local.models.leases import Leases

SECONDS = 90.0
NAME = "nomic-embed-text"


class EmbeddingModel(ScriptedModel):
    """A server with an embedding model, or a problem."""

    async def embed(self, model: str, texts: Sequence[str]) -> list[list[float]]:
        if self.problem is not None:
            raise self.problem
        return [[1.0, 0.0, float(len(text))] for text in texts]


@pytest.fixture
def model() -> EmbeddingModel:
    return EmbeddingModel()


@pytest.fixture
async def engrams(tmp_path: Path) -> AsyncIterator[EngramService]:
    async with EngramService(tmp_path) as service:
        yield service


async def chosen(model: EmbeddingModel, engrams: EngramService, *, is_served: bool = True) -> str:
    choice = EmbeddingChoice(model, NAME, Leases(), is_served=is_served)
    await asyncio.wait_for(choice.run(engrams), SECONDS)
    return (await engrams.status()).model


async def test_a_server_that_is_late_is_waited_for_if_the_vectors_are_its_own(
    model: EmbeddingModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, until: Any
) -> None:
    monkeypatch.setattr(embedding_choice, "RETRY_SECONDS", 0.01)
    async with EngramService(tmp_path) as engrams:
        await chosen(model, engrams)
        await engrams.ingest(EngramDraft("q", "s", "ann", "I like zebras", "So do I", 1.0))
        await asyncio.wait_for(engrams.settled(), SECONDS)
    model.problem = ModelError("no Ollama answers", kind="unreachable")
    choice = EmbeddingChoice(model, NAME, Leases(), is_served=True)
    async with EngramService(tmp_path) as engrams:
        choosing = asyncio.create_task(choice.run(engrams))
        await until(lambda: choice.problem)
        found = await engrams.search("ann", "zebras")
        assert [hit.engram.query for hit in found.hits] == ["I like zebras"]
        assert found.degraded
        model.problem = None
        await asyncio.wait_for(choosing, SECONDS)
        assert (choice.problem, (await engrams.status()).model) == ("", NAME)


BUNDLED = "all-MiniLM-L6-v2"


@pytest.mark.parametrize(
    ("problem", "is_served", "name"),
    [
        (None, True, NAME),
        (ModelError("pull it", kind="model_missing"), True, BUNDLED),
        (ModelError("no Ollama answers", kind="unreachable"), True, BUNDLED),  # it has embedded nothing yet
        (None, False, BUNDLED),  # the server's vectors mean nothing
    ],
)
async def test_the_servers_model_is_taken_if_it_has_it_and_the_bundled_one_else(
    model: EmbeddingModel, engrams: EngramService, problem: ModelError | None, is_served: bool, name: str
) -> None:
    model.problem = problem
    assert await chosen(model, engrams, is_served=is_served) == name


NEVER = 1e9  # seconds


class NotingEmbedder:
    """Notes what it is asked."""

    name, dimensions, relevance_floor = "noting", 2, 0.0

    def __init__(self) -> None:
        self.texts: list[str] = []

    async def embed_documents(self, texts: Sequence[str]) -> Any:
        self.texts += texts
        return np.ones((len(texts), 2), np.float32)


async def test_the_embedder_is_asked_when_nobody_has_asked_for_a_while(
    remembering: Any, until: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding_choice, "UNASKED_SECONDS", asyncio.get_running_loop().time() / 2)
    monkeypatch.setattr(embedding_choice, "LONGEST_UNASKED_SECONDS", NEVER)
    memory, embedder = (await remembering.serve()).participant, NotingEmbedder()
    unasked, engrams = memory._unasked, memory._engrams
    engrams.use(embedder)
    await engrams.settled()
    await remembering.answered("q", "I like zebras")
    await remembering.frontend.hears(MemoryIngested)  # a turn's last step
    await remembering.recalled("Which animals are striped?")
    await until(lambda: unasked._begins or embedder.texts)
    assert embedder.texts == []
    unasked._quiet_seconds = 0.0
    unasked._look()  # as the loop does when it is time
    await engrams.settled()
    assert any("zebras" in text for text in embedder.texts)


async def test_a_model_that_only_answers_questions_is_not_waited_for_until_nobody_asks(
    model: EmbeddingModel, engrams: EngramService, monkeypatch: pytest.MonkeyPatch
) -> None:
    model.problem = ModelError("no embeddings here", kind="unsupported")
    leases = Leases()

    async def never(*_: Any) -> Any:
        await asyncio.Event().wait()

    monkeypatch.setattr(leases, "in_background", never)
    choice = EmbeddingChoice(model, NAME, leases, is_served=True, chats=True)
    await asyncio.wait_for(choice.run(engrams), SECONDS)
    assert (await engrams.status()).model == BUNDLED
