"""Which tools there are, learned from what tools say of themselves."""

import asyncio

from local.bus.messages import ChildStatus, ToolSchema
from local.generator.tool_registry import MAX_SCHEMA_BYTES, ToolRegistry, as_function
from local.runtime.runner import SILENT_SECONDS


def schema(tool: str = "dice", description: str = "Rolls dice.") -> ToolSchema:
    return ToolSchema(tool=tool, description=description, parameters={"type": "object"})


def test_an_announced_tool_is_offered_by_name() -> None:
    registry = ToolRegistry()
    assert registry.announce(schema("web"), "web", "i1", now=0) is None
    assert registry.announce(schema("dice"), "dice", "i2", now=0) is None
    assert list(registry.offered(now=1)) == ["dice", "web"]


def test_a_restarted_participant_takes_its_own_tool_over() -> None:
    registry = ToolRegistry()
    registry.announce(schema(description="old"), "dice", "first", now=0)
    assert registry.announce(schema(description="new"), "dice", "second", now=1) is None
    assert registry.offered(now=1)["dice"].description == "new"


async def test_a_tool_of_a_participant_that_was_taken_out_answers_nothing_also_once_it_has_left() -> None:
    registry = ToolRegistry()
    registry.announce(schema(), "mcp_dice", "i1", now=0)
    registry.outages.heard("mcp_dice", "dice_child")
    registry.outages.supervised([])  # who has not heard of it yet
    assert registry.trouble("dice", now=1) is None
    registry.outages.supervised([ChildStatus(name="dice_child", kind="participant", state="ready")])
    assert registry.trouble("dice", now=1) is None
    registry.left("mcp_dice", "i1", now=1)
    hoping = asyncio.create_task(registry.given_up("dice"))
    assert registry.trouble("dice", now=1) is None  # it may be a restart
    registry.outages.supervised([])
    assert registry.trouble("dice", now=1) == "it was taken out of the settings"
    assert await asyncio.wait_for(hoping, 5) == "it was taken out of the settings"
    registry.outages.supervised([ChildStatus(name="dice_child", kind="participant", state="starting")])
    assert registry.trouble("dice", now=1) is None


def test_a_second_tool_of_the_same_name_is_refused_in_words() -> None:
    registry = ToolRegistry()
    registry.announce(schema(description="first"), "dice", "i1", now=0)
    refusal = registry.announce(schema(description="rival"), "other_dice", "i2", now=1)
    assert refusal == "tool dice of other_dice is refused: dice offers one of that name"
    assert registry.offered(now=1)["dice"].description == "first"


def test_a_refused_tool_is_not_asked_again_while_its_rival_lives() -> None:
    registry = ToolRegistry()
    registry.announce(schema(), "dice", "i1", now=0)
    registry.announce(schema(), "other_dice", "i2", now=0)
    assert registry.heard("other_dice", "i2", now=SILENT_SECONDS - 1)
    assert not registry.heard("other_dice", "i2", now=SILENT_SECONDS + 1)
    assert registry.announce(schema(description="rival"), "other_dice", "i2", now=SILENT_SECONDS + 1) is None
    assert registry.offered(now=SILENT_SECONDS + 1)["dice"].description == "rival"


def test_a_tool_is_withdrawn_after_a_silence_and_back_with_the_next_sign_of_life() -> None:
    registry = ToolRegistry()
    registry.announce(schema(), "dice", "i1", now=0)
    assert registry.heard("dice", "i1", now=5)
    assert "dice" in registry.offered(now=5 + SILENT_SECONDS - 0.1)
    assert registry.offered(now=5 + SILENT_SECONDS) == {}
    assert registry.heard("dice", "i1", now=20)
    assert "dice" in registry.offered(now=20)


def test_whoever_has_announced_nothing_should_be_asked() -> None:
    assert not ToolRegistry().heard("dice", "i1", now=0)


def test_a_tool_too_long_to_tell_the_model_of_is_refused_and_not_asked_again_and_again() -> None:
    registry = ToolRegistry()
    endless = schema().model_copy(update={"description": "x" * MAX_SCHEMA_BYTES})
    refusal = registry.announce(endless, "dice", "i1", now=0)
    assert refusal is not None and "dice" in refusal and "16384" in refusal
    assert registry.offered(now=0) == {}
    assert registry.heard("dice", "i1", now=1)
    assert registry.announce(schema(), "dice", "i2", now=2) is None
    assert "dice" in registry.offered(now=2)


def test_goodbye_withdraws_the_tool() -> None:
    registry = ToolRegistry()
    registry.announce(schema(), "dice", "i1", now=0)
    registry.left("dice", "i1", now=0)
    assert registry.offered(now=0) == {}


def test_the_goodbye_of_an_old_instance_does_not_remove_its_successor() -> None:
    registry = ToolRegistry()
    registry.announce(schema(), "dice", "old", now=0)
    registry.announce(schema(), "dice", "new", now=1)
    registry.left("dice", "old", now=1)
    assert "dice" in registry.offered(now=1)


def test_a_replaced_process_that_spoke_last_does_not_take_the_tool_away_when_it_leaves() -> None:
    registry = ToolRegistry()
    for instance in ("frozen", "replacement", "frozen"):  # it thaws, answers what it was asked meanwhile, and ends
        registry.announce(schema(), "dice", instance, now=0)
    registry.left("dice", "frozen", now=1)
    assert "dice" in registry.offered(now=1)
    registry.left("dice", "replacement", now=1)
    assert registry.offered(now=1) == {}


def test_a_process_that_died_without_a_word_does_not_hold_the_tool_when_its_successor_leaves() -> None:
    registry = ToolRegistry()
    registry.announce(schema(), "dice", "killed", now=0)
    registry.announce(schema(), "dice", "successor", now=1)
    registry.heard("dice", "successor", now=SILENT_SECONDS)
    registry.left("dice", "successor", now=SILENT_SECONDS)
    assert registry.offered(now=SILENT_SECONDS) == {}


def test_the_model_is_told_of_a_tool_as_a_function() -> None:
    assert as_function(schema()) == {
        "type": "function",
        "function": {"name": "dice", "description": "Rolls dice.", "parameters": {"type": "object"}},
    }


def test_a_function_is_made_once_of_each_schema() -> None:
    registry, first, second = ToolRegistry(), schema(), schema(description="Rolls two dice.")
    assert registry.function(first) is registry.function(first)
    assert registry.function(second) == as_function(second)
    assert registry.function(second).size == as_function(second).size != as_function(first).size
