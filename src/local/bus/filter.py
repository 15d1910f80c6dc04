"""The filter language: which messages a tap, the journal, the API, the page and the window show.

    subject:tool.* -sender:generator query:72ec payload.error.kind=timeout size>64k "words"

Terms side by side must all match; `and`, `or`, `not` or `-`, and parentheses combine them. A term is one of `FIELDS`
with an operator and a value, or words that occur in the subject, the sender or the payload. `:` means a pattern of a
name, the beginning of an id, or a part of a text; `=` is exact; values with commas between them are alternatives. Only
words and `payload.…` have the payload parsed, as it travels: without fields above 64 kB, which are stored aside. A
filter that names no subject leaves out the regular internal traffic (`UPKEEP`); `subject:*` includes it.
"""

from __future__ import annotations

import difflib
import json
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, NamedTuple, Self

from pydantic_core import from_json

from local.bus.envelope import Envelope
from local.bus.message import PARTICIPANT_STATUS, covers, is_family, is_subject, message_classes
from local.core.errors import LocalError

UPKEEP = (PARTICIPANT_STATUS, "journal.", "model.lease.", "blob.")
MAX_TEXT = 4_000  # characters of a filter
MAX_DEPTH = 50
MAX_COMPLETIONS = 30


class BadFilter(LocalError):
    """The error for a filter that cannot be read: where, what is wrong, and what would be right. `position` is how many
    characters are before the place; None for a value that is not part of a text.
    """

    kind = "bad_filter"

    def __init__(self, problem: str, position: int | None = None) -> None:
        super().__init__(problem if position is None else f"filter, character {position + 1}: {problem}")
        self.position = position


# The fields, and how a value is compared. A `ValueError` says what a value should be.

Compare = Callable[[Any], bool]


def _pattern(op: str, value: str) -> Compare:
    first, *rest = (value + "*" if is_family(value) else value).split("*")
    if op == "=" or not rest:
        return value.__eq__
    middle = "".join(f"(?>.*?{re.escape(part)})" for part in rest[:-1])  # atomic, so that no pattern is slow
    compiled = re.compile(f"{re.escape(first)}{middle}.*{re.escape(rest[-1])}", re.DOTALL)
    return lambda found: compiled.fullmatch(found) is not None


def _subject(op: str, value: str) -> Compare:
    is_pattern = "*" in value and re.fullmatch(r"[A-Za-z0-9_.*-]{1,200}", value)
    if not (value == "" or is_pattern or is_subject(value.removesuffix("."))):
        raise ValueError("a subject (query.received), a family (tool.) or a pattern (tool.*.web_search)")
    return _pattern(op, value)


def _id(op: str, value: str) -> Compare:
    return value.__eq__ if op == "=" else lambda found: found.startswith(value)


_COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "=": operator.eq, ":": operator.eq,
}  # fmt: skip
_UNITS = {"": 1, "k": 1024, "m": 1024**2}


def _number(op: str, value: str) -> Compare:
    found = re.fullmatch(r"(-?\d+(?:\.\d+)?)([km]?)", value, re.IGNORECASE)
    if found is None:
        raise ValueError("a number, such as 500, 64k or 1.5M")
    number, compare = float(found[1]) * _UNITS[found[2].lower()], _COMPARED[op]
    return lambda other: compare(other, number)


def _time(op: str, value: str) -> Compare:
    try:
        moment, compare = datetime.fromisoformat(value).timestamp(), _COMPARED[op]
    except (ValueError, OverflowError):
        raise ValueError("a time, such as 2026-05-01T12:00") from None
    return lambda other: compare(other, moment)


def _json(op: str, value: str) -> Compare:
    if op == "=":
        return lambda found: _shown(found) == value
    if op == ":":
        wanted = value.casefold()
        return lambda found: found is not None if value == "*" else wanted in _text(found)
    compare = _number(op, value)
    return lambda found: isinstance(found, int | float) and not isinstance(found, bool) and compare(found)


class Field(NamedTuple):
    """One field of the language: what it is, its operators, how a value is compared, and its values in an envelope."""

    about: str
    example: str
    operators: str
    compare: Callable[[str, str], Compare]
    values: Callable[[Envelope], tuple[Any, ...]]


_EQUAL, _ORDER = ": = !=", ": = != < <= > >="
FIELDS: Mapping[str, Field] = {
    "subject": Field("type of the message", "subject:tool.*", _EQUAL, _subject, lambda each: (each.subject,)),
    "sender": Field("participant that sent it", "sender:generator", _EQUAL, _pattern, lambda each: (each.sender,)),
    "participant": Field(
        "participant that sent it, or whose name ends the subject", "participant:web_search", _EQUAL, _pattern,
        lambda each: (each.sender, each.subject.rpartition(".")[2]),
    ),
    "query": Field("query that caused it, by id", "query:72ec", _EQUAL, _id, lambda each: (each.correlation_id,)),
    "session": Field("conversation, by id", "session:first", _EQUAL, _id, lambda each: (each.session_id,)),
    "user": Field("user; owner is you", "user:ann", _EQUAL, _pattern, lambda each: (each.user_id or "owner",)),
    "id": Field("id of the message", "id:9f", _EQUAL, _id, lambda each: (each.id,)),
    "cause": Field("id of the message that led to it", "cause:9f", _EQUAL, _id, lambda each: (each.cause_id,)),
    "reply": Field("id of the request that it answers", "reply:9f", _EQUAL, _id, lambda each: (each.in_reply_to,)),
    "instance": Field("process that sent it, by id", "instance:27cc", _EQUAL, _id, lambda each: (each.instance,)),
    "seq": Field("number by sender and subject", "seq>100", _ORDER, _number, lambda each: (each.seq,)),
    "size": Field("bytes of the payload", "size>64k", _ORDER, _number, lambda each: (len(each.payload),)),
    "time": Field("when it was sent", "time>2026-05-01T12:00", "< <= > >=", _time, lambda each: (each.sent_at,)),
}  # fmt: skip
PAYLOAD = "payload."
_IN_PAYLOAD = Field("value in the payload", "payload.error.kind=timeout", _ORDER, _json, lambda each: ())


# The conditions that a filter consists of.


class _Payload:
    """A payload, parsed when it is first needed; as text if it is not JSON."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    @cached_property
    def value(self) -> Any:
        try:
            return from_json(self._data, allow_inf_nan=False)
        except ValueError:
            return self._data.decode(errors="replace")


@dataclass(frozen=True, slots=True)
class _Term:
    """One condition of a field, or of words if `field` is empty. `values` are alternatives."""

    field: str
    op: str
    values: tuple[str, ...]
    test: Callable[[Envelope, _Payload], bool]


@dataclass(frozen=True, slots=True)
class _Group:
    """Conditions of which all or any must hold; or one that must not."""

    kind: str  # "and", "or", "not"
    parts: tuple[_Term | _Group, ...]

    def test(self, envelope: Envelope, payload: _Payload) -> bool:
        results = (part.test(envelope, payload) for part in self.parts)
        return any(results) if self.kind == "or" else all(results) if self.kind == "and" else not next(results)


def _term(name: str, op: str, values: tuple[str, ...]) -> _Term | _Group:
    """A condition of a field. Raises `BadFilter`."""
    path = name.split(".")[1:] if name.startswith(PAYLOAD) else []
    field = _IN_PAYLOAD if all(path) and path else FIELDS.get(name)
    if field is None:
        close = difflib.get_close_matches(name, FIELDS, 1) or [f"{', '.join(FIELDS)} or payload.NAME"]
        raise BadFilter(f"there is no field {name!a}; use {close[0]}, or put text to search for in quotes")
    if op not in field.operators.split():
        raise BadFilter(f"{name} has no operator {op}; use one of {field.operators}, as in {field.example}")
    if op == "!=":
        return _Group("not", (_term(name, "=", values),))
    compares = [_comparison(field, name, op, value) for value in values]

    def test(envelope: Envelope, payload: _Payload) -> bool:
        found = _at(payload.value, path) if path else (value for value in field.values(envelope) if value is not None)
        return any(compare(value) for value in found for compare in compares)

    return _Term(name, op, values, test)


def _comparison(field: Field, name: str, op: str, value: str) -> Compare:
    try:
        return field.compare(op, value)
    except ValueError as error:
        raise BadFilter(f"{name} {value[:200]!a}: expected {error}") from None


def _words(text: str) -> _Term:
    wanted = text.casefold()

    def test(envelope: Envelope, payload: _Payload) -> bool:
        return wanted in f"{envelope.subject}\n{envelope.sender}".casefold() or wanted in _text(payload.value)

    return _Term("", ":", (text,), test)


def _at(value: Any, path: list[str]) -> Iterator[Any]:
    """The values at a path; one without a number where there is a list leads through each element."""
    if isinstance(value, list) and not (path and path[0].isdecimal()):
        for each in value:
            yield from _at(each, path)
    elif not path:
        yield value
    elif isinstance(value, dict) and path[0] in value:
        yield from _at(value[path[0]], path[1:])
    elif isinstance(value, list) and int(path[0]) < len(value):
        yield from _at(value[int(path[0])], path[1:])


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _text(value: Any) -> str:
    """All texts and numbers in a value, a line each, for a comparison without regard to case."""
    if isinstance(value, dict | list):
        return "\n".join(map(_text, value.values() if isinstance(value, dict) else value))
    return _shown(value).casefold()


# From a text to conditions.

_QUOTED = r'"(?:[^"\\]|\\.)*"'
_VALUE = rf'(?:{_QUOTED}|[^\s()",]+)'
_TOKEN = re.compile(
    rf"(?P<mark>[()]|-(?=\S))|(?P<field>[A-Za-z_$][\w.$-]*)(?P<op>!=|<=|>=|[:=<>])(?P<values>(?:{_VALUE}(?:,{_VALUE})*)?)"
    rf'|(?P<words>{_QUOTED}|[^\s()"]+)',
    re.DOTALL,
)


class _Parser:
    """Reads a filter from left to right; `_ahead` is the next piece, None at the end. Raises `BadFilter`."""

    def __init__(self, text: str) -> None:
        if len(text) > MAX_TEXT:
            raise BadFilter(f"the filter is too long; use at most {MAX_TEXT} characters", MAX_TEXT)
        self._text, self._at, self._depth = text, 0, 0
        self._ahead: re.Match[str] | None = None
        self._advance(0)

    def read(self) -> _Term | _Group:
        node = self._any() if self._ahead else _Group("and", ())
        if self._ahead:
            raise BadFilter("this ) closes nothing; remove it, or open it before with (", self._at)
        return node

    def _any(self) -> _Term | _Group:
        parts = [self._all()]
        while self._takes("or"):
            parts.append(self._all())
        return parts[0] if len(parts) == 1 else _Group("or", tuple(parts))

    def _all(self) -> _Term | _Group:
        parts = [self._one()]
        while self._takes("and") or (self._ahead and not self._is(")", "or")):
            parts.append(self._one())
        return parts[0] if len(parts) == 1 else _Group("and", tuple(parts))

    def _one(self) -> _Term | _Group:
        ahead, start = self._ahead, self._at
        if ahead is None or self._is(")", "or", "and"):
            raise BadFilter("a term is missing here; write one, such as subject:tool.*", start)
        if self._takes("-", "not"):
            return _Group("not", (self._nested(self._one),))
        if self._takes("("):
            node = self._nested(self._any)
            if not self._takes(")"):
                raise BadFilter("this ( is not closed; add )", start)
            return node
        self._advance(ahead.end())
        if ahead["words"]:
            return _words(_unquoted(ahead["words"]))
        if not ahead["values"] or self._text.startswith(",", ahead.end()):
            raise BadFilter(f'a value is missing after {ahead[0][-40:]}; write one, or "" for nothing', ahead.end())
        try:
            return _term(ahead["field"], ahead["op"], tuple(map(_unquoted, re.findall(_VALUE, ahead["values"]))))
        except BadFilter as error:
            raise BadFilter(str(error), start) from None

    def _nested(self, read: Callable[[], _Term | _Group]) -> _Term | _Group:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise BadFilter(f"the filter is nested more than {MAX_DEPTH} deep; use fewer parentheses", self._at)
        node = read()
        self._depth -= 1
        return node

    def _is(self, *words: str) -> bool:
        return self._ahead is not None and self._ahead[0].lower() in words

    def _takes(self, *words: str) -> bool:
        if not self._is(*words):
            return False
        self._advance(self._ahead.end() if self._ahead else 0)
        return True

    def _advance(self, end: int) -> None:
        while end < len(self._text) and self._text[end].isspace():
            end += 1
        self._at, self._ahead = end, _TOKEN.match(self._text, end)
        if self._ahead is None and end < len(self._text):
            raise BadFilter('this " is not closed; add another', end)


def _unquoted(value: str) -> str:
    return re.sub(r"\\(.)", r"\1", value[1:-1], flags=re.DOTALL) if value.startswith('"') else value


def quoted(value: str) -> str:
    """A value as it is written in a filter."""
    is_plain = re.fullmatch(r'[^\s()",]+', value)
    return value if is_plain else '"' + re.sub(r'(["\\])', r"\\\1", value) + '"'


# What a filter says of subjects alone: which ones to subscribe to, and of which ones a loss matters.


def _needed(node: _Term | _Group) -> frozenset[str]:
    """Subjects and families that hold everything that a condition matches."""
    if isinstance(node, _Term) and node.field == "subject":
        return frozenset(map(_family, node.values))
    if isinstance(node, _Term) or node.kind == "not":
        return frozenset([""])
    needed, *others = [_needed(part) for part in node.parts] or [frozenset([""])]
    for other in others:
        pairs = [(one, two) for one in needed for two in other]
        both = {two if covers(one, two) else one for one, two in pairs if covers(one, two) or covers(two, one)}
        needed = needed | other if node.kind == "or" else frozenset(both) or needed
    return needed


def _family(pattern: str) -> str:
    """The narrowest subject or family that holds everything a pattern matches."""
    literal, star, _ = pattern.partition("*")
    return literal[: literal.rfind(".") + 1] if star else pattern


def _on_subject(node: _Term | _Group, bare: Envelope) -> bool | None:
    """What a condition is for all messages of a subject; None if it depends on the rest."""
    if isinstance(node, _Term):
        return node.test(bare, _Payload(b"")) if node.field == "subject" else None
    parts = [_on_subject(part, bare) for part in node.parts]
    if node.kind == "not":
        return None if parts[0] is None else not parts[0]
    decisive = node.kind == "or"
    return decisive if decisive in parts else None if None in parts else not decisive


def _names_subject(node: _Term | _Group) -> bool:
    if isinstance(node, _Term):
        return node.field == "subject"
    return node.kind != "not" and any(map(_names_subject, node.parts))


class Filter:
    """A filter of messages, compiled from its text. Raises `BadFilter`."""

    def __init__(self, text: str = "") -> None:
        self._use(_Parser(text).read())

    @classmethod
    def of(cls, name: str, values: Iterable[str], op: str = ":") -> Self:
        """Return the filter of one field, of which any of the values will do. Raises `BadFilter`."""
        return cls.__new__(cls)._use(_term(name, op, tuple(values)))

    def __and__(self, other: Filter) -> Filter:
        return Filter()._use(_Group("and", (self._node, other._node)))

    def _use(self, node: _Term | _Group) -> Self:
        self._node, self._leaves_out_upkeep = node, not _names_subject(node)
        return self

    def matches(self, envelope: Envelope) -> bool:
        """Whether a message is to be shown."""
        is_left_out = self._leaves_out_upkeep and is_upkeep(envelope.subject)
        return not is_left_out and self._node.test(envelope, _Payload(envelope.payload))

    def may_match(self, subject: str) -> bool:
        """Whether any message of this subject can be shown."""
        is_left_out = self._leaves_out_upkeep and is_upkeep(subject)
        return not is_left_out and _on_subject(self._node, Envelope(subject, "", "", "", 1, "", b"")) is not False

    def subscriptions(self) -> list[str]:
        """Return the subjects and families to subscribe to, none of them twice or inside another."""
        needed = _needed(self._node)
        return sorted(one for one in needed if not any(other != one and covers(other, one) for other in needed))

    def exact(self, name: str) -> str | None:
        """The value that a field has in all messages that match, by which a store can search; None if it may differ."""
        nodes: list[_Term | _Group] = [self._node]
        for node in nodes:
            if isinstance(node, _Term) and (node.field, node.op, len(node.values)) == (name, "=", 1):
                return node.values[0]
            nodes += node.parts if isinstance(node, _Group) and node.kind == "and" else ()
        return None


def is_upkeep(subject: str) -> bool:
    """Whether a subject belongs to the regular internal traffic."""
    return any(covers(upkeep, subject) for upkeep in UPKEEP)


# Completion while a filter is typed.


class Completion(NamedTuple):
    """A filter with its last word completed, and what that means."""

    text: str
    about: str


def completions(text: str, senders: Iterable[str] = ()) -> list[Completion]:
    """Return ways to complete the last word of a filter: fields, subjects, and senders."""
    word = text[max(text.rfind(mark) for mark in ' \t\n("-') + 1 :]
    name, op, typed = re.fullmatch(r"([\w.$]*)([:=]?)(.*)", word, re.DOTALL).groups()  # type: ignore[union-attr]
    head = text.removesuffix(word if not op else typed.rpartition(",")[2])
    if not op:
        found = [(f"{name}{field.operators.split()[0]}", field.about) for name, field in FIELDS.items()]
        found += [(f"{PAYLOAD}{name}", _IN_PAYLOAD.about) for name in (_in_payloads() if word else ["…"])]
    elif name == "subject":
        found = [(kind.subject, (kind.__doc__ or "").partition("\n")[0]) for kind in message_classes()]
    else:
        found = [(sender, FIELDS["sender"].about) for sender in senders if name in ("sender", "participant")]
    typed = text.removeprefix(head)
    return [Completion(head + each, about) for each, about in found if each.startswith(typed)][:MAX_COMPLETIONS]


def _in_payloads() -> list[str]:
    return sorted({name for kind in message_classes() for name in kind.model_fields})
