"""What is wrong with a JSON Schema of a client's, of which model servers say no more than that they cannot read it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from typing import Any, NamedTuple

TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
_A_SCHEMA, _SCHEMAS = "expected a JSON Schema, as an object", "expected JSON Schemas by name, as an object"


class SchemaFault(NamedTuple):
    """`place` is where the value at fault stands, as `properties.city.type`; `text` what would be right there."""

    place: str
    text: str


def schema_fault(schema: Any, place: str) -> SchemaFault | None:
    """The first fault of a schema that stands at `place`; None for one that can be read."""
    return next(_faults(schema, place), None)


def _faults(schema: Any, place: str) -> Iterator[SchemaFault]:
    if isinstance(schema, bool):
        return
    if not isinstance(schema, dict):
        yield SchemaFault(place, _A_SCHEMA)
        return
    for name, (is_right, expected) in _PLAIN.items():
        if name in schema and not is_right(schema[name]):
            yield SchemaFault(f"{place}.{name}", expected)
    for name in filter(_NESTED.__contains__, schema):
        yield from _within(name, schema[name], f"{place}.{name}")


def _within(name: str, value: Any, place: str) -> Iterator[SchemaFault]:
    """The faults of what a keyword holds: a schema, a list of some, or some by name."""
    if name in _BY_NAME and not isinstance(value, dict):
        yield SchemaFault(place, _SCHEMAS)
    elif name in _BY_NAME:
        yield from chain.from_iterable(_faults(each, f"{place}.{key[:80]}") for key, each in value.items())
    elif name in _LISTS and (not isinstance(value, list) or not value):
        yield SchemaFault(place, "expected a list of JSON Schemas, with one at least")
    elif isinstance(value, list) and name in (*_LISTS, "items"):
        yield from chain.from_iterable(_faults(each, f"{place}.{at}") for at, each in enumerate(value))
    else:
        yield from _faults(value, place)


def _is_type(value: Any) -> bool:
    return (
        value in TYPES if isinstance(value, str) else _is_list_of_text(value) and bool(value) and {*value} <= {*TYPES}
    )


def _is_list_of_text(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_BY_NAME = frozenset({"properties", "patternProperties", "$defs", "definitions"})
_LISTS = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_NESTED = _BY_NAME | _LISTS | {"items", "additionalProperties", "not", "contains", "propertyNames"}
_TEXT, _NUMBER = (_is_text, "expected text"), (_is_number, "expected a number")
_PLAIN: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "type": (_is_type, f"expected {', '.join(TYPES)}, or a list of these"),
    "required": (_is_list_of_text, "expected a list of names"),
    "enum": (lambda value: isinstance(value, list) and bool(value), "expected a list of values, with one at least"),
    **dict.fromkeys(("description", "title", "format", "pattern", "$ref"), _TEXT),
    **dict.fromkeys(("minimum", "maximum", "multipleOf"), _NUMBER),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"), _NUMBER),
}
