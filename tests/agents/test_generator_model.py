"""What the generator says of the model that answers."""

from __future__ import annotations

from typing import Any

from local.agents.generator import GeneratorAgent
from local.agents.generator_config import GeneratorConfig
from local.errors import ModelError
from local.protocol.messages import ParticipantStatus, ResponseGeneration
from local.services.conversation import ConversationService


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
