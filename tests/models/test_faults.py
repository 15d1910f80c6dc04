"""Everything a model server has been seen to do wrong, in both dialects: each ends in a right answer or a typed error.

What a whole turn makes of it (an empty message, a call as text, an unknown tool) is tested with the turn.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar

import pytest

from local.core.errors import ModelError
from local.models.chat import ChatModel, ContentDelta, Delta, Done, ErrorClass, ThinkingDelta, ToolCall, classify
from local.models.http import MAX_LINE_BYTES
from local.models.ollama import OllamaModel
from local.models.openai import OpenAIModel

BUDGET_SECONDS = 50.0  # far more than any of these takes; a hang would need for ever
SILENCE_SECONDS = 0.08
LIMITS = {"first_token_seconds": 30.0, "between_tokens_seconds": 30.0, "timeout_seconds": 30.0}
IMPATIENT = {"first_token_seconds": SILENCE_SECONDS, "between_tokens_seconds": SILENCE_SECONDS, "timeout_seconds": 30.0}


class Do(Enum):
    """What a server does beside sending bytes."""

    HANG = "hang"
    DIE = "die"


Step = bytes | Do


class Ollama:
    """NDJSON, every chunk with the whole call in it."""

    name = "ollama"
    content_type = "application/x-ndjson"
    about: ClassVar = {"/api/show": {"capabilities": ["completion", "tools", "thinking"], "model_info": {}}}

    def client(self, url: str, limits: dict[str, float]) -> ChatModel:
        return OllamaModel(url, **limits)

    def chunk(self, *, reason: str = "", **message: Any) -> bytes:
        ending = {"done": True, "done_reason": reason, "eval_count": 7} if reason else {"done": False}
        return self.line({"model": "m", "message": {"role": "assistant", "content": "", **message}, **ending})

    def line(self, value: Any) -> bytes:
        return json.dumps(value).encode() + b"\n"

    def think(self, text: str) -> bytes:
        return self.chunk(thinking=text)

    def call(self, arguments: Any, name: Any = "f", call_id: str | None = "c") -> dict[str, Any]:
        return {"id": call_id, "function": {"name": name, "arguments": arguments}}

    def stop(self, reason: str = "stop", **message: Any) -> bytes:
        return self.chunk(reason=reason, **message)

    def error(self, message: str) -> bytes:
        return self.line({"error": message})

    def body(self, message: str) -> Any:
        return {"error": message}


class OpenAI:
    """Server-sent events, arguments as text."""

    name = "openai"
    content_type = "text/event-stream"
    about: ClassVar = {"/v1/models": {"data": [{"id": "m"}]}}

    def client(self, url: str, limits: dict[str, float]) -> ChatModel:
        return OpenAIModel(f"{url}/v1", **limits)

    def chunk(self, *, reason: str | None = None, **delta: Any) -> bytes:
        return self.line({"model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]})

    def line(self, value: Any) -> bytes:
        return b"data: " + json.dumps(value).encode() + b"\n\n"

    def think(self, text: str) -> bytes:
        return self.chunk(reasoning_content=text)

    def call(self, arguments: Any, name: Any = "f", call_id: str | None = "c") -> dict[str, Any]:
        worded = arguments if arguments is None or isinstance(arguments, str) else json.dumps(arguments)
        return {"id": call_id, "type": "function", "function": {"name": name, "arguments": worded}}

    def stop(self, reason: str = "stop", **delta: Any) -> bytes:
        usage = self.line({"choices": [], "usage": {"completion_tokens": 7}})
        return self.chunk(reason=reason, **delta) + usage + b"data: [DONE]\n\n"

    def error(self, message: str) -> bytes:
        return self.line({"error": {"message": message, "type": "server_error"}})

    def body(self, message: str) -> Any:
        return {"error": {"message": message, "type": "error", "code": None}}


Wire = Ollama | OpenAI


@dataclass(frozen=True)
class Heard:
    """What the caller got."""

    content: str = ""
    thinking: str = ""
    calls: tuple[tuple[str, dict[str, Any]], ...] = ()


@dataclass(frozen=True)
class Fault:
    """`steps` follow the head, or stand in its place if `status` is 0; `outcome` is what is heard, or a kind of error.

    With `bytewise` each byte comes in a packet of its own.
    """

    name: str
    steps: Callable[[Any], Sequence[Step]]
    outcome: Heard | str
    status: int = 200
    content_type: str = ""
    bytewise: bool = False
    limits: dict[str, float] | None = None


def one_call(arguments: Any) -> Heard:
    return Heard(calls=(("f", arguments),))


HI = Heard("Hi")
TWICE = Heard(calls=(("f", {"a": 1}), ("f", {"a": 2})))
HANGING: dict[str, Any] = {"outcome": "timeout", "limits": IMPATIENT}

ANSWERED = [
    Fault("plain", lambda w: [w.chunk(content="Hi"), w.stop()], HI),
    Fault("thinking before the answer", lambda w: [w.think("hm"), w.chunk(content="Hi"), w.stop()], Heard("Hi", "hm")),
    Fault("thinking after the answer", lambda w: [w.chunk(content="Hi"), w.think("hm"), w.stop()], Heard("Hi", "hm")),
    Fault("answer only in the thinking", lambda w: [w.think("It is 42."), w.stop()], Heard(thinking="It is 42.")),
    Fault("content on the last chunk", lambda w: [w.stop(content="Hi")], HI),
    Fault("think tags leak", lambda w: [w.chunk(content="<think>hm</think>Hi"), w.stop()], Heard("Hi", "hm")),
    Fault(
        "think tags leak letter by letter",
        lambda w: [*(w.chunk(content=letter) for letter in "<think>hm</think>Hi"), w.stop()],
        Heard("Hi", "hm"),
    ),
    Fault("channel tags leak", lambda w: [w.chunk(content="<|channel>thought\nhm<channel|>Hi"), w.stop()],
          Heard("Hi", "hm")),
    Fault("a tag half said at the end", lambda w: [w.chunk(content="Hi <thi"), w.stop()], Heard("Hi <thi")),
    Fault("one call", lambda w: [w.chunk(tool_calls=[w.call({"a": 1})]), w.stop()], one_call({"a": 1})),
    Fault("a call on the last chunk", lambda w: [w.stop(tool_calls=[w.call({"a": 1})])], one_call({"a": 1})),
    Fault("two calls in one chunk", lambda w: [w.chunk(tool_calls=[w.call({"a": 1}, call_id="1"),
                                                                   w.call({"a": 2}, call_id="2")]), w.stop()], TWICE),
    Fault("two calls, ids doubled or missing", lambda w: [w.chunk(tool_calls=[w.call({"a": 1}, call_id=None)]),
                                                          w.chunk(tool_calls=[w.call({"a": 2}, call_id=None)]),
                                                          w.stop()], TWICE),
    Fault("content and a call", lambda w: [w.chunk(content="Hi", tool_calls=[w.call({})]), w.stop()],
          Heard("Hi", calls=(("f", {}),))),
    Fault("arguments as a text", lambda w: [w.stop(tool_calls=[w.call('{"a": 1}')])], one_call({"a": 1})),
    Fault("arguments empty", lambda w: [w.stop(tool_calls=[w.call("")])], one_call({})),
    Fault("arguments missing", lambda w: [w.stop(tool_calls=[w.call(None)])], one_call({})),
    Fault("an unknown tool", lambda w: [w.stop(tool_calls=[w.call({}, "no_such")])], Heard(calls=(("no_such", {}),))),
    Fault("66 calls", lambda w: [w.stop(tool_calls=[w.call({}, call_id=str(n)) for n in range(66)])],
          Heard(calls=(("f", {}),) * 66)),
    Fault("cut by the token limit", lambda w: [w.chunk(content="Hi"), w.stop("length")], HI),
    Fault("an unknown reason to stop", lambda w: [w.chunk(content="Hi"), w.stop("load")], HI),
    Fault("empty message", lambda w: [w.stop()], Heard()),
    Fault("null fields", lambda w: [w.chunk(content=None, tool_calls=None), w.chunk(content="Hi"), w.stop()], HI),
    Fault("blank lines", lambda w: [b"\n\r\n", w.chunk(content="Hi"), b"\n\n", w.stop()], HI),
    Fault("CRLF", lambda w: [part.replace(b"\n", b"\r\n") for part in (w.chunk(content="Hi"), w.stop())], HI),
    Fault("byte by byte", lambda w: [w.chunk(content="Hé🙂"), w.stop()], Heard("Hé🙂"), bytewise=True),
    Fault("everything at once", lambda w: [w.chunk(content="H") + w.chunk(content="i") + w.stop()], HI),
    Fault("a body that does not end", lambda w: [w.chunk(content="Hi"), w.stop(), Do.HANG], HI),
    Fault("death after the end", lambda w: [w.chunk(content="Hi"), w.stop(), Do.DIE], HI),
    Fault("more after the end", lambda w: [w.chunk(content="Hi"), w.stop() + w.chunk(content="more")], HI),
    Fault("a flood", lambda w: [*(w.chunk(content="word ") * 100 for _ in range(30)), w.stop()], Heard("word " * 3000)),
    Fault("one huge token", lambda w: [w.chunk(content="x" * 300_000), w.stop()], Heard("x" * 300_000)),
]  # fmt: skip
BROKEN = [
    Fault("a call without a name", lambda w: [w.stop(tool_calls=[w.call({}, "")])], "bad_call"),
    Fault("a call without a function", lambda w: [w.stop(tool_calls=[{"id": "c"}])], "bad_call"),
    Fault("a call that is a text", lambda w: [w.stop(tool_calls=["f()"])], "bad_call"),
    Fault("calls that are no list", lambda w: [w.stop(tool_calls=3)], "bad_stream"),
    Fault("half of the arguments", lambda w: [w.stop(tool_calls=[w.call('{"a": ')])], "bad_call"),
    Fault("arguments that are a list", lambda w: [w.stop(tool_calls=[w.call([1])])], "bad_call"),
    Fault("arguments that are a number", lambda w: [w.stop(tool_calls=[w.call("3")])], "bad_call"),
    Fault("an end without done", lambda w: [w.chunk(content="Hi")], "stream_cut"),
    Fault("an end within a call", lambda w: [w.chunk(tool_calls=[w.call('{"a"')])],
          "stream_cut|bad_call"),
    Fault("no body", lambda w: [], "stream_cut"),
    Fault("death in the middle", lambda w: [w.chunk(content="Hi"), Do.DIE], "stream_cut"),
    Fault("death after the head", lambda w: [Do.DIE], "stream_cut"),
    Fault("half a line at the end", lambda w: [w.chunk(content="Hi"), w.stop()[:30]], "bad_stream"),
    Fault("an error in the stream", lambda w: [w.chunk(content="Hi"), w.error("runner died")], "server_error"),
    Fault("an error and then an end", lambda w: [w.error("runner died"), w.stop()], "server_error"),
    Fault("an overflow in the stream", lambda w: [w.error("request exceeds the available context size")],
          "context_overflow"),
    Fault("memory runs out in the stream", lambda w: [w.error("CUDA error: out of memory")], "out_of_memory"),
    Fault("garbage", lambda w: [b"\x00%&garbage\n", w.stop()], "bad_stream"),
    Fault("a web page", lambda w: [b"<html>Log in</html>"], "bad_stream", content_type="text/html"),
    Fault("a web page as a stream", lambda w: [b"<html>Log in</html>\n"], "bad_stream"),
    Fault("a list in the stream", lambda w: [w.line([1])], "bad_stream"),
    Fault("a message that is a text", lambda w: [w.line({"message": "Hi", "choices": [{"delta": "Hi"}]})],
          "bad_stream"),
    Fault("content that is a number", lambda w: [w.chunk(content=3)], "bad_stream"),
    Fault("text that is no UTF-8", lambda w: [w.chunk(content="Hi").replace(b"Hi", b"\xff")], "bad_stream"),
    Fault("nesting without end", lambda w: [b"data: "[: 6 * (w.name == "openai")] + b"[" * 20_000 + b"\n"],
          "bad_stream"),
    Fault("a line without end", lambda w: [b"data: {" + b" " * MAX_LINE_BYTES], "bad_stream"),
    Fault("silence instead of a head", lambda w: [Do.HANG], status=0, **HANGING),
    Fault("silence after the head", lambda w: [Do.HANG], **HANGING),
    Fault("silence while thinking", lambda w: [w.think("hm"), Do.HANG], **HANGING),
    Fault("silence while answering", lambda w: [w.chunk(content="Hi"), Do.HANG], **HANGING),
    Fault("silence within a line", lambda w: [w.chunk(content="Hi")[:20], Do.HANG], **HANGING),
    Fault("death instead of a head", lambda w: [Do.DIE], "stream_cut", status=0),
    Fault("a head that is no HTTP", lambda w: [b"SSH-2.0-OpenSSH_9.2\r\n\r\n", Do.DIE], "stream_cut", status=0),
]  # fmt: skip
STATUSES = [
    (400, "invalid options", "bad_request"),
    (400, "request (9 tokens) exceeds the available context size (8 tokens)", "context_overflow"),
    (400, '"m" does not support thinking', "unsupported"),
    (401, "unauthorized", "unauthorised"),
    (403, "forbidden", "unauthorised"),
    (404, "model 'm' not found", "model_missing"),
    (404, "404 page not found", "unreachable"),
    (408, "request timed out", "bad_request|timeout"),
    (413, "request entity too large", "bad_request|context_overflow"),
    (429, "slow down", "overloaded|rate_limit"),
    (500, "llama runner process has terminated", "server_error"),
    (500, "model requires more memory: out of memory", "out_of_memory"),
    (503, "server busy, please try again", "overloaded"),
]
FAULTS = [
    *ANSWERED,
    *BROKEN,
    *(
        Fault(f"{status} {text}", lambda w, text=text: [json.dumps(w.body(text)).encode()], kind, status=status)
        for status, text, kind in STATUSES
    ),
    Fault("500 with a web page", lambda w: [b"<html>oops"], "server_error", status=500, content_type="text/html"),
    Fault("500 without a body", lambda w: [], "server_error", status=500),
    Fault("500 whose body does not come", lambda w: [Do.HANG], status=500, **HANGING),
]


class FaultyServer:
    """Answers what is asked about the model, and breaks every chat as the fault says."""

    def __init__(self, wire: Wire, fault: Fault) -> None:
        self._wire, self._fault = wire, fault
        self._tasks: set[asyncio.Task[Any]] = set()

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        listener = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
        listener.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task
        self._tasks.add(task)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                while True:
                    await self._answer(await _request(reader), reader, writer)
        finally:
            writer.close()
            self._tasks.discard(task)

    async def _answer(self, path: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if (about := self._wire.about.get(path)) is not None:
            body = json.dumps(about).encode()
            writer.write(_head(200, "application/json") + _chunk(body) + b"0\r\n\r\n")
            return
        fault = self._fault
        if fault.status:
            kind = "application/json" if fault.status != 200 else self._wire.content_type
            writer.write(_head(fault.status, fault.content_type or kind))
        for step in fault.steps(self._wire):
            if step is Do.HANG:
                await reader.read()
            if step is Do.DIE:
                await writer.drain()
                writer.transport.abort()
                raise ConnectionError
            for piece in [bytes([byte]) for byte in step] if fault.bytewise else [step]:
                writer.write(_chunk(piece) if fault.status else piece)
                await writer.drain()
        writer.write(b"0\r\n\r\n")


async def _request(reader: asyncio.StreamReader) -> str:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = head.partition("content-length: ")[2].partition("\r\n")[0]
    await reader.readexactly(int(length or 0))
    return head.split(" ")[1]


def _head(status: int, content_type: str) -> bytes:
    return f"HTTP/1.1 {status} X\r\nContent-Type: {content_type}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()


def _chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data) if data else b""


def heard(deltas: Sequence[Delta]) -> Heard:
    return Heard(
        "".join(delta.text for delta in deltas if isinstance(delta, ContentDelta)),
        "".join(delta.text for delta in deltas if isinstance(delta, ThinkingDelta)),
        tuple((delta.name, delta.arguments) for delta in deltas if isinstance(delta, ToolCall)),
    )


def test_the_table_is_long_enough_and_names_each_fault_once() -> None:
    names = [fault.name for fault in FAULTS]
    assert len(set(names)) == len(names) >= 60


@pytest.mark.parametrize("wire", [Ollama(), OpenAI()], ids=lambda wire: wire.name)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
async def test_a_fault_ends_in_a_right_answer_or_a_typed_error_in_time(fault: Fault, wire: Wire) -> None:
    async with FaultyServer(wire, fault).serving() as url, asyncio.timeout(BUDGET_SECONDS):
        model = wire.client(url, fault.limits or LIMITS)
        try:
            deltas = [delta async for delta in model.chat("m", [{"role": "user", "content": "Hi"}])]
        except ModelError as error:
            assert isinstance(fault.outcome, str), error
            assert error.kind in fault.outcome.split("|")
            assert classify(error) is not ErrorClass.UNKNOWN
            assert 20 < len(str(error)) < 600
        else:
            assert heard(deltas) == fault.outcome
            assert isinstance(deltas[-1], Done)
        finally:
            await model.close()
