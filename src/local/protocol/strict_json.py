"""JSON as the protocol allows it: one reading for every parser.

Refused: NaN and infinities, numbers that overflow a float, integers of thousands of digits, lone surrogates,
duplicate keys, nesting deeper than 32, anything after the value. The fast path is a C parser and a count: without white
space between a key and its colon every key shows as `":`, so as many of those as parsed keys means that no key
was dropped; only a text that differs (a string may hold `":` itself) is read again, slowly and exactly.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

from pydantic_core import from_json

from local.errors import MalformedFrame

MAX_DEPTH = 32
MAX_WHERE = 200  # characters of a field's path in an error; keys of a hostile text can be a megabyte long
_SPACED_COLON = re.compile(rb'"[ \t\r\n]+:')


def parse_object(data: bytes, what: str) -> dict[str, Any]:
    """Parse one JSON object; `what` names it in the `MalformedFrame` raised for anything else."""
    try:
        value = from_json(data, allow_inf_nan=False)
    except ValueError as error:
        raise MalformedFrame(f"{what}: not JSON: {error}") from None
    if type(value) is not dict:
        raise MalformedFrame(f"{what}: expected a JSON object, found {type(value).__name__}")
    keys = _count_keys(value, MAX_DEPTH, what)
    if has_other_keys(data, keys):
        _refuse_duplicates(data, what)
    return value


def has_other_keys(data: bytes, keys: int) -> bool:
    """Whether a text may hold other keys than the `keys` that a parser made of it: doubled ones, or ignored ones."""
    return data.count(b'":') != keys or _SPACED_COLON.search(data) is not None


def is_shallow(data: bytes) -> bool:
    """Whether a text has too few brackets to be nested too deep."""
    return data.count(b"{") + data.count(b"[") <= MAX_DEPTH


def _count_keys(value: Any, depth: int, what: str) -> int:
    if depth == 0:
        raise MalformedFrame(f"{what}: nested deeper than {MAX_DEPTH}")
    if type(value) is dict:
        count, children = len(value), value.values()
    else:
        count, children = 0, value
    for child in children:
        kind = type(child)
        if kind is dict or kind is list:
            count += _count_keys(child, depth - 1, what)
        elif kind is float and not math.isfinite(child):
            raise MalformedFrame(f"{what}: a number that no float can hold")
    return count


def _refuse_duplicates(data: bytes, what: str) -> None:
    def refuse(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        seen: dict[str, Any] = {}
        for name, value in pairs:
            if name in seen:
                raise MalformedFrame(f"{what}: key {name[:80]!r} stands twice")
            seen[name] = value
        return seen

    json.loads(data, object_pairs_hook=refuse)
