"""What a participant's class declares that it says: read off its handlers, its own list, or else its code."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from inspect import unwrap
from types import CodeType, FunctionType, ModuleType
from typing import Any, get_args, get_type_hints

from local.bus.sender_guard import Declaration
from local.protocol.bus_messages import BusGap, BusProbe
from local.protocol.journal_messages import ConsumerMessage
from local.protocol.messages import BusDead, Message, ParticipantStatus
from local.runtime.participant import Participant

EVERYBODY = (ParticipantStatus, BusGap, BusDead, BusProbe)


def declaration_of(kind: type[Participant]) -> Declaration:
    """What participants of a class may say: what everybody says, what its handlers return, and for each class that it
    is derived from what stands in `publishes`, or where that is not written, what messages the class's code names."""
    consumers = frozenset(handles.durable for handles in kind.handlers() if handles.durable is not None)
    said: set[Any] = {*EVERYBODY, *(get_args(ConsumerMessage) if consumers else ()), *_returned(kind)}
    for base in kind.__mro__[: kind.__mro__.index(Participant)]:
        written = vars(base).get("publishes")
        said.update(_named(base) if written is None else written)
    return Declaration(frozenset(_subjects(kind, said)), consumers, kind.speaks_as)


def what_everybody_says() -> Declaration:
    """What a bus says that is no participant's: how it is, and what it has missed."""
    return Declaration(frozenset(message.subject for message in EVERYBODY))


def _subjects(kind: type[Participant], said: Iterable[Any]) -> Iterator[str]:
    for each in said:
        if isinstance(each, str):
            yield each
        elif issubclass(each, Message):
            yield kind.subject_of(each)
        else:
            yield from _subjects(kind, each.publishes)


def _returned(kind: type[Participant]) -> Iterator[type[Message]]:
    """The messages that handlers return, by their annotations."""
    for handles in kind.handlers():
        try:
            returned = get_type_hints(getattr(kind, handles.method)).get("return")
        except (NameError, TypeError):  # an annotation that only type checkers can read: the code is looked at instead
            continue
        yield from (each for each in (returned, *get_args(returned)) if _is_message(each))


def _named(base: type) -> set[type]:
    """The messages, and helpers that publish some, which are named in the functions of a class, and in those functions
    and classes of its module that these name."""
    found: set[type] = set()
    _look_into(base, base.__module__, found, set())
    return found


def _look_into(thing: Any, module: str, found: set[type], seen: set[Any]) -> None:
    if thing in seen or getattr(thing, "__module__", None) != module:
        return
    seen.add(thing)
    for function in vars(thing).values() if isinstance(thing, type) else (thing,):
        function = unwrap(getattr(function, "fget", None) or getattr(function, "__func__", function))
        if not isinstance(function, FunctionType):
            continue
        for named in _globals_in(function.__code__, function.__globals__):
            if _is_message(named) or (isinstance(named, type) and getattr(named, "publishes", None)):
                found.add(named)
            elif isinstance(named, type | FunctionType):
                _look_into(named, module, found, seen)


def _globals_in(code: CodeType, scope: Mapping[str, Any]) -> Iterator[Any]:
    named = [scope[name] for name in code.co_names if name in scope]
    yield from named
    for module in named:
        if isinstance(module, ModuleType):
            yield from (getattr(module, name) for name in code.co_names if hasattr(module, name))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _globals_in(constant, scope)


def _is_message(thing: Any) -> bool:
    return isinstance(thing, type) and issubclass(thing, Message) and hasattr(thing, "subject")
