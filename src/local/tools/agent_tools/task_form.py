"""The form that an answer is to have: a JSON Schema, and what of an answer does not follow it."""

from __future__ import annotations

import json
import re
from typing import Any

from local.errors import ToolError

MOST_CHARACTERS = 8000
MOST_SHOWN = 300
_NOT_ALLOWED = frozenset({"$ref", "$dynamicRef", "pattern", "patternProperties"})  # lead elsewhere, or take for ever
_FENCED = re.compile(r"\A\s*```\w*\n(.*?)\n?```\s*\Z", re.DOTALL)


def check_form(form: dict[str, Any]) -> None:
    """Raises `ToolError` (bad_arguments) for what is no schema that an answer can be held to."""
    from jsonschema import Draft202012Validator  # takes long, and is rarely needed
    from jsonschema.exceptions import SchemaError

    if len(json.dumps(form)) > MOST_CHARACTERS:
        raise ToolError(f"schema: more than {MOST_CHARACTERS} characters", kind="bad_arguments")
    if found := sorted(_keys(form) & _NOT_ALLOWED):
        raise ToolError(
            f"schema: {', '.join(found)}: not allowed here; say what is meant in place", kind="bad_arguments"
        )
    try:
        Draft202012Validator.check_schema(form)
    except SchemaError as error:
        raise ToolError(f"schema: {error.message[:MOST_SHOWN]}", kind="bad_arguments") from None


def value_of(answer: str) -> Any:
    """The JSON of an answer, which may stand in a fence. Raises `ValueError`."""
    fenced = _FENCED.match(answer)
    return json.loads(fenced[1] if fenced else answer)


def fault_of(answer: str, form: dict[str, Any]) -> str:
    """What is wrong with the form of an answer; empty if nothing is."""
    from jsonschema import Draft202012Validator

    try:
        value = value_of(answer)
    except ValueError as error:
        return f"it is not JSON: {error}"
    faults = sorted(Draft202012Validator(form).iter_errors(value), key=lambda error: error.json_path)
    return "; ".join(f"{each.json_path}: {each.message}" for each in faults[:3])[:MOST_SHOWN]


def _keys(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*map(_keys, value.values()))
    return set[str]().union(*map(_keys, value)) if isinstance(value, list) else set()
