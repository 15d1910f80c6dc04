"""One chat request being answered: what is logged of it and the chunks that answer it."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from local.models.stand_in.chat_request import ChatRequest
from local.models.stand_in.endpoint import Asked
from local.models.stand_in.refusal import Refusal
from local.models.stand_in.request_log import Record
from local.models.stand_in.stand_in import StandIn, now

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Talk:
    """`chunks` are Ollama's chat chunks, the last one with the counts; they can be read once."""

    record: Record
    chunks: AsyncGenerator[Json, None]

    @classmethod
    def begin(cls, stand_in: StandIn, asked: Asked, request: ChatRequest) -> Talk:
        """Log the request and decide the answer; a `Refusal` if the model cannot do it or it does not fit."""
        record = stand_in.log.begin(asked.path, time.monotonic())
        record.model, record.options, record.think = request.model, request.options or {}, request.think
        record.messages, record.tools = list(request.messages), list(request.tools)
        record.stream, record.truncate, record.format = request.stream, request.truncate, request.format
        record.faults = [fault.kind for fault in asked.faults]
        try:
            model = stand_in.check(request)
            prompt = stand_in.prompt(request, model)
            delivery = stand_in.decide(request, model, prompt, asked.faults, record)
        except Exception as error:
            record.status = error.status if isinstance(error, Refusal) else 500
            stand_in.log.end(record, time.monotonic())
            raise
        record.prompt_tokens, record.kept_messages = prompt.tokens, len(prompt.messages)
        stand_in.library.use(model, now())
        return cls(record, stand_in.speak(request, prompt, delivery))

    async def whole(self) -> AsyncGenerator[Json, None]:
        """All chunks as one, merged as Ollama does for `stream` false."""
        thinking, content, calls, logprobs = "", "", [], []
        async with aclosing(self.chunks) as chunks:
            async for part in chunks:
                thinking += part["message"].get("thinking", "")
                content += part["message"]["content"]
                calls += part["message"].get("tool_calls", [])
                logprobs += part.get("logprobs", [])
        message = {"role": "assistant", "content": content}
        said = {"thinking": thinking, "tool_calls": calls}
        whole = part | {"message": message | {key: value for key, value in said.items() if value}}
        yield whole | ({"logprobs": logprobs} if logprobs else {})
