"""Which tools a conversation's model is offered: by its size and the installation, and the same in every turn."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agent_stage.pen import PenTool

import local.generator.respondent as respondent_module
from local.bus.messages import AnswerOptions, AnswerProfile, ResponseGeneration, ToolSchema
from local.bus.vocabulary import CALL_TOOL, CLARIFICATION, PROPOSE_PLAN, TODO_LIST, TOOL_SEARCH
from local.core.config import layers_for, load_system
from local.core.environment import environment
from local.generator.builtin_tools import SCHEMAS
from local.generator.short_schemas import OURS, TABLE
from local.generator.tool_list import MOST, OfferRules, ToolList, ToolRoom, TurnOffer, first_list, kind_of
from local.generator.tool_registry import with_own
from local.models.chat import ToolCall
from local.models.settings import Tier
from local.run.participant import find_class
from local.run.prompt_commands import _tools_of
from local.skills.messages import READ_SKILL

ROOM = ToolRoom(1_000_000, lambda function: 1)


def installation() -> dict[str, ToolSchema]:
    """The tools of a default installation, by name."""
    return {name: ToolSchema(tool=name, description=f"Do {name}.", parameters={}) for name in sorted(OURS - {*SCHEMAS})}


@pytest.mark.thorough  # it imports every tool
def test_the_table_knows_every_tool_of_ours() -> None:
    system = load_system(layers_for(None), {}, environment())
    kinds = (tool for entry in system.participants for tool in _tools_of(find_class(entry.target, system.python_path)))
    assert {*(kind.name for kind in kinds), *SCHEMAS} - {TOOL_SEARCH, CALL_TOOL} == OURS


def tool(name: str) -> ToolSchema:
    return ToolSchema(tool=name, description=f"Do {name}. At once.", parameters={"type": "object"}, safety="L0")


def names(tools: dict[str, ToolSchema], tier: Tier, rules: OfferRules | None = None, **more: Any) -> list[str]:
    own = with_own(tools, None, asks_user=more.pop("asks_user", True))
    return list(first_list(own, tier, rules or OfferRules(), more.pop("room", ROOM), **more).names)


@pytest.mark.parametrize("tier", Tier)
def test_what_the_owner_adds_to_the_system_is_offered_and_an_mcp_server_s_many_tools_are_found(tier: Tier) -> None:
    few = {**installation(), "dice": tool("dice"), "sums__add": tool("sums__add")}
    assert {"dice", "sums__add"} <= set(names(few, tier))
    many = {**few, **{f"big__{number:03}": tool(f"big__{number:03}") for number in range(200)}}
    offered = names(many, tier)
    assert "dice" in offered and offered[-2:] == [TOOL_SEARCH, CALL_TOOL]
    assert len(offered) == MOST[tier] + 2


def test_the_owner_may_add_and_remove() -> None:
    rules = OfferRules(add=("git_status", "nothing_like_it"), remove=frozenset({"web_search", TODO_LIST}))
    offered = names(installation(), Tier.SMALL, rules)
    assert "git_status" in offered and "web_search" not in offered and "nothing_like_it" not in offered
    assert TODO_LIST not in names(installation(), Tier.MID, rules)


def test_a_profile_that_names_its_tools_has_them_whatever_the_size_of_the_model() -> None:
    profile = AnswerProfile(name="coder", tools=("git_status", "git_diff"))
    options = AnswerOptions(profile=profile, deny=(TOOL_SEARCH,))
    tools = {name: schema for name, schema in installation().items() if options.offers(name)}
    offer = TurnOffer(OfferRules(), Tier.SMALL)
    assert offer.settle(with_own(tools, options, asks_user=True), "?", options, ROOM).names == (
        "git_status",
        "git_diff",
    )
    other = AnswerOptions(profile=AnswerProfile(name="coder", tools=("git_status",)))
    kinds = {kind_of(tier, asked) for tier in Tier for asked in (None, options, other)}
    assert len(kinds) == 9 and kind_of(Tier.MID, AnswerOptions(deny=("x",))) == kind_of(Tier.MID, None)


def test_a_stored_list_stays_and_a_tool_that_joins_is_offered_once_it_is_named() -> None:
    first = TurnOffer(OfferRules(), Tier.SMALL, kind="small", is_final=True)
    listed = first.settle(installation(), "Hello", None, ROOM)
    assert first.to_keep is not None
    later = {**installation(), "dice": tool("dice")}
    del later["web_search"]
    second = TurnOffer(OfferRules(), Tier.SMALL, first.to_keep.body, kind="small", is_final=True)
    assert second.settle(later, "Roll the dices", None, ROOM) == listed and second.to_keep is None
    third = TurnOffer(OfferRules(), Tier.SMALL, first.to_keep.body, kind="small", is_final=True)
    assert third.settle(later, "Use dice!", None, ROOM).functions[:-1] == listed.functions
    assert third.names[-1] == "dice" and third.to_keep is not None
    assert ToolList.decode(third.to_keep.body).names == third.names


NEEDED = {
    "search_memory": "What did I tell you about my sister?",
    "web_search": "What is the weather in Oslo tomorrow?",
    "web_fetch": "Summarise https://example.org/article.",
    "read_file": "Read the file notes.txt.",
    "list_files": "Which files are there?",
    "write_file": "Save this list as shopping.txt.",
}


@pytest.mark.parametrize("tier", Tier)
def test_the_tools_that_everyday_questions_need_are_offered_whatever_the_question_and_the_size(tier: Tier) -> None:
    for is_present in (False, True):
        tools = with_own(installation(), None, asks_user=is_present)
        for wanted in ((), (READ_SKILL,)):
            offers = (TurnOffer(OfferRules(), tier, wanted=wanted) for _ in NEEDED)
            [listed] = {
                offer.settle(tools, NEEDED[name], None, ROOM).names for offer, name in zip(offers, NEEDED, strict=True)
            }
            assert NEEDED.keys() <= set(listed)
    few = names(installation(), tier, room=ToolRoom(3, lambda function: 1))
    assert few == [*TABLE[tier][:3], *(() if tier is Tier.SMALL else (TOOL_SEARCH, CALL_TOOL))]


async def ask(stage: Any, query_id: str, question: str, session: str = "s", **options: Any) -> ResponseGeneration:
    await stage.frontend.ask(question, query_id, session=session, options=AnswerOptions(**options) if options else None)
    response: ResponseGeneration = await stage.frontend.hears(ResponseGeneration, query_id=query_id)
    return response


async def test_later_turns_and_processes_of_a_session_have_its_list_and_other_sessions_have_their_own(
    stage: Any, dice: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(respondent_module, "YOUNG_SECONDS", 0.0)
    first = await stage.generator()
    await stage.tool(dice)
    stage.model.will_say("One.")
    await ask(stage, "q1", "Hello")
    await first.stop()
    await stage.generator()
    served = await stage.tool(PenTool(tmp_path))
    await stage.frontend.hears(ToolSchema, 3)
    for query_id, question, session in (("q2", "And?", "s"), ("q3", "Hello", "t"), ("q4", "Take the pen", "s")):
        stage.model.will_say("Well.")
        await ask(stage, query_id, question, session)
    await served.stop()
    stage.model.will_say(ToolCall("pen", {"path": "a", "content": "b"}))
    stage.model.will_say("No.")
    response = await ask(stage, "q5", "Write", "s")
    one, two = ["dice"], ["dice", "pen"]
    asked = [[name for name in each.tools if name in two] for each in stage.model.asked]
    assert asked == [one, one, two, two, two, two]
    assert stage.model.asked[1].tools == stage.model.asked[0].tools
    [record] = response.tool_calls
    assert record.error is not None and record.error.kind == "unavailable"


async def test_a_tool_of_the_owner_s_is_neither_shown_to_another_user_s_model_nor_called_by_it(
    stage: Any, dice: Any, tmp_path: Path
) -> None:
    dice.users = ()
    await stage.generator()
    await stage.tool(dice)
    pen = PenTool(tmp_path)
    pen.users = ("user",)
    await stage.tool(pen)
    stage.model.will_say(ToolCall("dice", {"sides": 6}))
    stage.model.will_say(ToolCall(TOOL_SEARCH, {"query": "dice"}))
    stage.model.will_say("No.")
    response = await ask(stage, "q1", "Use dice!")
    tools = stage.model.asked[0].tools
    assert "dice" not in tools and "pen" in tools
    refused, found = response.tool_calls
    assert refused.error is not None and refused.error.kind == "unknown_tool"
    assert "dice" not in (found.result or "")


async def test_a_call_of_a_tool_that_is_not_on_the_list_is_answered_with_its_schema_and_then_made(
    stage: Any, dice: Any
) -> None:
    await stage.generator(offer={"remove": ["dice"]})
    await stage.tool(dice)
    for call in (
        ToolCall("dice", {"sides": 6}),
        ToolCall("dice", {"sides": 6}),
        ToolCall(CALL_TOOL, {"name": "dice", "args": {"sides": 4}}),
        ToolCall(CALL_TOOL, {"name": CALL_TOOL, "args": {}}),
    ):
        stage.model.will_say(call)
    stage.model.will_say("Done.")
    response = await ask(stage, "q1", "Roll them")
    refused, made, by_name, faulty = response.tool_calls
    assert refused.error is not None and refused.error.kind == "not_offered"
    assert json.loads(refused.error.message.split(": ", 1)[1])["args"]["properties"] == {
        "sides": {"type": "integer", "description": "How many sides it has"}
    }
    assert made.result == "a 5 of 6"
    assert (by_name.tool, by_name.args, by_name.result) == ("dice", {"sides": 4}, "a 3 of 4")
    assert faulty.error is not None and faulty.error.kind == "bad_arguments"
    assert len({tuple(asked.tools) for asked in stage.model.asked}) == 1


async def test_a_call_by_way_of_another_tool_asks_for_approval_as_a_direct_one_does(stage: Any, tmp_path: Path) -> None:
    await stage.generator(offer={"remove": ["pen"]})
    await stage.gatekeeper(mode="dontAsk")
    await stage.tool(PenTool(tmp_path))
    stage.model.will_say(ToolCall(TOOL_SEARCH, {"query": "write a file"}))
    stage.model.will_say(ToolCall(CALL_TOOL, {"name": "pen", "args": {"path": "a", "content": "b"}}))
    stage.model.will_say("No.")
    response = await ask(stage, "q1", "Put it down")
    found, call = response.tool_calls
    assert found.result is not None and '"name": "pen"' in found.result
    assert call.tool == "pen" and call.error is not None and call.error.kind == "denied"
    assert not (tmp_path / "a").exists()
    assert not {CLARIFICATION, PROPOSE_PLAN} & set(stage.model.asked[0].tools)
