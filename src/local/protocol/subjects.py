"""The dotted routing keys. A subject that ends in a dot is a family: the rest of the key is a name.

Each message class writes its own; here they are constants, too: QUERY_RECEIVED is the subject "query.received".
"""

from __future__ import annotations

import re
from functools import lru_cache

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
    """Whether what is lost on a subject is said again, so that status beats do not tell of it."""
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
    from local.protocol.delivery_classes import message_classes

    for kind in message_classes():
        if name == kind.subject.removesuffix(".").replace(".", "_").upper():
            return kind.subject
    raise AttributeError(f"no message has the subject {name}")
