"""OpenAI's chat completions: the query that a request is, and its answer in their words, whole and streamed."""

from __future__ import annotations

import base64
import binascii
import re
from contextlib import aclosing
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field
from pydantic_core import from_json, to_json

from local.apps.api.errors import RequestRefused, openai_error
from local.apps.api.event_stream import KEEP_ALIVE, Chunks
from local.apps.api.query_stream import batches
from local.errors import LocalError
from local.protocol.messages import ErrorInfo, ResponseGeneration, UsageInfo
from local.queries.errors import QueryRefused
from local.queries.live_query import LiveQuery
from local.queries.query_events import QueryEvent

Json = dict[str, Any]
DELTAS = {"token": "content", "thinking": "reasoning"}
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
        """The text of the message."""
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


class Completion:
    """One completion. `created` is seconds since 1970; `model` is echoed as the client named it."""

    def __init__(self, query_id: str, model: str, created: int) -> None:
        self._head = {"id": f"chatcmpl-{query_id}", "created": created, "model": model}

    def whole(self, response: ResponseGeneration) -> Json:
        """The answer as one object."""
        message = {"role": "assistant", "content": response.answer}
        if response.thinking:
            message["reasoning"] = response.thinking
        choice = {"index": 0, "message": message, "finish_reason": finish_reason(response)}
        return {**self._head, "object": "chat.completion", "choices": [choice], "usage": _usage(response.usage)}

    def delta(self, delta: Json, ended: str | None = None) -> bytes:
        """A piece of the answer."""
        return self._chunk(choices=[{"index": 0, "delta": delta, "finish_reason": ended}])

    def usage(self, response: ResponseGeneration) -> bytes:
        """The chunk that says what it cost."""
        return self._chunk(choices=[], usage=_usage(response.usage))

    def _chunk(self, **fields: Any) -> bytes:
        return _data({**self._head, "object": "chat.completion.chunk", **fields})


async def completion_chunks(
    query: LiveQuery, completion: Completion, *, include_usage: bool, keep_alive_seconds: float
) -> Chunks:
    """The answer as it is said; what is ready together is one chunk."""
    said = _Said(completion)
    yield completion.delta({"role": "assistant", "content": ""})
    followed = batches(query, 0, tick_seconds=keep_alive_seconds)
    async with aclosing(followed):
        async for events in followed:
            if chunk := b"".join([said.written(event) for event in events]):
                yield chunk
            elif not events:
                yield KEEP_ALIVE
    try:
        response = await answer_to(query)
    except LocalError as error:
        yield _data(openai_error(error))
        return
    rest = missing_text(said.content, response.answer)
    yield b"".join(
        [
            completion.delta({"content": rest}) if rest else b"",
            completion.delta({}, finish_reason(response)),
            completion.usage(response) if include_usage else b"",
            b"data: [DONE]\n\n",
        ]
    )


async def answer_to(query: LiveQuery) -> ResponseGeneration:
    """The answer, complete or cut short by a cancel. Raises `QueryRefused` for a turn that failed."""
    response = await query.outcome()
    if response.status == "failed":
        error = response.error or ErrorInfo(kind="failed", message="the turn failed")
        raise QueryRefused(error.kind, error.message)
    return response


def finish_reason(response: ResponseGeneration) -> str:
    """Why the answer ends, in OpenAI's words."""
    return "length" if response.cut_off else "stop"


class _Said:
    """What the client has been sent of the answer, which cannot be taken back."""

    def __init__(self, completion: Completion) -> None:
        self._completion = completion
        self._begun_again = False
        self.content = ""

    def written(self, event: QueryEvent) -> bytes:
        """A streamed fragment; nothing once the answer was begun again by a restarted generator."""
        self._begun_again = self._begun_again or event.kind == "snapshot"
        if self._begun_again or event.kind not in DELTAS:
            return b""
        text = from_json(event.payload)["text"]
        if event.kind == "token":
            self.content += text
        return self._completion.delta({DELTAS[event.kind]: text})


def missing_text(said: str, answer: str) -> str:
    """What has to be said after `said` so that the client has the whole answer at the end."""
    if said.endswith(answer):  # said may begin with what the model said before it called a tool
        return ""
    return answer[len(said) :] if answer.startswith(said) else f"\n\n{answer}"


def _usage(usage: UsageInfo) -> Json:
    total = usage.prompt_tokens + usage.completion_tokens
    return {
        "prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens, "total_tokens": total,
    }  # fmt: skip


def _data(value: Json) -> bytes:
    return b"data: %s\n\n" % to_json(value)
