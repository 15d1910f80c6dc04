"""What a model is told of a tool: all of it if it is large, else a sentence and bare types."""

from __future__ import annotations

import json
from typing import Any

import pytest

from local.bus.messages import ToolSchema
from local.generator.short_schemas import as_function, bare, first_sentence
from local.models.settings import Tier

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
