"""Which delivery class a subject has: what a journal has to keep."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from local.protocol import journal_messages as _journal_messages  # noqa: F401 - its classes are to be known
from local.protocol import judgement_messages as _judgement_messages  # noqa: F401 - these, too
from local.protocol import lease_messages as _lease_messages  # noqa: F401 - and these
from local.protocol import memory_messages as _memory_messages  # noqa: F401 - and these
from local.protocol.message import Delivery, Message
from local.protocol.subjects import covers


def kept_subjects() -> list[str]:
    """The subjects and families of every message class that is not ephemeral."""
    return sorted({kind.subject for kind in _classes(Message) if kind.delivery is not Delivery.EPHEMERAL})


@lru_cache(4096)
def delivery_of(subject: str) -> Delivery:
    """The delivery class of a subject; recorded for one that no message class is known of."""
    for kind in _classes(Message):
        if covers(kind.subject, subject):
            return kind.delivery
    return Delivery.RECORDED


def _classes(kind: type[Message]) -> Iterator[type[Message]]:
    for child in kind.__subclasses__():
        if "subject" in vars(child):
            yield child
        yield from _classes(child)
