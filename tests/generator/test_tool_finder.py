"""Tools are found by the words of their names and descriptions, always in the same order."""

from __future__ import annotations

import json

import pytest

from local.bus.messages import ToolCallRecord, ToolSchema
from local.bus.vocabulary import CALL_TOOL, TOOL_SEARCH
from local.generator.builtin_tools import MOST_FOUND, found_by, matching, search_result
from local.generator.taint_policy import Provenance

TOOLS = [
    ToolSchema(tool=name, description=description, parameters={})
    for name, description in (
        ("send_mail", "Send a letter to somebody."),
        ("list_mails", "Tell which letters there are."),
        ("weather", "The forecast for a place."),
        ("calendar", "When somebody has time; letters go out from there."),
    )
]


def names(query: str) -> list[str]:
    return [schema.tool for schema in matching(query, TOOLS)]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("weather", ["weather"]),
        ("Mails!", ["list_mails", "send_mail"]),
        ("send letters by mail", ["send_mail", "list_mails", "calendar"]),
        ("the tool for it", []),
        ("", []),
    ],
)
def test_a_word_of_the_name_counts_more_than_one_of_the_description(query: str, found: list[str]) -> None:
    assert names(query) == found
    assert [schema.tool for schema in matching(query, reversed(TOOLS))] == found


def test_a_search_that_failed_has_found_nothing_and_one_finds_a_few_at_most() -> None:
    many = {f"mail_{letter}": ToolSchema(tool=f"mail_{letter}", description="", parameters={}) for letter in "abcdefgh"}
    done = ToolCallRecord(call_id="q:0:0", tool=TOOL_SEARCH, args={"query": "mail"}, result="…")
    assert found_by([done], many) == set(sorted(many)[:MOST_FOUND])
    assert found_by([done.model_copy(update={"result": None})], many) == set()


def test_what_is_told_are_schemas_or_that_there_is_none() -> None:
    first, second = search_result("weather", TOOLS).splitlines()
    assert CALL_TOOL in first
    assert json.loads(second) == {
        "name": "weather", "description": "The forecast for a place.", "args": {"type": "object", "properties": {}},
    }  # fmt: skip
    assert search_result("xyz", TOOLS) == "No tool has a word of that in its name or description."
    call = ToolCallRecord(call_id="q:0:0", tool=TOOL_SEARCH, args={"query": "mail"}, result="- send_mail: Send")
    assert Provenance.of(["Mail it"], (), [call]).private == ()
