"""The messages of OpenAI's chat completions, and what they are in the words of our model clients."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field
from pydantic_core import from_json

from local.apps.api.errors import RequestRefused

Json = dict[str, Any]
_DATA_URL = re.compile(r"data:[\w.+/-]*;base64,")
EARLIER_PICTURE = "[a picture was here]"


class TextPart(BaseModel):
    """A piece of text."""

    type: Literal["text"]
    text: str


class ImageUrl(BaseModel):
    """Where a picture is."""

    url: str


class ImagePart(BaseModel):
    """A picture, within its `data:` URL."""

    type: Literal["image_url"]
    image_url: ImageUrl


class CalledFunction(BaseModel):
    """A function of the client, and its arguments as JSON."""

    name: str = Field(min_length=1)
    arguments: str = ""


class MadeCall(BaseModel):
    """A call in a message of the assistant."""

    id: str = Field(min_length=1)
    type: Literal["function"] = "function"
    function: CalledFunction


class ChatMessage(BaseModel):
    """One message. "developer" is the newer word for "system"; a "tool" message is the result of one of the calls."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[Annotated[TextPart | ImagePart, Field(discriminator="type")]] | None = None
    tool_calls: list[MadeCall] | None = None
    tool_call_id: str | None = None

    @property
    def text(self) -> str:
        """The text of the message."""
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content if isinstance(part, TextPart))
        return self.content or ""

    @property
    def picture_urls(self) -> list[str]:
        """The addresses of the message's pictures."""
        parts = self.content if isinstance(self.content, list) else []
        return [part.image_url.url for part in parts if isinstance(part, ImagePart)]


def as_history(messages: Sequence[ChatMessage]) -> list[Json]:
    """The messages as the model is told of them later, when their pictures are no longer shown: those of `ChatModel`.
    Raises `RequestRefused` for a result without its call, and for arguments that are no JSON object."""
    told: list[Json] = []
    functions: dict[str, str] = {}
    for number, message in enumerate(messages):
        where = f"messages.{number}"
        text = "\n".join((message.text, *(EARLIER_PICTURE for _ in message.picture_urls)))
        role = "system" if message.role == "developer" else message.role
        entry: Json = {"role": role, "content": text}
        if message.role == "tool":
            called = functions.get(message.tool_call_id or "")
            if called is None:
                fault = f"{where}.tool_call_id: no call {message.tool_call_id!r} precedes this result"
                raise RequestRefused("invalid", fault, f"{where}.tool_call_id")
            entry |= {"tool_name": called, "tool_call_id": message.tool_call_id}
        elif message.role == "assistant" and message.tool_calls:
            functions |= {call.id: call.function.name for call in message.tool_calls}
            entry["tool_calls"] = [_call(call, f"{where}.tool_calls") for call in message.tool_calls]
        told.append(entry)
    return told


def _call(call: MadeCall, where: str) -> Json:
    try:
        arguments = from_json(call.function.arguments.strip() or "{}")
    except ValueError as error:
        raise RequestRefused("invalid", f"{where}: the arguments of {call.id} are no JSON: {error}", where) from None
    if not isinstance(arguments, dict):
        raise RequestRefused("invalid", f"{where}: the arguments of {call.id} are no JSON object", where)
    return {"id": call.id, "function": {"name": call.function.name, "arguments": arguments}}


def pictures_of(message: ChatMessage) -> list[bytes]:
    """The pictures of a message. Raises `RequestRefused` for one that is not in the request itself."""
    return [_picture(url) for url in message.picture_urls]


def _picture(url: str) -> bytes:
    start = _DATA_URL.match(url)
    if start is None:
        raise RequestRefused(
            "invalid", "messages: a picture must be a data: URL in base64; no other is fetched", "messages"
        )
    try:
        return base64.b64decode(url[start.end() :], validate=True)
    except binascii.Error as error:
        raise RequestRefused("invalid", f"messages: a picture is no base64: {error}", "messages") from None
