"""Arguments against the JSON Schemas that tools use."""

from __future__ import annotations

from typing import Any

import pytest

from local.models.client import fits

POINT = {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"], "additionalProperties": False}
NESTED = {"$defs": {"Point": POINT}, "type": "object", "properties": {"at": {"$ref": "#/$defs/Point"}}}

FITTING: list[tuple[Any, dict[str, Any]]] = [
    ({}, {}),
    ({"anything": 1}, {"type": "object"}),
    ({"x": 1}, POINT),
    ({"at": {"x": 1.5}}, NESTED),
    (["a"], {"type": "array", "items": {"type": "string"}}),
    (None, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
    ("a", {"type": ["string", "null"]}),
    ("a", {"enum": ["a", "b"]}),
    (True, {"type": "boolean"}),
    (1, {"allOf": [{"type": "integer"}, {"const": 1}]}),
]
MISFITS: list[tuple[Any, dict[str, Any]]] = [
    ([], {"type": "object"}),
    ({}, POINT),
    ({"x": 1, "y": 2}, POINT),
    ({"x": "1"}, POINT),
    ({"at": {"x": "1"}}, NESTED),
    ([1], {"type": "array", "items": {"type": "string"}}),
    (1, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
    ("c", {"enum": ["a", "b"]}),
    (True, {"type": "integer"}),
    (True, {"type": "number"}),
    (1.5, {"type": "integer"}),
    (1, {"type": "boolean"}),
    (2, {"allOf": [{"type": "integer"}, {"const": 1}]}),
]


@pytest.mark.parametrize(("value", "schema"), FITTING)
def test_what_the_schema_asks_for_fits(value: Any, schema: dict[str, Any]) -> None:
    assert fits(value, schema)


@pytest.mark.parametrize(("value", "schema"), MISFITS)
def test_what_the_schema_does_not_allow_does_not_fit(value: Any, schema: dict[str, Any]) -> None:
    assert not fits(value, schema)
