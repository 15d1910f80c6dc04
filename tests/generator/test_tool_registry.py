"""Which tools there are, learned from what tools say of themselves, and what the model is told of them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from local.bus.messages import ChildStatus, ToolSchema
from local.generator.short_schemas import as_function, bare, first_sentence
from local.generator.tool_registry import MAX_SCHEMA_BYTES, ToolRegistry
from local.models.settings import Tier
from local.runtime.runner import SILENT_SECONDS


def schema(tool: str = "dice", description: str = "Rolls dice.") -> ToolSchema:
    return ToolSchema(tool=tool, description=description, parameters={"type": "object"})


async def test_a_tool_of_a_participant_that_was_taken_out_answers_nothing_also_once_it_has_left() -> None:
    registry = ToolRegistry()
    registry.announce(schema(), "mcp_dice", "i1", now=0)
    registry.outages.note_process("mcp_dice", "dice_child")
    registry.outages.supervised([])  # who has not heard of it yet
    assert registry.trouble("dice", now=1) is None
    registry.outages.supervised([ChildStatus(name="dice_child", kind="participant", state="ready")])
    assert registry.trouble("dice", now=1) is None
    registry.left("mcp_dice", "i1", now=1)
    hoping = asyncio.create_task(registry.given_up("dice"))
    assert registry.trouble("dice", now=1) is None  # it may be a restart
    registry.outages.supervised([])
    assert registry.trouble("dice", now=1) == "it was taken out of the settings"
    assert await asyncio.wait_for(hoping, 90) == "it was taken out of the settings"
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
    assert registry.note_process("other_dice", "i2", now=SILENT_SECONDS - 1)
    assert not registry.note_process("other_dice", "i2", now=SILENT_SECONDS + 1)
    assert registry.announce(schema(description="rival"), "other_dice", "i2", now=SILENT_SECONDS + 1) is None
    assert registry.offered(now=SILENT_SECONDS + 1)["dice"].description == "rival"


def test_a_tool_is_withdrawn_after_a_silence_and_back_with_the_next_sign_of_life() -> None:
    registry = ToolRegistry()
    registry.announce(schema(), "dice", "i1", now=0)
    assert registry.note_process("dice", "i1", now=5)
    assert "dice" in registry.offered(now=5 + SILENT_SECONDS - 0.1)
    assert registry.offered(now=5 + SILENT_SECONDS) == {}
    assert registry.note_process("dice", "i1", now=20)
    assert "dice" in registry.offered(now=20)


def test_a_tool_too_long_to_tell_the_model_of_is_refused_and_not_asked_again_and_again() -> None:
    registry = ToolRegistry()
    endless = schema().model_copy(update={"description": "x" * MAX_SCHEMA_BYTES})
    refusal = registry.announce(endless, "dice", "i1", now=0)
    assert refusal is not None and "dice" in refusal and "16384" in refusal
    assert registry.offered(now=0) == {}
    assert registry.note_process("dice", "i1", now=1)
    assert registry.announce(schema(), "dice", "i2", now=2) is None
    assert "dice" in registry.offered(now=2)


def test_a_replaced_process_that_spoke_last_does_not_take_the_tool_away_when_it_leaves() -> None:
    registry = ToolRegistry()
    for instance in ("frozen", "replacement", "frozen"):  # it thaws, answers what it was asked meanwhile, and ends
        registry.announce(schema(), "dice", instance, now=0)
    registry.left("dice", "frozen", now=1)
    assert "dice" in registry.offered(now=1)
    registry.left("dice", "replacement", now=1)
    assert registry.offered(now=1) == {}


# What the model is told of a tool: all of it if it is large, else a sentence and bare types.

FULL: dict[str, Any] = {
    "type": "object",
    "title": "Mail",
    "$defs": {
        "Kind": {"enum": ["plain", "rich"], "type": "string"},
        "Tree": {"properties": {"t": {"$ref": "#/$defs/Tree"}}},
    },
    "properties": {
        "to": {"type": "array", "items": {"type": "string", "format": "email"}, "description": "Whom. All."},
        "kind": {"$ref": "#/$defs/Kind", "default": "plain"},
        "at": {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "null"}], "default": None},
        "tree": {"$ref": "#/$defs/Tree"},
    },
    "required": ["to"],
    "additionalProperties": False,
}  # fmt: skip


def test_types_choices_and_what_is_required_are_left_of_a_schema() -> None:
    told = bare(FULL)
    tree = told["properties"].pop("tree")
    assert told == {
        "type": "object",
        "properties": {
            "to": {"type": "array", "items": {"type": "string"}},
            "kind": {"type": "string", "enum": ["plain", "rich"]},
            "at": {"type": "integer"},
        },
        "required": ["to"],
    }
    assert len(json.dumps(tree)) < 200  # a schema of itself ends somewhere
    assert bare(FULL, described=True)["properties"]["to"]["description"] == "Whom."


@pytest.mark.parametrize("odd", [{}, {"properties": None, "required": "x"}, {"$ref": "#"}, {"$ref": "#/none"}])
def test_what_is_no_schema_of_arguments_is_told_as_one_without_any(odd: dict[str, Any]) -> None:
    assert bare(odd) == {"type": "object", "properties": {}}


def test_a_large_model_is_told_everything_and_others_one_sentence_always_in_the_same_bytes() -> None:
    mail = ToolSchema(tool="mail", description="Send a\n mail, e.g. a letter! Not twice.", parameters=FULL)
    assert as_function(mail)["function"]["description"] == mail.description
    assert as_function(mail)["function"]["parameters"] == FULL
    for tier in (Tier.SMALL, Tier.MID):
        told = as_function(mail, tier)
        assert json.dumps(told) == json.dumps(as_function(mail.model_copy(deep=True), tier))
        assert len(json.dumps(told)) < len(json.dumps(as_function(mail)))


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("One. Two.", "One."),
        ("A mail, e.g. a letter! No.", "A mail, e.g. a letter!"),
        ("Costs 1.5 euros. Two", "Costs 1.5 euros."),
        ("None at all", "None at all"),
        ("", ""),
    ],
)
def test_the_first_sentence_ends_at_a_sign_before_a_space(text: str, first: str) -> None:
    assert first_sentence(text) == first
    assert len(first_sentence("x" * 1000)) <= 200
