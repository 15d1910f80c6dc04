"""Replies of models that are to be one JSON object of a certain form."""

from __future__ import annotations

from typing import TypeVar

from pydantic import BaseModel, ValidationError

MOST_CHARS = 20_000
_THOUGHT_ENDS = ("</think>", "</thinking>")
M = TypeVar("M", bound=BaseModel)


class UnreadableReply(ValueError):
    """A model's reply that does not have the requested form; the text says why."""


def read_object(form: type[M], text: str) -> M:
    """Return the only JSON object in a reply, ignoring text and thinking around it. Raises `UnreadableReply`."""
    for tag in _THOUGHT_ENDS:
        said = text.rpartition(tag)[2]
        text = said if "{" in said else text
    begin, end = text.find("{"), text.rfind("}")
    if len(text) > MOST_CHARS:
        raise UnreadableReply("it is too long")
    if begin < 0 or end < begin:
        raise UnreadableReply("it is not a JSON object")
    try:
        return form.model_validate_json(text[begin : end + 1])
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise UnreadableReply(f"{where}: {first['msg']}" if where else first["msg"]) from None
