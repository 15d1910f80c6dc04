"""Reads what a model says about a message: a typed object, or the reason why it is none."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

INTENTS: Final = ("question", "task", "statement", "feedback", "other")
MAX_ENTITIES = 10
MAX_FACTS = 10
_MAX_REPLY = 20_000


class UnreadableReply(ValueError):
    """A reply that is not what was asked for; the text says why."""


class Claim(BaseModel):
    """What a model takes for a fact that the user states, or, with `retracts`, takes back."""

    model_config = ConfigDict(frozen=True, strict=True)
    slot: str
    value: str = ""
    certain: bool = True
    retracts: bool = False


class Reply(BaseModel):
    """What a model says about a message."""

    model_config = ConfigDict(frozen=True, strict=True)
    intent: str
    entities: list[str] = Field(default_factory=list)
    facts: list[Claim]


def read(text: str) -> Reply:
    """The one JSON object in a reply, whatever stands around it. Raises `UnreadableReply`."""
    begin, end = text.find("{"), text.rfind("}")
    if begin < 0 or end < begin or len(text) > _MAX_REPLY:
        raise UnreadableReply("it is no JSON object" if len(text) <= _MAX_REPLY else "it is too long")
    try:
        reply = Reply.model_validate_json(text[begin : end + 1])
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise UnreadableReply(f"{where}: {first['msg']}" if where else first["msg"]) from None
    known = reply.intent if reply.intent in INTENTS else "other"
    return reply.model_copy(update={"intent": known, "facts": reply.facts[:MAX_FACTS]})
