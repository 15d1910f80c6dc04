"""The base classes of messages: frozen data with a subject and a delivery class, read strictly from JSON."""

from __future__ import annotations

import importlib
import json
import math
import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cache, lru_cache
from typing import Any, ClassVar, Self, get_args

from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import PydanticSerializationError, from_json

from local.core.capability import capabilities
from local.core.errors import MalformedFrame, UnsendableMessage

MAIN_RESPONDENT = "A"  # the one that the user talks to; any other answers the same queries for comparison
MAX_DEPTH = 32
MAX_ARGUMENTS_DEPTH = 20  # of a call's arguments, which are nested within other objects in a message
MAX_WHERE = 200  # characters of a field's path in an error; keys of a hostile text can be a megabyte long
_IN_JSON: Mapping[type, str] = {
    type(None): "null", bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "a list",
}  # fmt: skip
_SPACED_COLON = re.compile(rb'"[ \t\r\n]+:')


class Delivery(StrEnum):
    """The delivery guarantee of a message class. `confirmed`: `publish` waits for the commit; `recorded`: sent again
    until it is in the journal; `ephemeral`: sent once.
    """

    CONFIRMED = "confirmed"
    RECORDED = "recorded"
    EPHEMERAL = "ephemeral"


class Data(BaseModel):
    """Base class of frozen data on the bus. Fields that a newer sender has added are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False, populate_by_name=True)


MOST_FAULTS = 3  # of one message, in an error


class ErrorInfo(Data):
    """A failure as data: `kind` is a word for programs, `message` a sentence for people."""

    kind: str
    message: str

    @classmethod
    def of(cls, error: Exception) -> Self:
        """Return an exception as data; its kind is "internal" if the exception has none."""
        text = _faults(error) if isinstance(error, ValidationError) else str(error)
        return cls(kind=getattr(error, "kind", "internal"), message=text or type(error).__name__)


def _faults(error: ValidationError) -> str:
    """Return what pydantic says, without its addresses."""
    found = error.errors(include_url=False, include_input=False, include_context=False)[:MOST_FAULTS]
    return "; ".join(f"{'.'.join(map(str, each['loc'])) or error.title}: {each['msg']}" for each in found)


class Message(Data):
    """Base class of messages. `subject` is the routing key, or a family whose last word is in the field named by
    `family_key`.
    """

    subject: ClassVar[str]
    delivery: ClassVar[Delivery] = Delivery.RECORDED
    family_key: ClassVar[str] = ""
    is_request: ClassVar[bool] = False
    answered_by: ClassVar[str] = ""  # of a request: the participant that answers it
    hurried: ClassVar[bool] = True  # whether an answer to a user waits for the commit of a confirmed one
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
        """Return the name of the asker in a request, for people; empty if unknown."""
        return self.answered_by

    def encode(self) -> bytes:
        """Return the payload as JSON. Raises `UnsendableMessage` for values that JSON cannot represent, such as half a
        surrogate pair.
        """
        try:
            return self.__pydantic_serializer__.to_json(self, by_alias=True)
        except PydanticSerializationError as error:
            raise UnsendableMessage(f"{self.subject}: {error}") from None

    @classmethod
    def decode(cls, payload: bytes) -> Self:
        """Parse a payload. Raises `MalformedFrame` that names the field.

        The output of our own `encode` contains no duplicate keys and no invalid numbers, so it is parsed once;
        everything else is parsed a second time with strict checks.
        """
        try:
            message: Self = cls.__pydantic_validator__.validate_json(payload)
            known_depth = not cls._holds_anything or is_shallow(payload)
            if known_depth and cls.__pydantic_serializer__.to_json(message, by_alias=True) == payload:
                return message
        except (ValidationError, PydanticSerializationError):
            pass  # the exact reading raises the error
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
    """Base class of messages that belong to one respondent of a query."""

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
    """Return the parser's message, or a clearer one if it does not name what was expected."""
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
                raise MalformedFrame(f"{what}: key {name[:80]!r} occurs twice")
            seen[name] = value
        return seen

    json.loads(data, object_pairs_hook=refuse)


# The dotted routing keys. A subject that ends in a dot is a family: the rest of the key is a name.

MAX_LENGTH = 200
_GRAMMAR = re.compile(r"[a-z0-9_-]+(?:\.[A-Za-z0-9_-]+)*")


@lru_cache(4096)
def is_subject(text: str) -> bool:
    """Whether `text` is a whole subject: dotted words, at most 200 characters."""
    return len(text) <= MAX_LENGTH and _GRAMMAR.fullmatch(text) is not None


def is_family(text: str) -> bool:
    """Whether `text` names a family of subjects ("tool.result.") or everything ("")."""
    return text == "" or text.endswith(".")


@lru_cache(4096)
def covers(subscription: str, subject: str) -> bool:
    """Whether a subscription to a subject or a family ("tool.result.", "" for everything) takes `subject` in."""
    return subject.startswith(subscription) if is_family(subscription) else subject == subscription


def is_said_again(subject: str) -> bool:
    """Whether messages on a subject are repeated after a loss, so that status beats do not report it."""
    return subject.startswith("journal.")


def subscription(subject: str) -> bytes:
    """The byte prefix that subscribes to exactly this subject, or to every subject of a family.

    The NUL that ends a subject in a frame keeps `tool.schema` from also getting `tool.schema.request`.
    """
    return subject.encode() if is_family(subject) else subject.encode() + b"\0"


def __getattr__(name: str) -> str:
    """The subject of a message as a constant; the message is imported only now, because it knows this module."""
    if not name.isupper():
        raise AttributeError(name)

    for kind in message_classes():
        if name == kind.subject.removesuffix(".").replace(".", "_").upper():
            return kind.subject
    raise AttributeError(f"no message has the subject {name}")


# All messages, and the delivery class of each subject: what a journal has to store.


@cache
def message_classes() -> tuple[type[Message], ...]:
    """The message classes of every capability. A class is a message if it writes its subject itself."""
    modules = [importlib.import_module(name) for each in capabilities().values() for name in each.messages]
    return tuple(
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == module.__name__ and _is_message(value)
    )


def kept_subjects() -> list[str]:
    """The subjects and families of every message class that is not ephemeral."""
    return sorted(kind.subject for kind in message_classes() if kind.delivery is not Delivery.EPHEMERAL)


@lru_cache(4096)
def delivery_of(subject: str) -> Delivery:
    """The delivery class of a subject; recorded for one that no message class is known of."""
    for kind in message_classes():
        if covers(kind.subject, subject):
            return kind.delivery
    return Delivery.RECORDED


@lru_cache(4096)
def is_hurried(subject: str) -> bool:
    """Whether an answer waits until a message on this subject is in the journal."""
    kinds = (kind for kind in message_classes() if covers(kind.subject, subject))
    return any(kind.delivery is Delivery.CONFIRMED and kind.hurried for kind in kinds)


def _is_message(value: type) -> bool:
    return issubclass(value, Message) and "subject" in vars(value)


# The whole of a text that was too long for the message.

KeptText = dict[str, str | int]
"""A reference to the complete text of a shortened one: `$blob` is the name of the blob, `size` its bytes in UTF-8,
`characters` how many they are, and `shown` how many of them stand in the result."""
