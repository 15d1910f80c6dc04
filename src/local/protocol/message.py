"""What every message is: frozen data with a subject and a delivery class, read from JSON as the protocol allows it."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any, ClassVar, Self, get_args

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import PydanticSerializationError, from_json

from local.errors import MalformedFrame, UnsendableMessage

MAIN_RESPONDENT = "A"  # the one that the user talks to; any other answers the same queries for comparison
MAX_DEPTH = 32
MAX_ARGUMENTS_DEPTH = 20  # of those of a call, which stand within other things in a message
MAX_WHERE = 200  # characters of a field's path in an error; keys of a hostile text can be a megabyte long
_IN_JSON: Mapping[type, str] = {
    type(None): "null", bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list",
}  # fmt: skip
_SPACED_COLON = re.compile(rb'"[ \t\r\n]+:')


class Delivery(StrEnum):
    """How hard the bus tries. Written at each message; `confirmed` waits for a durable commit."""

    CONFIRMED = "confirmed"
    RECORDED = "recorded"
    EPHEMERAL = "ephemeral"


class Data(BaseModel):
    """Frozen data; fields that a newer sender added are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, populate_by_name=True)


class ErrorInfo(Data):
    """A failure as data: `kind` is a word for programs, `message` a sentence for people."""

    kind: str
    message: str

    @classmethod
    def of(cls, error: Exception) -> Self:
        """What an exception says: its `kind` if it has one, else internal."""
        return cls(kind=getattr(error, "kind", "internal"), message=str(error) or type(error).__name__)


class Message(Data):
    """What is said. `subject` is the routing key, or a family whose last word is in the field `family_key` names."""

    subject: ClassVar[str]
    delivery: ClassVar[Delivery] = Delivery.RECORDED
    family_key: ClassVar[str] = ""
    is_request: ClassVar[bool] = False
    answered_by: ClassVar[str] = ""  # of a request: the participant that answers it
    hurried: ClassVar[bool] = True  # of a confirmed one: whether somebody's answer waits for its commit
    _holds_anything: ClassVar[bool] = False  # a field of free form, which may be nested to any depth

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        cls._holds_anything = any(_mentions_any(field.annotation) for field in cls.model_fields.values())

    @property
    def routing_key(self) -> str:
        """The subject that this very message is published on."""
        return self.subject + getattr(self, self.family_key) if self.family_key else self.subject

    @property
    def whom(self) -> str:
        """The name of who is asked by a request, for people; empty where that is not known."""
        return self.answered_by

    def encode(self) -> bytes:
        """The payload as JSON. Raises `UnsendableMessage` for what JSON cannot say, such as half a surrogate pair."""
        try:
            return self.__pydantic_serializer__.to_json(self, by_alias=True)
        except PydanticSerializationError as error:
            raise UnsendableMessage(f"{self.subject}: {error}") from None

    @classmethod
    def decode(cls, payload: bytes) -> Self:
        """Parse a payload. Raises `MalformedFrame` that names the field.

        What our own `encode` would have written holds no doubled key and no strange number, so it is taken as it is;
        everything else is read a second time, slowly and exactly.
        """
        try:
            message: Self = cls.__pydantic_validator__.validate_json(payload)
            known_depth = not cls._holds_anything or is_shallow(payload)
            if known_depth and cls.__pydantic_serializer__.to_json(message, by_alias=True) == payload:
                return message
        except (ValidationError, PydanticSerializationError):
            pass  # the exact reading says what is wrong with it
        return cls._decode_exactly(payload)

    @classmethod
    def _decode_exactly(cls, payload: bytes) -> Self:
        value = parse_object(payload, f"payload of {cls.subject}")
        try:
            message: Self = cls.__pydantic_validator__.validate_python(value)
            return message
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])[:MAX_WHERE] or "payload"
            raise MalformedFrame(f"payload of {cls.subject}: {where}: {first['msg']}") from None


def _mentions_any(annotation: Any) -> bool:
    return annotation is Any or any(_mentions_any(part) for part in get_args(annotation))


class RespondentMessage(Message):
    """What is said of one query by, to or about one of those who answer it."""

    query_id: str
    respondent_id: str = MAIN_RESPONDENT


def parse_object(data: bytes, what: str) -> dict[str, Any]:
    """Parse one JSON object; `what` names it in the `MalformedFrame` raised for anything else."""
    try:
        value = from_json(data, allow_inf_nan=False)
    except ValueError as error:
        raise MalformedFrame(f"{what}: not JSON: {_json_fault(str(error))}") from None
    if type(value) is not dict:
        raise MalformedFrame(f"{what}: expected a JSON object, found {_IN_JSON[type(value)]}")
    keys = _count_keys(value, MAX_DEPTH, what)
    if has_other_keys(data, keys):
        _refuse_duplicates(data, what)
    return value


def _json_fault(said: str) -> str:
    """The parser's sentence, or ours where its own does not say what would be right."""
    fault, _, place = said.rpartition(" at ")
    if fault.endswith("hex escape"):
        return rf"half of a surrogate pair, as \ud83d without \ude00, at {place}: write both, or the character itself"
    return f"bytes that are no UTF-8 at {place}" if fault == "invalid unicode code point" else said


def has_other_keys(data: bytes, keys: int) -> bool:
    """Whether a text may hold other keys than the `keys` that a parser made of it: doubled ones, or ignored ones."""
    return data.count(b'":') != keys or _SPACED_COLON.search(data) is not None


def is_deeper(value: Any, levels: int) -> bool:
    """Whether lists and dicts are nested more than so many levels deep in one."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return any(isinstance(each, dict | list | tuple) and (levels <= 1 or is_deeper(each, levels - 1)) for each in inner)


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
