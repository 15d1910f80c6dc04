"""What the model is told before the conversation."""

from datetime import date
from typing import Literal

import pytest
from pydantic import ValidationError

from local.agents.answering.generator_config import GeneratorConfig
from local.agents.answering.prompt_builder import compose
from local.models.chat import Json
from local.protocol.messages import ToolSchema

DAY = date(2026, 7, 14)


def exchanges(number: int) -> list[Json]:
    return [{"role": role, "content": f"{role} {index}"} for index in range(number) for role in ("user", "assistant")]


def tool(name: str, effect: Literal["none", "read", "write"]) -> ToolSchema:
    return ToolSchema(tool=name, description="It does things.", parameters={}, effect=effect)


def test_the_system_message_names_today_and_comes_first() -> None:
    prelude = compose("You are LoCAL2.\n", DAY, exchanges(1))
    assert prelude[0] == {"role": "system", "content": "You are LoCAL2.\n\nToday is Tuesday, 2026-07-14."}
    assert list(prelude[1:]) == exchanges(1)


def test_a_tool_that_changes_something_is_warned_of_and_one_that_reads_is_not() -> None:
    (system,) = compose("Be brief.", DAY, (), tools=[tool("send_mail", "write"), tool("web_search", "read")])
    assert "About the tools:\n- send_mail changes something" in system["content"]
    assert "web_search" not in system["content"]


def test_facts_are_one_line_each_and_the_date_comes_last() -> None:
    (system,) = compose("Be brief.", DAY, (), facts=["Has a cat.", "Drinks\ntea."])
    assert system["content"].endswith("- Has a cat.\n- Drinks tea.\n\nToday is Tuesday, 2026-07-14.")


def test_the_variant_that_is_chosen_is_the_one_that_is_told() -> None:
    prompts = {"terse": "One word."}
    assert GeneratorConfig(system_prompt="Be brief.", prompts=prompts).instructions == "Be brief."
    assert GeneratorConfig(system_prompt="Be brief.", prompts=prompts, prompt="terse").instructions == "One word."


def test_a_variant_that_there_is_not_is_an_error_that_says_which_was_meant() -> None:
    with pytest.raises(ValidationError, match=r"'ters'; did you mean terse\?"):
        GeneratorConfig(prompts={"terse": "One word."}, prompt="ters")
