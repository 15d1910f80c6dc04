"""Says in one line for a person what pydantic found wrong with a setting, and which value of it is at fault."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic_core import ErrorDetails

from local.config_file import KeyPath

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
    "string_too_short": "text",
    "string_type": "text (in quotes if it looks like something else)",
    "tuple_type": "a list",
}


SHOWN = 60  # characters of a key or value


@dataclass(frozen=True, slots=True)
class Fault:
    """`place` is where the value stands that is at fault, or the settings that lack one; empty for all of them.
    `text` is `key: expected this, found that`, without the key for all of them."""

    place: KeyPath
    text: str


def faults(errors: Iterable[ErrorDetails], values: Mapping[str, Any], known_keys: Collection[str]) -> list[Fault]:
    """What is wrong with these values, each fault once: pydantic tells one for each type that a value might have had,
    and one for each entry that a list is short of."""
    together: dict[tuple[KeyPath, object], list[ErrorDetails]] = {}
    for error in errors:
        lacking = error["loc"][-1] if error["type"] == "missing" and isinstance(error["loc"][-1], str) else None
        together.setdefault((_place(values, error["loc"]), lacking), []).append(error)
    return [
        Fault(place, ": ".join(filter(None, (_label(place, lacking), _what(alike, known_keys)))))
        for (place, lacking), alike in together.items()
    ]


def suggestion(word: str, known: Iterable[str], ending: str = "") -> str:
    """`did you mean …?` for the known word that is nearest, else the list of them all; each is shown with `ending`."""
    words = sorted(known)
    near = difflib.get_close_matches(word, words, n=1)
    return f"did you mean {near[0]}{ending}?" if near else f"known are {', '.join(word + ending for word in words)}"


def _place(values: Any, location: KeyPath) -> KeyPath:
    """The part of a location that leads somewhere: pydantic names in it also types, and what is missing."""
    place: list[str | int] = []
    for part in location:
        if part in (values if isinstance(values, dict) else range(len(values)) if isinstance(values, list) else ()):
            place.append(part)
            values = values[part]
    return tuple(place)


def _label(place: KeyPath, lacking: object) -> str:
    return ".".join(_short(part) for part in (*place, lacking) if isinstance(part, str))


def _what(alike: Sequence[ErrorDetails], known_keys: Collection[str]) -> str:
    error, context = alike[0], alike[0].get("ctx", {})
    match error["type"]:
        case "extra_forbidden" if len(error["loc"]) == 1:
            return f"unknown key; {suggestion(str(error['loc'][0]), known_keys)}"
        case "extra_forbidden":
            return "unknown key"
        case "missing" if isinstance(error["loc"][-1], int):
            return f"expected {len(error['input']) + len(alike)}, found {len(error['input'])}"
        case "missing":
            return "missing, and there is no default"
        case "too_long":
            return f"expected at most {context['max_length']}, found {context['actual_length']}"
        case "too_short":
            return f"expected at least {context['min_length']}, found {context['actual_length']}"
        case "value_error":
            return str(context["error"])
        case kind if kind in _EXPECTED:
            return f"expected {_alternatives(alike)}, found {_found(error['input'])}"
        case _:
            return f"{error['msg']}, found {_found(error['input'])}"


def _alternatives(alike: Iterable[ErrorDetails]) -> str:
    wanted = [_EXPECTED[one["type"]].format(**one.get("ctx", {})) for one in alike if one["type"] in _EXPECTED]
    text = " or ".join(dict.fromkeys(wanted))
    return text.replace("' or '", "', '", text.count("' or '") - 1)


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
            return _short(repr(value))


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else f"{text[: SHOWN - 3]}…"
