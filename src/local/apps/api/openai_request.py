"""An OpenAI chat completion request, and the query that it is."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from local.apps.api.errors import RequestRefused

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


class ChatMessage(BaseModel):
    """One message. "developer" is the newer word for "system"."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[Annotated[TextPart | ImagePart, Field(discriminator="type")]] | None = None

    @property
    def text(self) -> str:
        """What it says."""
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content if isinstance(part, TextPart))
        return self.content or ""

    @property
    def picture_urls(self) -> list[str]:
        """Where its pictures are."""
        parts = self.content if isinstance(self.content, list) else []
        return [part.image_url.url for part in parts if isinstance(part, ImagePart)]

    @property
    def as_history(self) -> dict[str, str]:
        """As the model is told of it later, when its pictures are no longer shown."""
        text = "\n".join((self.text, *(EARLIER_PICTURE for _ in self.picture_urls)))
        return {"role": "system" if self.role == "developer" else self.role, "content": text}


class StreamOptions(BaseModel):
    """How to stream."""

    include_usage: bool = False


class ChatRequest(BaseModel):
    """The body of POST /v1/chat/completions. What LoCAL2 decides by itself, such as the temperature, is ignored."""

    model: str = Field(min_length=1)
    messages: list[ChatMessage] = Field(min_length=1)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: int | None = None
    tools: list[Any] | None = None
    functions: list[Any] | None = None

    @property
    def includes_usage(self) -> bool:
        """Whether a stream ends with the usage."""
        return self.stream_options is not None and self.stream_options.include_usage


def as_query(request: ChatRequest) -> tuple[str, list[dict[str, str]]]:
    """The last message as the query, and the messages before it as its history. Raises `RequestRefused`."""
    if request.tools or request.functions:
        param = "tools" if request.tools else "functions"
        raise RequestRefused("invalid", "tools of the client are not supported; LoCAL2 uses its own", param)
    if request.n not in (None, 1):
        raise RequestRefused("invalid", "n: one answer is given", "n")
    *earlier, last = request.messages
    if last.role != "user" or not last.text.strip():
        raise RequestRefused("invalid", "messages: the last one must be a user's and say something", "messages")
    return last.text, [message.as_history for message in earlier]


def pictures(request: ChatRequest) -> list[bytes]:
    """The pictures of the last message. Raises `RequestRefused` for one that is not in the request itself."""
    return [_picture(url) for url in request.messages[-1].picture_urls]


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
