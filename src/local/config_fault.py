"""Says in one line for a person what pydantic found wrong with a setting."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from pydantic_core import ErrorDetails

_EXPECTED = {
    "bool_parsing": "true or false",
    "bool_type": "true or false",
    "dict_type": "settings, each as 'key: value'",
    "finite_number": "a finite number",
    "float_parsing": "a number",
    "float_type": "a number",
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "int_from_float": "a whole number",
    "int_parsing": "a whole number",
    "int_type": "a whole number",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "list_type": "a list",
    "literal_error": "{expected}",
    "model_type": "settings, each as 'key: value'",
    "path_type": "a path",
    "string_type": "text (in quotes if it looks like something else)",
    "tuple_type": "a list",
}


def describe(error: ErrorDetails, known_keys: Iterable[str]) -> str:
    """`key: expected this, found that`; the key is left out where the fault concerns all of them together."""
    label = ".".join(part for part in error["loc"] if isinstance(part, str))
    what = _what(error, known_keys)
    return f"{label}: {what}" if label else what


def suggestion(word: str, known: Iterable[str]) -> str:
    """`did you mean …?` for the known word that is nearest, else the list of them all."""
    words = sorted(known)
    near = difflib.get_close_matches(word, words, n=1)
    return f"did you mean {near[0]}?" if near else f"known are {', '.join(words)}"


def _what(error: ErrorDetails, known_keys: Iterable[str]) -> str:
    context = error.get("ctx", {})
    match error["type"]:
        case "extra_forbidden" if len(error["loc"]) == 1:
            return f"unknown key; {suggestion(str(error['loc'][0]), known_keys)}"
        case "extra_forbidden":
            return "unknown key"
        case "missing":
            return "missing, and there is no default"
        case "value_error":
            return str(context["error"])
        case kind if kind in _EXPECTED:
            return f"expected {_EXPECTED[kind].format(**context)}, found {_found(error['input'])}"
        case _:
            return f"{error['msg']}, found {_found(error['input'])}"


def _found(value: Any) -> str:
    match value:
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
        case list():
            return "a list"
        case dict():
            return "settings"
        case _:
            text = repr(value)
            return text if len(text) <= 60 else f"{text[:57]}…"
