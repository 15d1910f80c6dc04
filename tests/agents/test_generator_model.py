"""What the generator says of the model that answers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from local.bus.messages import GenerationWaiting, ParticipantStatus, ResponseGeneration
from local.core.errors import ConfigError, ModelError
from local.generator import respondent as warm_up
from local.generator.agent import GeneratorAgent
from local.generator.config import GeneratorConfig
from local.generator.history import ConversationService
from local.models.chat import AwayDelta
from local.models.settings import Endpoint, ModelsConfig, Routing
from local.runtime.participant import Resources


async def test_a_model_that_is_not_there_is_told_before_anybody_asks(stage: Any) -> None:
    stage.model.problem = ModelError("model gemma is not pulled: ollama pull gemma", kind="model_missing")
    await stage.generator()
    told = {"model": "gemma", "problem": "model gemma is not pulled: ollama pull gemma"}
    await stage.door.hears(ParticipantStatus, name="generator", details=told)


async def test_answers_of_the_stand_in_are_signed_by_it_and_by_no_models_name(stage: Any) -> None:
    agent = GeneratorAgent(
        GeneratorConfig(model="gemma"), stage.model, ConversationService(stage.database), answers_as="stand-in"
    )
    await stage.serve(agent)
    stage.model.will_say("Paris.")
    await stage.door.ask("Where?", "q1")
    assert (await stage.door.hears(ResponseGeneration)).model == "stand-in"
    assert agent.details()["model"] == "stand-in"


async def test_whoever_waits_for_a_model_that_is_away_is_told_and_may_cancel(stage: Any) -> None:
    agent = (await stage.generator()).participant
    stage.model.will_say(AwayDelta("it is away"), asyncio.Event())
    await stage.door.ask("Where?", "q1")
    assert (await stage.door.hears(GenerationWaiting)).reason == "it is away"
    assert agent.details()["problem"] == "it is away"
    await stage.door.cancel("q1")
    response = await stage.door.hears(ResponseGeneration)
    assert (response.status, response.degraded) == ("cancelled", ("it is away",))


async def test_a_model_that_is_back_is_no_problem_any_more(stage: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warm_up, "LOOK_AGAIN_SECONDS", 0.05)
    stage.model.problem = ModelError("the server is away", kind="unreachable")
    await stage.generator()
    await stage.door.hears(
        ParticipantStatus, name="generator", details={"model": "gemma", "problem": "the server is away"}
    )
    stage.model.problem = None
    await stage.door.hears(ParticipantStatus, name="generator", details={"model": "gemma", "load": "loaded"})


HOME = Endpoint(kind="ollama", url="http://127.0.0.1:1")


def test_it_goes_by_the_name_of_the_model_that_is_asked_first(tmp_path: Path) -> None:
    def model(routing: Routing) -> str:
        return GeneratorAgent.build(GeneratorConfig(model="gemma"), Resources(tmp_path, routing)).details()["model"]

    assert model(Routing.to_one("ollama", HOME)) == "gemma"
    chain = ModelsConfig.model_validate({"roles": {"chat": ["openai/large", "ollama/gemma"]}})
    endpoints = {"ollama": HOME, "openai": Endpoint(kind="openai", url="http://box/v1")}
    assert model(Routing(config=chain, endpoints=endpoints, default="ollama")) == "openai/large"
    served = Endpoint(kind="openai", url="http://127.0.0.1:2/v1", only_model="tiny")
    assert model(Routing.to_one("llama_server", served)) == "tiny"


def test_without_a_model_server_it_cannot_be_built(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="needs a model server"):
        GeneratorAgent.build(GeneratorConfig(), Resources(tmp_path))


async def test_the_model_is_loaded_before_anybody_asks_and_that_is_told(stage: Any) -> None:
    await stage.generator(num_ctx=2048, temperature=0.5)
    await stage.door.hears(ParticipantStatus, name="generator", details={"model": "gemma", "load": "loaded"})
    assert stage.model.loaded == ("gemma", {"num_ctx": 2048, "temperature": 0.5})
