"""What is wrong with a field of a request, in our own words where pydantic's do not say what would be right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from local.apps.api.identifiers import ID_PATTERN, ID_WORDS

_VALUE_ERROR = "Value error, "  # which pydantic puts before what our own validators say


def field_fault(fault: Mapping[str, Any]) -> str:
    """The sentence for one of pydantic's errors, without the field's name."""
    if fault["type"] == "extra_forbidden":
        return "there is no such field; GET /openapi.json describes those there are"
    if fault["type"] == "string_pattern_mismatch" and fault["ctx"]["pattern"] == ID_PATTERN:
        return f"expected {ID_WORDS}"
    return str(fault["msg"]).removeprefix(_VALUE_ERROR)
