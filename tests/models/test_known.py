"""What is known of a model: its size, and whether its server loses a conversation's prefix to a call in between."""

from __future__ import annotations

from typing import Any

import pytest

from local.core.errors import ModelError
from local.core.routing import Endpoint, MaxTools, ModelsConfig, Provider, Routing
from local.models.chat import ModelInfo
from local.models.leases import has_prefixes, is_unloaded, loses_prefix, may_restore
from local.models.ollama import billions
from local.models.openai import known
from local.models.settings import ModelSizes, Tier, tier_of
from tests.models.wires import ScriptedServer


class Server:
    def __init__(self, parameters: float | None) -> None:
        self.parameters, self.asked = parameters, 0
        self.problem: ModelError | None = None

    async def show(self, model: str) -> ModelInfo:
        self.asked += 1
        if self.problem is not None:
            raise self.problem
        return ModelInfo(model, frozenset(), parameters=self.parameters)


@pytest.mark.parametrize(
    ("parameters", "tier"),
    [
        (None, Tier.SMALL),
        (0.135, Tier.SMALL),
        (8.0, Tier.SMALL),
        (11.8, Tier.MID),
        (27.4, Tier.MID),
        (70.6, Tier.LARGE),
    ],
)
def test_the_tier_of_a_model_follows_its_size_and_an_unknown_one_is_small(parameters: float, tier: Tier) -> None:
    assert tier_of(parameters) is tier


async def test_the_server_is_asked_once_and_its_answer_counts_whatever_the_name_says() -> None:
    server: Any = Server(12.2)
    sizes = ModelSizes(server)
    assert sizes.tier("huge:405b") is Tier.SMALL and not sizes.is_known("huge:405b")
    assert [await sizes.ask("huge:405b") for _ in range(2)] == [Tier.MID] * 2
    assert server.asked == 1 and sizes.tier("huge:405b") is Tier.MID


async def test_a_server_that_does_not_answer_is_asked_again() -> None:
    server: Any = Server(80.0)
    server.problem = ModelError("it is down", kind="unreachable")
    sizes = ModelSizes(server)
    assert await sizes.ask("gemma") is Tier.SMALL and not sizes.is_known("gemma")
    server.problem = None
    assert await sizes.ask("gemma") is Tier.LARGE


async def test_what_the_owner_states_counts_and_nobody_is_asked() -> None:
    config = ModelsConfig.model_validate({"sizes": {"gpt-4o": 200, "cloud/odd": "mid", "cloud": "large"}})
    endpoints = {name: {"kind": "openai", "url": f"http://{name}.example/v1"} for name in ("home", "cloud")}
    routing = Routing.model_validate({"config": config, "endpoints": endpoints, "default": "home"})
    server: Any = Server(None)
    sizes = ModelSizes(server, routing.stated_size)
    names = ("gpt-4o", "cloud/odd", "cloud/other", "cloud/gpt-4o")
    assert [await sizes.ask(name) for name in names] == [Tier.LARGE, Tier.MID, Tier.LARGE, Tier.LARGE]
    assert server.asked == 0
    assert await sizes.ask("gemma4:12b") is Tier.SMALL and server.asked == 1


@pytest.mark.parametrize(
    ("count", "size", "told"),
    [
        (11_766_034_176, "11.8B", 11.766034176), (None, "4.0B", 4.0), (None, "137M", 0.137), (None, "1.2T", 1200.0),
        (0, "", None), (None, None, None), ("many", "huge", None),
    ],
)  # fmt: skip
def test_ollama_tells_a_number_or_a_size(count: object, size: str | None, told: float | None) -> None:
    assert billions(count, size) == pytest.approx(told)


@pytest.mark.parametrize(("meta", "told"), [({"n_params": 494_032_768}, 0.494032768), ({}, None), (None, None)])
def test_llama_server_tells_the_number_of_parameters(meta: Any, told: float | None) -> None:
    assert known("m", {"id": "m", "owned_by": "llamacpp", "meta": meta}, {}).info.parameters == told


def test_the_tiers_go_by_their_old_names_in_an_old_file_too() -> None:
    assert MaxTools.model_validate({"weak": 3, "mid": 9, "frontier": None}) == MaxTools(small=3, mid=9, large=None)


# The cache of its server

NOWHERE = "http://127.0.0.1:1/v1"


def routing(endpoint: Endpoint, args: tuple[str, ...] | None = None) -> Routing:
    own = {} if args is None else {"server": Provider(kind="llama_server", args=args)}
    return Routing(config=ModelsConfig(providers=own), endpoints={"server": endpoint}, default="server")


@pytest.mark.parametrize(
    ("args", "loses"),
    [
        ((), False),  # the cache is one of our own arguments
        (("--parallel", "1"), False),
        (("--parallel", "1", "--cache-ram", "0"), True),
        (("--parallel", "1", "--cache-ram", "1024"), False),
        (("--parallel", "1", "--cache-ram=-1"), False),
        (("-np", "2"), False),
        (("-cram", "512"), False),
        (("--cache-ram", "512", "--cache-ram", "0", "-np", "1"), True),
    ],
)
async def test_of_a_server_that_we_start_its_settings_decide(args: tuple[str, ...], loses: bool) -> None:
    assert await loses_prefix(routing(Endpoint(kind="openai", url=NOWHERE), args), "server") is loses


@pytest.mark.parametrize(
    ("told", "loses"), [({"total_slots": 1}, True), ({"total_slots": 4}, False), ({}, True), ([1], True)]
)
async def test_another_server_at_home_is_asked_for_its_slots(server: ScriptedServer, told: Any, loses: bool) -> None:
    server.answers("/props", told)
    endpoint = Endpoint(kind="openai", url=f"{server.url}/v1")
    assert await loses_prefix(routing(endpoint), "server") is loses


async def test_one_that_does_not_answer_is_not_known() -> None:
    assert await loses_prefix(routing(Endpoint(kind="openai", url=NOWHERE)), "server") is None


async def test_ollama_may_lose_it_and_servers_on_the_internet_and_the_stand_in_do_not_matter() -> None:
    ollama, cloud = Endpoint(kind="ollama", url="http://127.0.0.1:1"), "https://api.example.com/v1"
    assert has_prefixes(routing(ollama), "server") and await loses_prefix(routing(ollama), "server") is True
    assert not has_prefixes(routing(Endpoint(kind="openai", url=cloud, allow_cloud=True)), "server")
    assert not has_prefixes(Routing.to_one("stand_in", ollama), "stand_in")


def test_no_conversation_is_loaded_again_where_that_may_cost_money() -> None:
    own = Endpoint(kind="openai", url=NOWHERE, only_model="gemma")
    ollama, other = Endpoint(kind="ollama", url=NOWHERE), Endpoint(kind="openai", url=NOWHERE)
    assert [may_restore(routing(each), "server", "gemma") for each in (own, ollama, other)] == [True, True, False]
    assert not may_restore(routing(ollama), "server", "gpt-oss:120b-cloud")


@pytest.mark.parametrize(
    ("told", "gone"),
    [
        ({"models": [{"model": "gemma:latest"}]}, False),
        ({"models": [{"model": "judge"}]}, True),
        ({"models": []}, True),
        ({}, None),
    ],
)
async def test_ollama_tells_whether_a_model_is_still_in_memory(
    server: ScriptedServer, told: Any, gone: bool | None
) -> None:
    server.answers("/api/ps", told)
    assert await is_unloaded(routing(Endpoint(kind="ollama", url=server.url)), "server", "gemma") is gone
    assert await is_unloaded(routing(Endpoint(kind="openai", url=server.url)), "server", "gemma") is None
