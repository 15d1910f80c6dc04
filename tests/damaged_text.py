"""Texts and JSON objects that were good until somebody has spoilt them: for tests of what is said of them."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from typing import Any

_VALUES = (
    "[", "{", "&a [*a]", "*nobody", "!!python/object:os.system x", "| ", ">", "'", '"', "\x00", "null", "~", "1e999",
    "-1", "0", ".nan", "true", "[1, 2]", "{a: 1}", "[" * 40 + "]" * 40, "- -", "? x", "2026-99-99", "!!binary x",
    '"\\ud800"', '"\\x00"', '"\\e[2J\\u202e"', "''", "' '", "x" * 3000, "a: b", "%", "@", "`", "😀", "../../etc",
)  # fmt: skip
_NOISE = ("\t", ":", "-", "#", "{", "]", "'", '"', "%", "@", "`", "\x07", "\x1b[2J", "\u202e", "\u2028", "\x85", "\r")
_BYTES = (b"\xff", b"\xfe\xff", b"\xc3", b"\xed\xa0\x80", b"\x00", b"\xf8\x88")


_KEYS = ("", "x", "Name", "tool", "__class__", "[1]", "<<", "name", "\x1b", "1", "k" * 400, '"\\e[2J\\n"')
_JSON_VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 10**30, 1.5, "", " ", "x", "\x00", "\x1b[2J", "\u202e", "\n", [], {}, [1], {"a": 1}, [[]],
    "x" * 30_000,
)  # fmt: skip
_JSON_KEYS = ("", "x", "__class__", "\x1b[2J", "k" * 400, "1")


def damaged(good: str, seed: int) -> Iterator[bytes]:
    """One after the other, without an end: the text with one to three things broken. Some may still be good."""
    source = random.Random(seed)
    while True:
        text = good
        for _ in range(source.choice((1, 1, 1, 2, 3))):
            text = source.choice(_WAYS)(source, text)
        content = text.encode("utf-8", "surrogateescape")
        yield source.choice(_ENCODINGS)(source, content) if source.random() < 0.1 else content


def _line(source: random.Random, text: str, change: Callable[[str], list[str]]) -> str:
    lines = text.split("\n")
    at = source.randrange(len(lines))
    return "\n".join(lines[:at] + change(lines[at]) + lines[at + 1 :])


def _without_a_line(source: random.Random, text: str) -> str:
    return _line(source, text, lambda line: [])


def _with_a_line_twice(source: random.Random, text: str) -> str:
    return _line(source, text, lambda line: [line, line])


def _with_another_value(source: random.Random, text: str) -> str:
    return _line(source, text, lambda line: [f"{line.partition(':')[0]}: {source.choice(_VALUES)}"])


def _with_another_key(source: random.Random, text: str) -> str:
    key = source.choice(
        ("", "x", "Name", "tool", "__class__", "[1]", "<<", "name", "\x1b", "1", "k" * 400, '"\\e[2J\\n"')
    )
    return _line(source, text, lambda line: [f"{key}:{line.partition(':')[2]}"])


def _with_noise(source: random.Random, text: str) -> str:
    at = source.randrange(len(text) + 1)
    return text[:at] + "".join(source.choices(_NOISE, k=source.randint(1, 4))) + text[at:]


def _indented(source: random.Random, text: str) -> str:
    return _line(source, text, lambda line: [source.choice(("\t", "   ", "- ")) + line])


def _cut(source: random.Random, text: str) -> str:
    return text[: source.randrange(len(text) + 1)]


def _joined(source: random.Random, text: str) -> str:
    at = source.randrange(len(text) + 1)
    return text[:at] + text[at:].replace("\n", "", 1)


def _with_a_bomb(source: random.Random, text: str) -> str:
    lines = [f"b{n}: &a{n + 1} [{', '.join([f'*a{n}'] * 9)}]" for n in range(source.randint(0, 9))]
    return _line(source, text, lambda line: [line, "b: &a0 [x]", *lines])


def _deep(source: random.Random, text: str) -> str:
    steps = source.choice((30, 3000))
    return _line(source, text, lambda line: [line, f"deep: {'[' * steps}{']' * steps}"])


_WAYS = (
    _without_a_line, _with_a_line_twice, _with_another_value, _with_another_value, _with_another_value,
    _with_another_key, _with_noise, _indented, _cut, _joined, _with_a_bomb, _deep,
)  # fmt: skip


def _with_strange_bytes(source: random.Random, content: bytes) -> bytes:
    at = source.randrange(len(content) + 1)
    return content[:at] + source.choice(_BYTES) + content[at:]


def _in_utf_16(source: random.Random, content: bytes) -> bytes:
    return content.decode("utf-8", "replace").encode("utf-16")


def _too_long(source: random.Random, content: bytes) -> bytes:
    return content + b"x" * 300_000


_ENCODINGS = (_with_strange_bytes, _with_strange_bytes, _in_utf_16, _too_long)


def damaged_object(good: dict[str, Any], seed: int) -> Iterator[dict[str, Any]]:
    """One after the other, without an end: the object with one or two of its values or keys changed, or gone."""
    source = random.Random(seed)
    while True:
        changed = copy.deepcopy(good)
        for _ in range(source.choice((1, 1, 2))):
            _spoil(source, changed)
        yield changed


def _spoil(source: random.Random, found: dict[str, Any] | list[Any]) -> None:
    """Somewhere in it, however deep."""
    places: list[Any] = list(found) if isinstance(found, dict) else list(range(len(found)))
    if not places:
        return
    at = source.choice(places)
    if isinstance(found[at], dict | list) and source.random() < 0.8:
        _spoil(source, found[at])
        return
    match source.randrange(6):
        case 0:
            del found[at]
        case 1 if isinstance(found, dict):
            found[source.choice(_JSON_KEYS)] = found.pop(at)
        case 2 if isinstance(found, dict):
            found[source.choice(_JSON_KEYS)] = source.choice(_JSON_VALUES)
        case _:
            found[at] = source.choice(_JSON_VALUES)
