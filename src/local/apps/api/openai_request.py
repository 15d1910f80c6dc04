"""An OpenAI chat completion request, and the query that it is."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field

from local.apps.api.errors import Refusal


class TextPart(BaseModel):
    """A content part; text is the only kind there is."""

    type: Literal["text"]
    text: str


class ChatMessage(BaseModel):
    """One message. "developer" is the newer word for "system"."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[TextPart] | None = None

    @property
    def text(self) -> str:
        """What it says."""
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content)
        return self.content or ""


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
    """The last message as the query, and the messages before it as its history. Raises `Refusal`."""
    if request.tools or request.functions:
        param = "tools" if request.tools else "functions"
        raise Refusal("invalid", "tools of the client are not supported; LoCAL2 uses its own", param)
    if request.n not in (None, 1):
        raise Refusal("invalid", "n: one answer is given", "n")
    *earlier, last = request.messages
    if last.role != "user" or not last.text.strip():
        raise Refusal("invalid", "messages: the last one must be a user's and say something", "messages")
    history = [
        {"role": "system" if message.role == "developer" else message.role, "content": message.text}
        for message in earlier
    ]
    return last.text, history
