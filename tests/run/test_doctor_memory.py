"""The doctor on the memory: its store, the bundled model, and the models that observers ask for."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from local.core.config import Settings
from local.core.environment import Environment
from local.core.routing import Chains, ModelsConfig
from local.memory.embeddings import MiniLmEmbedder
from local.memory.service import EngramService
from local.memory.store import FILE_NAME, EngramDraft
from local.run.doctor import (
    FindingStatus,
    Installation,
    ObserverModels,
    check_bundled_model,
    check_embeddings,
    check_memory,
    check_observers,
    check_store,
)
from local.run.doctor import examine_installation as examine

OK, WARN, FAIL = FindingStatus
TEA = EngramDraft("q1", "s1", "owner", "I like tea", "Noted.", 1.0)


class ObserverConfig(Settings):
    model: str | None = None
    embedding_model: str = "nomic-embed-text"


class Unready(MiniLmEmbedder):
    """Embeds for ever."""

    async def embed_documents(self, texts: object) -> None:  # type: ignore[override]  # it never returns
        await asyncio.Event().wait()


async def test_a_memory_says_how_much_it_holds_and_whether_all_of_it_is_embedded(tmp_path: Path) -> None:
    assert check_store(tmp_path).text == "the memory is empty"
    async with EngramService(tmp_path, Unready()) as service:
        await service.ingest(TEA)
        waiting = await asyncio.to_thread(check_store, tmp_path)  # beside the process that has it open
    async with EngramService(tmp_path, MiniLmEmbedder()) as service:
        await service.settled()
    done = check_store(tmp_path)
    assert (waiting.status, done.status) == (OK, OK)
    assert "exchanges: 1;" in waiting.text
    assert "still to be embedded" in waiting.text
    assert done.text.endswith("all of them are embedded")


async def test_a_damaged_memory_is_a_failure_that_names_the_file(tmp_path: Path) -> None:
    async with EngramService(tmp_path, MiniLmEmbedder()) as service:
        await service.ingest(TEA)
    path = tmp_path / FILE_NAME
    content = path.read_bytes()
    for damaged in (b"This is no database. " * 500, content[:8192] + b"\xff" * (len(content) - 8192)):
        path.write_bytes(damaged)
        found = check_store(tmp_path)
        assert (found.status, str(path) in found.text, "move" in found.fix) == (FAIL, True, True)


def test_a_memory_that_cannot_be_opened_is_not_called_damaged(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).mkdir()
    found = check_store(tmp_path)
    assert (found.status, "damaged" in found.text) == (FAIL, False)


async def test_the_bundled_model_is_there_and_works_or_words_alone_are_searched(tmp_path: Path) -> None:
    assert (await check_bundled_model()).status is OK
    missing = await check_bundled_model(tmp_path)
    assert (missing.status, "only by their words" in missing.text) == (WARN, True)


async def test_a_memory_that_does_not_take_part_is_not_examined(tmp_path: Path) -> None:
    assert [finding.text for finding in await check_memory(Installation(tmp_path))] == ["memory does not take part"]
    found = await check_memory(Installation(tmp_path, configs={"memory": Settings()}))
    assert [finding.name for finding in found] == ["memory", "bundled model"]


def test_an_observers_own_model_is_looked_for_unless_a_chain_names_another(tmp_path: Path) -> None:
    configs = {"generator": ObserverConfig(model="gemma4:12b"), "critic": ObserverConfig(model="prometheus"),
               "memory": ObserverConfig(embedding_model="mxbai-embed-large")}  # fmt: skip
    assert Installation(tmp_path, configs=configs).observers == ObserverModels(
        {"critic": "prometheus"}, "mxbai-embed-large"
    )
    chained = ModelsConfig(roles=Chains(critic=("ollama/selene",)))
    assert Installation(tmp_path, models=chained, configs=configs).observers.models == {}
    assert Installation(tmp_path).observers == ObserverModels()


def test_the_models_of_everybody_who_takes_part_are_looked_for(tmp_path: Path) -> None:
    (tmp_path / "system.yaml").write_text('more_participants: [{generator_b: {model: "gemma4:e2b"}}]')
    (tmp_path / "critic.yaml").write_text("model: atla/selene-mini")
    (tmp_path / "memory.yaml").write_text("model: tiny:1b")
    installation, _ = examine(tmp_path, tmp_path, Environment())
    models = {"memory": "tiny:1b", "critic": "atla/selene-mini", "generator_b": "gemma4:e2b"}
    assert installation.observers == ObserverModels(models)
    (missing,) = check_observers(ObserverModels({"generator_b": "gemma4:e2b"}), [])
    assert "--model-b" in missing.fix


@pytest.mark.parametrize(
    ("provider", "is_default", "expected"),
    [
        ("ollama", True, {"critic": "prometheus", "memory": "hf.co/tiny"}),
        ("ollama", False, {}),
        ("openai", False, {"generator_b": "gpt-x"}),
    ],
)
def test_each_server_is_asked_for_its_own_models(provider: str, is_default: bool, expected: dict[str, str]) -> None:
    observers = ObserverModels({"critic": "prometheus", "memory": "hf.co/tiny", "generator_b": "openai/gpt-x"})
    assert observers.at(provider, ModelsConfig(), is_default=is_default).models == expected


def test_an_observer_without_its_model_is_a_warning_with_the_command_that_gets_it() -> None:
    observers = ObserverModels({"critic": "prometheus", "memory": "tiny:1b"})
    missing, there = check_observers(observers, ["tiny:1b", "nomic-embed-text:latest"])
    assert (missing.name, missing.status, there.status) == ("critic", WARN, OK)
    assert "ollama pull prometheus" in missing.fix and "critic.yaml" in missing.fix
    assert check_embeddings(observers, ["nomic-embed-text:latest"]).text == "nomic-embed-text is pulled"
    assert "optional" in check_embeddings(observers, ["nomic-embed-text:v1.5"]).text
