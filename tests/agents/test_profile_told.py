"""A profile narrows what a query may use, whatever its model calls, and says which model answers it and how."""

from __future__ import annotations

from typing import Any

from local.bus.messages import OWN, AnswerOptions, AnswerProfile, ResponseGeneration
from local.models.chat import ToolCall
from local.tools.tool import Tool, ToolSettings


class LetterTool(Tool):
    """Send a letter."""

    name = "letter"

    async def run(self) -> str:
        return "Sent."


async def ask(stage: Any, options: AnswerOptions) -> ResponseGeneration:
    await stage.door.ask("Well?", "q1", options=options)
    response: ResponseGeneration = await stage.door.hears(ResponseGeneration, query_id="q1")
    return response


async def test_a_tool_beside_the_profile_is_neither_offered_nor_run(stage: Any, dice: Any) -> None:
    await stage.tool(dice)
    await stage.generator()
    stage.model.will_say(ToolCall("dice", {}))
    stage.model.will_say("I may not.")
    profile = AnswerProfile(name="web", tools=("web_search",), instructions="Search.")
    response = await ask(stage, AnswerOptions(profile=profile))
    assert stage.model.asked[0].tools == []
    assert [call.error and call.error.kind for call in response.tool_calls] == ["unknown_tool"]
    assert "tool.request.dice" not in stage.door.subjects("q1")
    assert "Your part in this conversation:\nSearch." in stage.model.asked[0].messages[0]["content"]
    assert response.profile == "web"


async def test_what_needs_leave_is_told_as_the_gatekeeper_s_mode_has_it_or_that_of_the_query(stage: Any) -> None:
    await stage.generator()
    await stage.tool(LetterTool(ToolSettings()))
    await stage.gatekeeper(mode="acceptEdits")
    for query_id, options, word in (
        ("q1", None, "need the user's approval"),
        ("q2", "dontAsk", "are not run in this"),
    ):
        stage.model.will_say("Well.")
        await stage.door.ask("Well?", query_id, options=options and AnswerOptions(mode=options))
        await stage.door.hears(ResponseGeneration, query_id=query_id)
        assert any(word in line for line in stage.model.asked[-1].background)


async def test_the_model_of_the_profile_answers(stage: Any, dice: Any) -> None:
    await stage.tool(dice)
    await stage.generator()
    stage.model.will_say("Well.")
    response = await ask(stage, AnswerOptions(profile=AnswerProfile(name="large", model="gemma4:31b")))
    assert (response.model, stage.model.asked[0].tools) == ("gemma4:31b", ["dice"])


async def test_the_second_respondent_keeps_its_own_model_and_is_narrowed_alike(stage: Any, dice: Any) -> None:
    await stage.tool(dice)
    await stage.generator()
    await stage.second_respondent()
    stage.model.will_say("Well.")
    stage.model_b.will_say("Well, too.")
    await ask(stage, AnswerOptions(profile=AnswerProfile(name="large", model="gemma4:31b", tools=())))
    other = await stage.door.hears(ResponseGeneration, query_id="q1", respondent_id="B")
    assert (other.model, stage.model_b.asked[0].tools) == ("other", [])


def test_a_profile_only_narrows() -> None:
    profile = AnswerProfile(name="x", tools=("a", "b"))
    for options in (AnswerOptions(profile=profile, allow=("b", "c")), AnswerOptions(profile=profile, deny=("a",))):
        assert [tool for tool in "abc" if options.offers(tool)] == ["b"]
    assert not AnswerOptions(profile=profile, format={}).offers("a")
    assert all(AnswerOptions(profile=profile).offers(tool) for tool in OWN)
    assert AnswerOptions(profile=AnswerProfile(name="all")).offers("anything")
