"""What a tool's `run` takes, and the check of a call's arguments before anybody is asked for approval."""

from collections.abc import Callable
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from local.tools.arguments import argument_fault
from local.tools.tool import Arguments


class Place(BaseModel):
    """Where it is."""

    city: str
    title: Annotated[str, Field(description="What they call it")] = "town"


async def simple(
    city: Annotated[str, "A city"],
    days: int = 3,
    unit: Literal["C", "F"] = "C",
    tags: Annotated[list[str], Field(max_length=2, description="Key words")] = [],  # noqa: B006 - a newcomer writes it
) -> str:
    return ""


async def nested(place: Place, near: Place | None = None) -> str:
    return ""


async def awkward(copy: str, json: int = 1, _hidden: bool = False, *, schema: str = "s") -> str:
    return ""


def test_the_schema_comes_from_the_signature() -> None:
    assert Arguments(simple).schema == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "A city"},
            "days": {"type": "integer", "default": 3},
            "unit": {"type": "string", "enum": ["C", "F"], "default": "C"},
            "tags": {
                "type": "array",
                "items": {"type": "string"},
                "maxItems": 2,
                "description": "Key words",
                "default": [],
            },
        },
        "required": ["city"],
        "additionalProperties": False,
    }


def test_arguments_arrive_typed_and_with_their_defaults() -> None:
    assert Arguments(simple).validate({"city": "Oslo", "days": "5"}) == {
        "city": "Oslo",
        "days": 5,
        "unit": "C",
        "tags": [],
    }
    place = Arguments(nested).validate({"place": {"city": "Oslo"}})["place"]
    assert place == Place(city="Oslo")


def test_names_that_pydantic_uses_itself_are_names_like_any_other() -> None:
    arguments = Arguments(awkward)
    assert list(arguments.schema["properties"]) == ["copy", "json", "_hidden", "schema"]
    assert arguments.validate({"copy": "x", "_hidden": True}) == {
        "copy": "x",
        "json": 1,
        "_hidden": True,
        "schema": "s",
    }


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "city: Field required"),
        ({"city": 5}, "city: Input should be a valid string"),
        ({"city": "Oslo", "days": "many"}, "days: Input should be a valid integer"),
        ({"city": "Oslo", "unit": "K"}, "unit: Input should be 'C' or 'F'"),
        ({"city": "Oslo", "tags": ["a", 2]}, "tags.1: Input should be a valid string"),
        ({"city": "Oslo", "town": "Oslo"}, "town: Extra inputs are not permitted"),
        ({"city": "Oslo", "argument_city": "Oslo"}, "argument_city: Extra inputs are not permitted"),
    ],
)
def test_what_is_wrong_is_named_with_what_was_expected(arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError) as caught:
        Arguments(simple).validate(arguments)
    assert problem in str(caught.value)
    assert str(caught.value).endswith("Expected: city, days, unit, tags.")
    assert "\n" not in str(caught.value)


async def untyped(city) -> str:  # type: ignore[no-untyped-def]
    return ""


async def variadic(**cities: str) -> str:
    return ""


@pytest.mark.parametrize("run", [untyped, variadic])
def test_a_parameter_without_name_or_type_is_a_mistake_of_the_tool(run: Callable[..., Any]) -> None:
    with pytest.raises(TypeError, match="expected a name and a type"):
        Arguments(run)


# The check before anybody is asked for approval.


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
