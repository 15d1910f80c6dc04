"""Every message there is, and which delivery class a subject has: what a journal has to keep."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache, lru_cache

from local import protocol
from local.protocol.message import Delivery, Message
from local.protocol.subjects import covers


@cache
def message_classes() -> tuple[type[Message], ...]:
    """The message classes of every module beside this one. A class is a message if it writes its subject itself."""
    modules = [
        importlib.import_module(found.name) for found in pkgutil.iter_modules(protocol.__path__, "local.protocol.")
    ]
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
    """Whether somebody's answer waits until a message on this subject is on record."""
    kinds = (kind for kind in message_classes() if covers(kind.subject, subject))
    return any(kind.delivery is Delivery.CONFIRMED and kind.hurried for kind in kinds)


def _is_message(value: type) -> bool:
    return issubclass(value, Message) and "subject" in vars(value)
