"""Which model embeds: the server's if it has one, the bundled one else, and never another one than the vectors are of
because a server is late."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from agent_stage.scripted_model import ScriptedModel

from local.core.errors import ModelError
from local.memory import agent as embedding_choice
from local.memory.agent import EmbeddingChoice
from local.memory.service import EngramService
from local.memory.store import EngramDraft
from local.models.leases import Leases

SECONDS = 30.0
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


async def test_the_servers_model_is_taken_if_it_has_it(model: EmbeddingModel, engrams: EngramService) -> None:
    assert await chosen(model, engrams) == NAME


async def test_a_server_that_does_not_have_it_leaves_the_bundled_one(
    model: EmbeddingModel, engrams: EngramService
) -> None:
    model.problem = ModelError("pull it", kind="model_missing")
    assert await chosen(model, engrams) == "all-MiniLM-L6-v2"


async def test_a_server_whose_vectors_mean_nothing_is_not_asked(model: EmbeddingModel, engrams: EngramService) -> None:
    assert await chosen(model, engrams, is_served=False) == "all-MiniLM-L6-v2"


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


async def test_a_server_that_is_not_there_is_not_waited_for_if_it_has_embedded_nothing(
    model: EmbeddingModel, engrams: EngramService
) -> None:
    model.problem = ModelError("no Ollama answers", kind="unreachable")
    assert await chosen(model, engrams) == "all-MiniLM-L6-v2"
