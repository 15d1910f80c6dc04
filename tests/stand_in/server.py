"""The stand-in as tests use it: with faults on demand, a log of what it was sent, and OpenAI's API as Ollama speaks it.

It wraps the application of `local.stand_in.server`: every request is passed on to that as one of Ollama's, and what
comes back is changed, delayed, broken off or worded for OpenAI on its way out. Beside the routes of the stand-in it has
POST and DELETE /stand_in/fault, and GET and DELETE /stand_in/log.
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import socket
import struct
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal
from uuid import uuid4

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from local.stand_in.server import (
    JSON,
    NDJSON,
    Expression,
    OllamaRefusal,
    StandInSettings,
    checked_field,
    count,
    create_app,
    json_line,
    merged,
    objects,
    ollama_error,
    parse_json,
    serve_app,
    split,
)

__all__ = ["StandInSettings", "serve"]

Json = dict[str, Any]

# Faults on demand: everything a model server has been seen to do wrong.


class FaultKind(StrEnum):
    """What goes wrong."""

    STATUS = "status"
    FIRST_TOKEN_DELAY = "first_token_delay"
    CHUNK_DELAY = "chunk_delay"
    EOF = "eof"
    ERROR_LINE = "error_line"
    HALF_LINE = "half_line"
    GARBAGE = "garbage"
    DISCONNECT = "disconnect"
    THINK_TAGS = "think_tags"
    CALL_AS_TEXT = "call_as_text"
    EMPTY = "empty"
    REPEAT_CALL = "repeat_call"
    FLOOD = "flood"


GENERATING = ("/api/chat", "/api/generate", "/v1/chat/completions")
_WIRE = frozenset({FaultKind.EOF, FaultKind.ERROR_LINE, FaultKind.HALF_LINE, FaultKind.GARBAGE, FaultKind.DISCONNECT})


class Disconnect(Exception):
    """The connection is to be dropped without an end."""


class InjectedFault(BaseModel):
    """One fault, injected `times` times after `skip` requests went well.

    It strikes requests to `path` (left out: all that generate text) whose body matches the regular expression `match`.
    `status` and `body`: for status. `seconds`: for the delays. `after`: chunks sent before the stream breaks.
    `message`: for error_line. `style`: for think_tags. `tokens`: for flood.
    """

    model_config = ConfigDict(extra="forbid")

    kind: FaultKind
    times: int = Field(1, ge=1)
    skip: int = Field(0, ge=0)
    path: str = ""
    match: Expression = ""
    status: int = Field(500, ge=400, le=599)
    body: str | Json = {"error": "model runner has unexpectedly stopped"}
    seconds: float = Field(0.0, ge=0)
    after: int = Field(1, ge=0)
    message: str = "an error was encountered while running the model"
    style: Literal["think", "channel"] = "think"
    tokens: int = Field(2000, ge=1)

    def strikes(self, path: str, body: str) -> bool:
        """Whether the fault concerns such a request."""
        return (path == self.path if self.path else path in GENERATING) and bool(re.search(self.match, body))


class FaultInjector:
    """The faults still to be injected."""

    def __init__(self) -> None:
        self._pending: list[InjectedFault] = []

    def add(self, fault: InjectedFault) -> None:
        """Inject one more fault."""
        self._pending.append(fault)

    def clear(self) -> None:
        """Forget the faults still to be injected."""
        self._pending.clear()

    def take(self, path: str, body: str) -> tuple[InjectedFault, ...]:
        """Use up what strikes this request: the oldest fault of each kind."""
        taken: dict[FaultKind, InjectedFault] = {}
        for fault in [fault for fault in self._pending if fault.strikes(path, body)]:
            if fault.skip:
                fault.skip -= 1
            elif fault.kind not in taken:
                taken[fault.kind] = fault
                fault.times -= 1
        self._pending = [fault for fault in self._pending if fault.times]
        return tuple(taken.values())


async def encoded(
    chunks: AsyncGenerator[Json, None], encode: Callable[[Json], bytes], faults: Sequence[InjectedFault]
) -> AsyncGenerator[bytes, None]:
    """Turn chunks into bytes, and break the stream where a fault says so, at the latest in place of its end."""
    fault = next((fault for fault in faults if fault.kind in _WIRE), None)
    sent = 0
    async with aclosing(chunks) as source:
        async for chunk in source:
            if fault and (sent >= fault.after or chunk["done"]):
                match fault.kind:
                    case FaultKind.DISCONNECT:
                        raise Disconnect
                    case FaultKind.GARBAGE:
                        yield b"\x00%&garbage\n"
                    case FaultKind.HALF_LINE:
                        whole = encode(chunk)
                        yield whole[: len(whole) // 2]
                    case FaultKind.ERROR_LINE:
                        yield encode({"error": fault.message, "done": True})
                if fault.kind is not FaultKind.GARBAGE:
                    return
                fault = None
            yield encode(chunk)
            sent += 1


async def twisted(
    parts: AsyncGenerator[Json, None], faults: Sequence[InjectedFault], body: Json
) -> AsyncGenerator[Json, None]:
    """Change what is said, and how fast, as the faults demand."""
    kinds = {fault.kind: fault for fault in faults}
    if kinds.keys() & {
        FaultKind.THINK_TAGS, FaultKind.CALL_AS_TEXT, FaultKind.EMPTY, FaultKind.REPEAT_CALL, FaultKind.FLOOD
    }:  # fmt: skip
        async with aclosing(parts) as source:
            parts = _each(_said_otherwise([part async for part in source], kinds, body))
    first, between = kinds.get(FaultKind.FIRST_TOKEN_DELAY), kinds.get(FaultKind.CHUNK_DELAY)
    async with aclosing(parts) as source:
        await asyncio.sleep(first.seconds if first else 0)
        async for part in source:
            yield part
            await asyncio.sleep(between.seconds if between and not part["done"] else 0)


async def _counted(parts: AsyncGenerator[Json, None], record: RequestRecord) -> AsyncGenerator[Json, None]:
    async with aclosing(parts) as source:
        async for part in source:
            record.prompt_tokens = part.get("prompt_eval_count", record.prompt_tokens)
            yield part


async def _each(parts: Sequence[Json]) -> AsyncGenerator[Json, None]:
    for part in parts:
        yield part


def _said_otherwise(parts: Sequence[Json], kinds: dict[FaultKind, InjectedFault], body: Json) -> list[Json]:
    *said, last = parts
    thinking = [part for part in said if part["message"].get("thinking")]
    content = [part["message"]["content"] for part in said if part["message"]["content"]]
    calls = [call for part in said for call in part["message"].get("tool_calls", ())]
    if fault := kinds.get(FaultKind.THINK_TAGS):
        opening, closing = ("<think>", "</think>") if fault.style == "think" else ("<|channel>thought\n", "<channel|>")
        thought = "".join(part["message"]["thinking"] for part in thinking)
        # Five characters a chunk, so that the tags are cut across chunks.
        thinking, content = [], list(split(f"{opening}{thought}{closing}{''.join(content)}", 5))
    if FaultKind.CALL_AS_TEXT in kinds and calls:
        call = {key: calls[0]["function"][key] for key in ("name", "arguments")}
        content, calls = list(split(json.dumps(call), 16)), []
    if FaultKind.EMPTY in kinds:
        content, calls = [], []
    made = [call for message in body.get("messages") or () for call in message.get("tool_calls") or ()]
    if FaultKind.REPEAT_CALL in kinds and made:
        content, calls = [], [{"id": f"call_{uuid4().hex[:8]}", **made[-1]}]
    if flood := kinds.get(FaultKind.FLOOD):
        content, calls = ["word"] * flood.tokens, []

    def part_of(**message: Any) -> Json:
        return {**{key: last[key] for key in ("model", "created_at")}, "done": False,
                "message": {"role": "assistant", "content": "", **message}}  # fmt: skip

    texts = [part_of(content=text) for text in content]
    last = {**last, "eval_count": count("".join(content)) + len(thinking)}
    return [*thinking, *texts, *(part_of(tool_calls=[call]) for call in calls), last]


# What the stand-in was really sent, and how each request ended.


@dataclass(slots=True)
class RequestRecord:
    """One generating request. Times are the server's monotonic clock in seconds; `disconnected_at` is set if the client
    left before the end."""

    number: int
    path: str
    started_at: float
    model: str = ""
    messages: list[Json] = field(default_factory=list)
    tools: list[Json] = field(default_factory=list)
    options: Json = field(default_factory=dict)
    think: bool | str | None = None
    stream: bool = True
    truncate: bool = True
    format: Any = None
    faults: list[str] = field(default_factory=list)
    status: int = 0
    chunks: int = 0
    prompt_tokens: int = 0  # of the prompt, as the server has counted it
    finished_at: float | None = None
    disconnected_at: float | None = None


class RequestLog:
    """The last requests, oldest first."""

    def __init__(self, size: int) -> None:
        self._records: deque[RequestRecord] = deque(maxlen=size)
        self._open: set[int] = set()
        self._count = 0
        self._changed = asyncio.Event()

    def begin(self, path: str, now: float) -> RequestRecord:
        """Open the record of a request; `end` must follow."""
        self._count += 1
        record = RequestRecord(self._count, path, now)
        self._records.append(record)
        self._open.add(record.number)
        self._changed.set()
        return record

    def end(self, record: RequestRecord, now: float) -> None:
        """Close the record."""
        record.finished_at = now
        self._open.discard(record.number)
        self._changed.set()

    async def until_idle(self) -> None:
        """Wait until no request is being answered."""
        await self._until(lambda: not self._open)

    async def until_begun(self, requests: int) -> None:
        """Wait until the log holds so many requests."""
        await self._until(lambda: len(self._records) >= requests)

    async def _until(self, reached: Callable[[], bool]) -> None:
        while not reached():
            self._changed.clear()
            await self._changed.wait()

    def clear(self) -> None:
        """Forget what was logged."""
        self._records.clear()

    def entries(self) -> list[Json]:
        """Every record as JSON."""
        return [asdict(record) for record in self._records]


# An answer on its way out.


class Generation(Response):
    """Sends each part as it comes; the status goes out with the first one, as in Ollama.

    A `OllamaRefusal` before the first part becomes an error response, worded by `refuse`.
    """

    def __init__(
        self,
        log: RequestLog,
        record: RequestRecord,
        parts: AsyncGenerator[bytes, None],
        media_type: str,
        refuse: Callable[[OllamaRefusal], Response],
    ) -> None:
        super().__init__(media_type=media_type)
        del self.headers["content-length"]
        self._log, self._record, self._parts, self._refuse = log, record, parts, refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        work = asyncio.create_task(self._send_parts(scope, receive, send))
        left = asyncio.create_task(_client_left(receive))
        try:
            await asyncio.wait((work, left), return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                self._record.disconnected_at = time.monotonic()
        finally:
            left.cancel()
            work.cancel()
            # Waits until the generator has given its place in the queue back; a cancellation is not an error here.
            outcome, _ = await asyncio.gather(work, left, return_exceptions=True)
            self._log.end(self._record, time.monotonic())
        if isinstance(outcome, Exception):
            raise outcome

    async def _send_parts(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with aclosing(self._parts) as parts:
                async for part in parts:
                    await self._start(send)
                    await send({"type": "http.response.body", "body": part, "more_body": True})
                    self._record.chunks += 1
        except OllamaRefusal as refusal:
            self._record.status = refusal.status
            await self._refuse(refusal)(scope, receive, send)
            return
        except Disconnect:
            await self._start(send)
            # Returning without an end makes the server drop the connection.
            return
        await self._start(send)
        await send({"type": "http.response.body", "body": b""})

    async def _start(self, send: Send) -> None:
        if not self._record.status:
            self._record.status = 200
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})


async def _client_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


# The part of OpenAI's HTTP API that Ollama speaks under /v1 (shapes: Ollama's openai/ and middleware/openai.go).

_ERROR_TYPES = {400: "invalid_request_error", 404: "not_found_error"}


def openai_error(refusal: OllamaRefusal) -> Response:
    """OpenAI's error body."""
    return JSONResponse(_error(str(refusal), refusal.status), refusal.status)


def _error(message: str, status: int) -> Json:
    kind = _ERROR_TYPES.get(status, "api_error")
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


def _model(entry: Json) -> Json:
    created = int(datetime.fromisoformat(entry["modified_at"]).timestamp())
    return {"id": entry["name"], "object": "model", "created": created, "owned_by": "library"}


def _head(completion_id: str, kind: str, part: Json) -> Json:
    created = int(datetime.fromisoformat(part["created_at"]).timestamp())
    head = {"id": completion_id, "object": kind, "created": created}
    return head | {"model": part["model"], "system_fingerprint": "fp_ollama"}


def _completion(completion_id: str, part: Json) -> bytes:
    if "error" in part:
        raise OllamaRefusal(500, part["error"])
    message = _message(part)
    reason = "tool_calls" if "tool_calls" in message else part["done_reason"]
    choice = {"index": 0, "message": message, "finish_reason": reason} | _openai_api_logprobs(part)
    return json.dumps(
        _head(completion_id, "chat.completion", part) | {"choices": [choice], "usage": _usage(part)}
    ).encode()


def _event_maker(completion_id: str, with_usage: bool) -> Callable[[Json], bytes]:
    called = False

    def events(part: Json) -> bytes:
        nonlocal called
        if "error" in part:
            return _event(_error(part["error"], 500))
        head, delta = _head(completion_id, "chat.completion.chunk", part), _message(part)
        called = called or "tool_calls" in delta
        reason = ("tool_calls" if called else part["done_reason"]) if part["done"] else None
        choice = {"index": 0, "delta": delta, "finish_reason": reason} | _openai_api_logprobs(part)
        sent = _event(head | {"choices": [choice]})
        if part["done"]:
            sent += _event(head | {"choices": [], "usage": _usage(part)}) if with_usage else b""
            sent += b"data: [DONE]\n\n"
        return sent

    return events


def _event(value: Json) -> bytes:
    return b"data: " + json.dumps(value, separators=(",", ":")).encode() + b"\n\n"


def _message(part: Json) -> Json:
    message = part["message"]
    said: Json = {"role": message["role"], "content": message["content"]}
    if message.get("thinking"):
        said["reasoning"] = message["thinking"]
    if message.get("tool_calls"):
        said["tool_calls"] = [_call(call) for call in message["tool_calls"]]
    return said


def _openai_api_logprobs(part: Json) -> Json:
    return {"logprobs": {"content": part["logprobs"]}} if part.get("logprobs") else {}


def _call(call: Json) -> Json:
    function = call["function"]
    worded = {"name": function["name"], "arguments": json.dumps(function["arguments"])}
    return {"id": call["id"], "index": function["index"], "type": "function", "function": worded}


def _usage(part: Json) -> Json:
    prompt, completion = part["prompt_eval_count"], part["eval_count"]
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def _base64(vector: list[float]) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode()


def to_ollama(body: Json) -> Json:
    """The body of POST /api/chat that asks the same; `OllamaRefusal` 400 for what Ollama refuses."""
    messages = objects(body, "messages")
    names = {call.get("id"): _function(call).get("name") for m in messages for call in objects(m, "tool_calls")}
    effort = checked_field(body, "reasoning_effort", str) or (checked_field(body, "reasoning", dict) or {}).get(
        "effort"
    )
    return {
        "model": body.get("model"),
        "messages": [_ollama_message(message, names) for message in messages],
        "tools": body.get("tools"),
        "stream": bool(body.get("stream")),
        "options": _options(body),
        "think": False if effort == "none" else effort,
        "format": _ollama_format(checked_field(body, "response_format", dict) or {}),
        "logprobs": body.get("logprobs"),
        "top_logprobs": body.get("top_logprobs"),
    }


def _ollama_message(message: Json, names: dict[Any, Any]) -> Json:
    content = message.get("content")
    if content is None and not message.get("tool_calls"):
        raise OllamaRefusal(400, "invalid message content type: <nil>")
    rewritten: Json = {
        "role": message.get("role"),
        "content": _plain_text(content),
        "thinking": message.get("reasoning"),
    }
    if message.get("role") == "tool":
        rewritten["tool_name"] = message.get("name") or names.get(message.get("tool_call_id"))
        rewritten["tool_call_id"] = message.get("tool_call_id")
    if calls := objects(message, "tool_calls"):
        rewritten["tool_calls"] = [_ollama_call(call) for call in calls]
    return rewritten


def _plain_text(content: Any) -> str:
    if not isinstance(content, list):
        return content or ""
    if not all(isinstance(part, dict) and part.get("type") in ("text", "image_url") for part in content):
        raise OllamaRefusal(400, "invalid message format")
    return "\n".join(str(part["text"]) for part in content if part.get("text"))


def _ollama_call(call: Json) -> Json:
    function = _function(call)
    try:
        arguments = json.loads(function.get("arguments") or "{}")
    except (TypeError, json.JSONDecodeError):
        raise OllamaRefusal(400, "invalid tool call arguments") from None
    return {"id": call.get("id"), "function": {"name": function.get("name"), "arguments": arguments}}


def _function(call: Json) -> Json:
    return checked_field(call, "tool_calls.function", dict) or {}


def _options(body: Json) -> Json:
    names = {"max_tokens": "num_predict", "max_completion_tokens": "num_predict"}
    names |= {name: name for name in ("seed", "stop", "temperature", "top_p", "frequency_penalty", "presence_penalty")}
    return {option: body[name] for name, option in names.items() if body.get(name) is not None}


def _ollama_format(wanted: Json) -> Any:
    match wanted.get("type"):
        case "json_object":
            return "json"
        case "json_schema":
            return (checked_field(wanted, "response_format.json_schema", dict) or {}).get("schema")
    return None


# The application.

LOG_SIZE = 200


class FaultyStandIn:
    """An ASGI application around that of the stand-in."""

    def __init__(self, settings: StandInSettings, log_size: int = LOG_SIZE) -> None:
        self._app: ASGIApp = create_app(settings)
        self.faults, self.log = FaultInjector(), RequestLog(log_size)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"] if scope["type"] == "http" else ""
        if path == "/stand_in/fault":
            answer = await self._inject(Request(scope, receive))
        elif path == "/stand_in/log":
            answer = await self._show_log(Request(scope, receive))
        elif path.startswith("/v1/") or scope.get("method") == "POST":
            answer = await self._answer(Request(scope, receive))
        else:
            return await self._app(scope, receive, send)
        return await answer(scope, receive, send)

    async def _inject(self, request: Request) -> Response:
        if request.method == "DELETE":
            self.faults.clear()
            return Response(status_code=204)
        try:
            added = InjectedFault.model_validate_json(await request.body())
        except ValidationError as error:
            first = error.errors()[0]
            return JSONResponse({"error": f"fault: {'.'.join(map(str, first['loc']))}: {first['msg']}"}, 400)
        self.faults.add(added)
        return JSONResponse(added.model_dump(mode="json"))

    async def _show_log(self, request: Request) -> Response:
        """The requests so far; ?begun=N waits until there are N, ?idle=1 until none is under way any more."""
        if request.method == "DELETE":
            self.log.clear()
            return Response(status_code=204)
        wanted = request.query_params
        if wanted.get("begun", "").isdecimal():
            await self.log.until_begun(int(wanted["begun"]))
        if wanted.get("idle"):
            await self.log.until_idle()
        return JSONResponse({"now": time.monotonic(), "requests": self.log.entries()})

    async def _answer(self, request: Request) -> Response:
        path, body = request.url.path, await request.body()
        refuse = openai_error if path.startswith("/v1/") else ollama_error
        faults = self.faults.take(path, body.decode("utf-8", "replace"))
        try:
            if path == "/api/chat":
                asked = parse_json(body)
                return await self._chat(path, asked, faults, bool(asked.get("stream", True)), _lines, refuse)
            if path == "/v1/chat/completions":
                return await self._complete(path, parse_json(body), faults)
        except OllamaRefusal as refusal:
            return refuse(refusal)
        if status := next((fault for fault in faults if fault.kind is FaultKind.STATUS), None):
            return _failing(status)
        await asyncio.sleep(sum(fault.seconds for fault in faults if fault.kind is FaultKind.FIRST_TOKEN_DELAY))
        return await self._other(request.method, path, body)

    async def _chat(
        self,
        path: str,
        asked: Json,
        faults: Sequence[InjectedFault],
        is_streamed: bool,
        encoder: Callable[[bool], tuple[str, Callable[[Json], bytes]]],
        refuse: Callable[[OllamaRefusal], Response],
    ) -> Response:
        if not asked.get("messages"):  # the model is to be loaded, and nothing to be said
            return await self._other("POST", "/api/chat", json.dumps(asked).encode())
        record = self.log.begin(path, time.monotonic())
        for name in ("model", "messages", "tools", "options", "think", "truncate", "format"):
            if asked.get(name) is not None:
                setattr(record, name, asked[name])
        record.stream, record.faults = is_streamed, [fault.kind for fault in faults]
        if status := next((fault for fault in faults if fault.kind is FaultKind.STATUS), None):
            record.status = status.status
            self.log.end(record, time.monotonic())
            return _failing(status)
        leaks = any(fault.kind is FaultKind.THINK_TAGS for fault in faults)
        body = {**asked, "stream": True, **({"think": None} if leaks else {})}
        status_code, parts = await self._passed_on("POST", "/api/chat", json.dumps(body).encode())
        if status_code != 200:
            record.status = status_code
            self.log.end(record, time.monotonic())
            [part] = [part async for part in parts]
            return refuse(OllamaRefusal(status_code, part["error"]))
        media_type, encode = encoder(is_streamed)
        said = _counted(twisted(parts, faults, asked), record)
        chunks = said if is_streamed else _whole(said)
        return Generation(self.log, record, encoded(chunks, encode, faults), media_type, refuse)

    async def _complete(self, path: str, body: Json, faults: Sequence[InjectedFault]) -> Response:
        if not body.get("messages"):
            raise OllamaRefusal(400, "[] is too short - 'messages'")
        completion_id = f"chatcmpl-{uuid4().hex[:12]}"
        with_usage = bool((checked_field(body, "stream_options", dict) or {}).get("include_usage"))

        def encoder(is_streamed: bool) -> tuple[str, Callable[[Json], bytes]]:
            if is_streamed:
                return "text/event-stream", _event_maker(completion_id, with_usage)
            return "application/json", lambda part: _completion(completion_id, part)

        return await self._chat(path, to_ollama(body), faults, bool(body.get("stream")), encoder, openai_error)

    async def _other(self, method: str, path: str, body: bytes) -> Response:
        """What is neither a chat nor its control; under /v1 models and vectors."""
        if path.startswith("/v1/models"):
            _, parts = await self._passed_on("GET", "/api/tags", b"")
            models = [_model(entry) for part in [part async for part in parts] for entry in part["models"]]
            if path == "/v1/models":
                return JSONResponse({"object": "list", "data": models})
            name = path.removeprefix("/v1/models/")
            found = next((model for model in models if model["id"] == name), None)
            missing = OllamaRefusal(404, f"model '{name}' not found")
            return openai_error(missing) if found is None else JSONResponse(found)
        if path == "/v1/embeddings":
            return await self._embeddings(parse_json(body))
        status, headers, content = await self._asked(method, path, body)
        return Response(content, status, media_type=headers.get("content-type"))

    async def _embeddings(self, body: Json) -> Response:
        status, _, content = await self._asked("POST", "/api/embed", json.dumps(body).encode())
        answer = json.loads(content)
        if status != 200:
            return openai_error(OllamaRefusal(status, answer["error"]))
        is_base64 = str(body.get("encoding_format")).lower() == "base64"
        vectors = [_base64(vector) if is_base64 else vector for vector in answer["embeddings"]]
        data = [{"object": "embedding", "embedding": each, "index": index} for index, each in enumerate(vectors)]
        usage = {"prompt_tokens": answer["prompt_eval_count"], "total_tokens": answer["prompt_eval_count"]}
        return JSONResponse({"object": "list", "data": data, "model": answer["model"], "usage": usage})

    async def _asked(self, method: str, path: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        """The whole answer of the stand-in."""
        messages = self._messages(method, path, body)
        start = await anext(messages)
        headers = {name.decode(): value.decode() for name, value in start["headers"]}
        return start["status"], headers, b"".join([message["body"] async for message in messages])

    async def _passed_on(self, method: str, path: str, body: bytes) -> tuple[int, AsyncGenerator[Json, None]]:
        """The status of the stand-in's answer, and its lines as they come."""
        messages = self._messages(method, path, body)
        start = await anext(messages)

        async def lines() -> AsyncGenerator[Json, None]:
            async with aclosing(messages) as source:
                async for message in source:
                    for line in message["body"].splitlines():
                        yield json.loads(line)

        return start["status"], lines()

    async def _messages(self, method: str, path: str, body: bytes) -> AsyncGenerator[dict[str, Any], None]:
        """What the stand-in sends; closing this is the client's leaving."""
        sent: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue(1)
        given = [{"type": "http.request", "body": body, "more_body": False}]
        scope = {
            "type": "http", "asgi": {"version": "3.0", "spec_version": "2.4"}, "http_version": "1.1", "method": method,
            "path": path, "raw_path": path.encode(), "query_string": b"", "root_path": "", "scheme": "http",
            "headers": [(b"content-type", b"application/json")], "client": None, "server": None,
        }  # fmt: skip

        async def receive() -> dict[str, Any]:
            if given:
                return given.pop()
            await asyncio.Event().wait()
            raise AssertionError("this is never reached")

        async def run() -> None:
            try:
                await self._app(scope, receive, sent.put)  # type: ignore[arg-type]  # it takes any message
            finally:
                await sent.put(None)

        running = asyncio.create_task(run())
        try:
            while (message := await sent.get()) is not None:
                yield message if message["type"] != "http.response.body" else {"body": b"", **message}
        finally:
            running.cancel()
            with suppress(asyncio.QueueEmpty):
                while True:
                    sent.get_nowait()
            await asyncio.wait([running])


def _lines(is_streamed: bool) -> tuple[str, Callable[[Json], bytes]]:
    return (NDJSON, json_line) if is_streamed else (JSON, _json_or_error)


def _json_or_error(part: Json) -> bytes:
    if "error" in part:
        raise OllamaRefusal(500, part["error"])
    return json_line(part)


async def _whole(parts: AsyncGenerator[Json, None]) -> AsyncGenerator[Json, None]:
    yield await merged(parts)


def _failing(fault: InjectedFault) -> Response:
    if isinstance(fault.body, str):
        return Response(fault.body, fault.status, media_type="text/plain")
    return Response(json.dumps(fault.body), fault.status, media_type="application/json; charset=utf-8")


async def serve(
    settings: StandInSettings, sock: socket.socket, stop: asyncio.Event | None = None, log_size: int = LOG_SIZE
) -> None:
    """Serve on a bound socket until `stop` is set, as the stand-in itself does."""
    await serve_app(FaultyStandIn(settings, log_size), sock, stop)
