"""An answer in the words of OpenAI's chat completions, whole and streamed."""

from __future__ import annotations

import json
from collections.abc import Collection
from contextlib import aclosing
from typing import Any

from pydantic_core import from_json, to_json

from local.apps.api.errors import openai_error
from local.apps.api.event_stream import KEEP_ALIVE, Chunks
from local.apps.api.openai_chat import ChatRequest
from local.apps.api.query_stream import batches
from local.errors import LocalError
from local.models.text_calls import fits
from local.protocol.messages import ErrorInfo, ResponseGeneration, UsageInfo
from local.queries.errors import QueryRefused
from local.queries.live_query import LiveQuery
from local.queries.query_events import QueryEvent

Json = dict[str, Any]
DELTAS = {"token": "content", "thinking": "reasoning"}


class Completion:
    """One completion. `created` is seconds since 1970; `model` is the name of the model that is asked. The end of a
    stream, and a whole answer, name the one that has answered."""

    def __init__(self, query_id: str, request: ChatRequest, created: int, model: str) -> None:
        self._head = {"id": f"chatcmpl-{query_id}", "created": created, "model": model}
        self._strict = {
            tool.function.name: tool.function.parameters or {} for tool in request.tools or () if tool.function.strict
        }
        self.includes_usage = request.includes_usage
        # A message in the form of a call is no text; whether it is one is known at its end.
        forced = request.tool_choice not in (None, "auto", "none")
        self.held: Collection[str] = ("token",) if forced or (request.tools and request.response_format) else ()

    def whole(self, response: ResponseGeneration) -> Json:
        """The answer as one object."""
        calls = self._calls(response)
        message: Json = {"role": "assistant", "content": (response.answer or None) if calls else response.answer}
        if response.thinking:
            message["reasoning"] = response.thinking
        if calls:
            message["tool_calls"] = calls
        choice = {"index": 0, "message": message, "finish_reason": finish_reason(response), "logprobs": None}
        self._answered_by(response)
        head = {**self._head, "object": "chat.completion", "system_fingerprint": response.model or None}
        return {**head, "choices": [choice], "usage": _usage(response.usage)}

    def delta(self, delta: Json, ended: str | None = None) -> bytes:
        """A piece of the answer."""
        return self._chunk(choices=[{"index": 0, "delta": delta, "finish_reason": ended}])

    def end(self, response: ResponseGeneration) -> bytes:
        """The calls that the client is to make, why the answer ends, and what it cost."""
        self._answered_by(response)
        numbered = [{"index": index, **call} for index, call in enumerate(self._calls(response))]
        return b"".join(
            [
                self.delta({"tool_calls": numbered}) if numbered else b"",
                self.delta({}, finish_reason(response)),
                self._chunk(choices=[], usage=_usage(response.usage)) if self.includes_usage else b"",
                b"data: [DONE]\n\n",
            ]
        )

    def _answered_by(self, response: ResponseGeneration) -> None:
        """From here on name the model that has answered: where one could not, another did."""
        self._head["model"] = response.model or self._head["model"]

    def _calls(self, response: ResponseGeneration) -> list[Json]:
        for call in response.client_calls:
            if call.function in self._strict and not fits(call.arguments, self._strict[call.function]):
                fault = f"the model called {call.function}, which is strict, with arguments that its schema refuses"
                raise QueryRefused("bad_call", fault)
        return [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.function, "arguments": json.dumps(call.arguments, ensure_ascii=False)},
            }
            for call in response.client_calls
        ]

    def _chunk(self, **fields: Any) -> bytes:
        return _data({**self._head, "object": "chat.completion.chunk", **fields})


async def completion_chunks(query: LiveQuery, completion: Completion, keep_alive_seconds: float) -> Chunks:
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
        end = completion.end(response)
    except LocalError as error:
        yield _data(openai_error(error))
        return
    rest = missing_text(said.content, response.answer)
    yield (completion.delta({"content": rest}) if rest else b"") + end


async def answer_to(query: LiveQuery) -> ResponseGeneration:
    """The answer, complete or cut short by a cancel. Raises `QueryRefused` for a turn that failed."""
    response = await query.outcome()
    if response.status == "failed":
        error = response.error or ErrorInfo(kind="failed", message="the turn failed")
        raise QueryRefused(error.kind, error.message)
    return response


def finish_reason(response: ResponseGeneration) -> str:
    """Why the answer ends, in OpenAI's words."""
    if response.client_calls:
        return "tool_calls"
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
        if self._begun_again or event.kind not in DELTAS or event.kind in self._completion.held:
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
