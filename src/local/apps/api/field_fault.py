"""What is wrong with which field of a request, in our own words where pydantic's do not say what would be right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from local.apps.api.identifiers import ID_PATTERN, ID_WORDS

_VALUE_ERROR = "Value error, "  # which pydantic puts before what our own validators say
_EXPECTED = {
    "tuple_type": "expected a list",
    "list_type": "expected a list",
    "dict_type": "expected an object",
    "model_type": "expected an object",
    "model_attributes_type": "expected an object",
}


def field_fault(fault: Mapping[str, Any]) -> str:
    """The sentence for one of pydantic's errors, without the field's name."""
    if fault["type"] == "extra_forbidden":
        return "there is no such field; GET /openapi.json describes those there are"
    if fault["type"] == "string_pattern_mismatch" and fault["ctx"]["pattern"] == ID_PATTERN:
        return f"expected {ID_WORDS}"
    return _EXPECTED.get(fault["type"]) or str(fault["msg"]).removeprefix(_VALUE_ERROR)


def field_path(fault: Mapping[str, Any], fields: Any) -> str:
    """Where in the `fields` of a body one of pydantic's errors is, as `messages.0.content`; empty for all of the body.
    Left out is what pydantic names there besides: which of several types it has tried."""
    found, value = list[str](), fields
    for part in fault["loc"]:
        if (isinstance(value, list) and isinstance(part, int)) or (isinstance(value, dict) and part in value):
            value = value[part]
        elif not isinstance(value, dict) or fault["type"] != "missing" or part != fault["loc"][-1]:
            continue
        found.append(_visible(str(part)))
    return ".".join(found)


def _visible(part: str) -> str:
    """The name of a field, which is a stranger's where it is none of ours: what cannot be seen stands as its code."""
    return (part if part and part.isprintable() else ascii(part))[:100]
