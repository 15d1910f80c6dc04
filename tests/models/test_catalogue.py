"""The models that a query can choose, as real servers list them, and what becomes of a name that is none of theirs."""

from __future__ import annotations

from pathlib import Path

import pytest

from local.core.errors import NoSuchModel
from local.core.routing import Chains, Endpoint, ModelsConfig, Routing
from local.models.catalogue import CannotHold, ModelCatalogue, NotForChat, ServerSilent
from local.models.hub import ModelStock
from local.models.settings import DefaultModel

NOBODY = "http://127.0.0.1:1"


def catalogue(tmp_path: Path, url: str, other: str = "", **roles: tuple[str, ...]) -> ModelCatalogue:
    endpoints = {"ollama": Endpoint(kind="ollama", url=url)}
    if other:
        endpoints["box"] = Endpoint(kind="openai", url=f"{other}/v1")
    config = ModelsConfig(roles=Chains(**roles))
    routing = Routing(config=config, endpoints=endpoints, default="ollama")
    return ModelCatalogue(ModelStock(tmp_path, url, NOBODY), routing, config, DefaultModel(routing, (), "gemma4:12b"))


async def test_the_models_of_all_servers_are_listed_with_what_they_are_for(tmp_path: Path, stand_in: str) -> None:
    (tmp_path / "tiny.gguf").write_bytes(b"GGUF")
    models, note = await catalogue(tmp_path, stand_in, stand_in, critic=("ollama/gemma4:e2b",)).look()
    assert note == ""
    by_id = {model.id: model for model in models}
    default, small = by_id["gemma4:12b"], by_id["tinyllama:latest"]
    assert (default.default, default.size, default.chat, default.provider) == (True, 8_100_000_000, True, "ollama")
    assert (small.default, small.capabilities, small.loaded, small.chat) == (False, ("completion",), False, True)
    assert not by_id["nomic-embed-text:latest"].chat and "embeddings" in by_id["nomic-embed-text:latest"].unfit
    assert not by_id["gemma4:e2b"].chat and "judges" in by_id["gemma4:e2b"].unfit
    assert by_id["box/gemma4:12b"].chat and not by_id["box/gemma4:12b"].default
    assert not by_id["llama_server/tiny"].chat and "model use" in by_id["llama_server/tiny"].unfit


async def test_a_model_is_found_by_its_name(tmp_path: Path, stand_in: str) -> None:
    there = catalogue(tmp_path, stand_in, stand_in)
    for name, found in (
        ("tinyllama", "tinyllama:latest"),
        ("ollama/gemma4:e4b", "gemma4:e4b"),
        ("box/gemma4:e4b", "box/gemma4:e4b"),
        ("gemma4:12b", "gemma4:12b"),
    ):
        assert (await there.find(name)).id == found


async def test_a_name_that_is_none_is_refused_with_the_nearest(tmp_path: Path, stand_in: str) -> None:
    there = catalogue(tmp_path, stand_in)
    with pytest.raises(NoSuchModel, match=r"no model tinylama here; did you mean tinyllama:latest\? There are: gem"):
        await there.find("tinylama")
    with pytest.raises(NotForChat, match="nomic-embed-text:latest cannot be chosen for a query"):
        await there.find("nomic-embed-text")


async def test_a_server_that_does_not_answer_keeps_what_it_had(tmp_path: Path, stand_in: str) -> None:
    away = catalogue(tmp_path, NOBODY, stand_in)
    assert (await away.find("gemma4:12b")).default, "the default is waited for"
    assert (await away.find("box/tinyllama:latest")).chat
    with pytest.raises(ServerSilent, match="gemma9 cannot be told now"):
        await away.find("gemma9")
    there = catalogue(tmp_path, stand_in)
    await there.look()
    there.routing = there.routing.model_copy(update={"endpoints": {"ollama": Endpoint(kind="ollama", url=NOBODY)}})
    models, note = await there.look()
    assert "ollama could not be asked" in note and "tinyllama:latest" in {model.id for model in models}


async def test_a_model_of_ollama_is_loaded_and_unloaded_and_says_what_it_takes(tmp_path: Path, stand_in: str) -> None:
    there = catalogue(tmp_path, stand_in, stand_in)
    loaded = await there.hold("gemma4:e4b", is_wanted=True)
    assert (loaded.id, loaded.loaded, loaded.memory) == ("gemma4:e4b", True, 9_600_000_000)
    unloaded = await there.hold("gemma4:e4b", is_wanted=False)
    assert (unloaded.loaded, unloaded.memory) == (False, None)
    with pytest.raises(CannotHold, match=r"box/gemma4:12b is loaded and unloaded by its server alone"):
        await there.hold("box/gemma4:12b", is_wanted=True)
    with pytest.raises(NoSuchModel):
        await there.hold("gemma5", is_wanted=True)
