"""The check of a call's arguments before anybody is asked."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from local.tools.arguments import argument_fault
from local.tools.tool import Arguments


async def write(path: str, content: str, mode: Literal["new", "any"] = "any", lines: int | None = None) -> str:
    return ""


OURS = Arguments(write).schema
GOOD = {"path": "a.txt", "content": "milk"}


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ({**GOOD, "error": "denied"}, "error: there is no such argument"),
        ({"path": "a.txt"}, "content: is missing"),
        ({**GOOD, "content": ["milk"]}, "content: expected string, got array"),
        ({**GOOD, "lines": "many"}, "lines: expected integer or null, got string"),
        ({**GOOD, "mode": "old"}, "mode: 'old' is not one of"),
    ],
)
def test_a_fault_is_named_with_the_arguments_that_there_are(args: dict[str, Any], says: str) -> None:
    fault = argument_fault("write", OURS, args)
    assert fault.startswith(f"write: bad arguments: {says}")
    assert fault.endswith("Expected: path, content, mode, lines.")


@pytest.mark.parametrize("more", [{}, {"lines": 3}, {"lines": "3"}, {"lines": None}, {"mode": "new"}])
def test_what_the_tool_takes_is_no_fault_even_if_it_has_to_convert_it(more: dict[str, Any]) -> None:
    assert argument_fault("write", OURS, {**GOOD, **more}) == ""
    Arguments(write).validate({**GOOD, **more})


def test_every_value_of_a_list_is_checked_and_a_fault_says_where() -> None:
    schema = {"properties": {"names": {"type": "array", "items": {"type": "string"}}}}
    assert "names.1: expected string, got integer" in argument_fault("t", schema, {"names": ["a", 1]})


def test_a_huge_value_makes_no_huge_fault() -> None:
    assert len(argument_fault("write", OURS, {**GOOD, "mode": "x" * 100_000})) < 500
    assert len(argument_fault("write", OURS, {f"{n}" * 50: n for n in range(1000)})) < 2000


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "objekt"},
        {"required": "path"},
        {"properties": {"path": {"type": "string", "pattern": "(a+)+$"}}},
        {"properties": {"path": {"pattern": "("}}},
        {"properties": {"path": {"$ref": "http://127.0.0.1:9/schema.json"}}},
        {"properties": {"path": {"$ref": "#/$defs/nowhere"}}},
        {"$ref": "#"},
        {"properties": {"path": {"$schema": "http://json-schema.org/draft-07/schema#", "pattern": "b"}}},
        {"properties": {"path": {"type": "array", "items": [{"type": "string"}]}}},
        {"additionalProperties": False, "patternProperties": {"^pa": {"type": "string"}}},
        {"oneOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}]},
    ],
)
def test_a_schema_of_an_mcp_server_that_cannot_be_used_lets_the_call_go_on(schema: dict[str, Any]) -> None:
    assert argument_fault("theirs", schema, {"path": "a" * 40 + "!"}) == ""


def test_a_schema_nested_without_end_lets_the_call_go_on() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(900):
        schema = {"anyOf": [schema]}
    assert argument_fault("theirs", schema, {"path": "a"}) == ""


def test_an_older_dialect_of_a_server_is_checked_too() -> None:
    schema = {
        "$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "required": ["q"],
        "properties": {"q": {"type": "string"}}, "additionalProperties": False,
    }  # fmt: skip
    assert argument_fault("theirs", schema, {"q": "x"}) == ""
    assert "q: is missing" in argument_fault("theirs", schema, {})
