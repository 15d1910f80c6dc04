"""The types of the page are those of the code."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "make_types.py"


@pytest.fixture(scope="module")
def make_types() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_types", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_file_is_what_the_code_says(make_types: ModuleType) -> None:
    assert make_types.FILE.read_text("utf-8") == make_types.types(), "run python3 scripts/make_types.py"


def test_everything_that_is_named_is_there_once(make_types: ModuleType) -> None:
    text = make_types.types()
    declared = re.findall(r"^export (?:interface|type) (\w+)", text, re.M)
    assert len(declared) == len(set(declared)) > 60
    used = set(re.findall(r"\b([A-Z]\w+)(?=\[\]|;| [&|])", text)) - {"Record"}
    assert used <= set(declared)


@pytest.mark.parametrize(
    ("schema", "written"),
    [
        ({"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}}, "(string | null)[]"),
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "Record<string, number>"),
        ({"type": "object", "additionalProperties": True}, "Record<string, unknown>"),
        ({"enum": ["a", 1, None]}, '"a" | 1 | null'),
        ({"const": -1}, "-1"),
        ({"$ref": "#/$defs/ErrorInfo"}, "ErrorInfo"),
        ({"anyOf": [{"type": "integer"}, {"type": "number"}]}, "number"),
        ({}, "unknown"),
    ],
)
def test_a_schema_is_the_type_that_says_the_same(make_types: ModuleType, schema: Any, written: str) -> None:
    assert make_types.type_of(schema) == written


def test_what_is_sent_has_every_field_and_what_is_taken_may_leave_some_out(make_types: ModuleType) -> None:
    text = make_types.types()
    assert "  degraded: string[];\n" in text and "  attempt: number;\n" in text
    assert "export interface QueryBody {\n  query: string;\n  attachments?: string[];\n" in text
