"""A model server without a model: Ollama's NDJSON over HTTP from a bare asyncio server, in its own process.

What it does is written in the last message of the user, as words: tokens=8, wait=0.35 (seconds before the first token),
pause=0.002 (seconds between tokens), stamp=1 (tokens are the nanoseconds of the monotonic clock at which they are
sent), call=instant (name of a tool to call first), argument=text:hello (what it is given). Without pauses an answer is
one write; with burst=1, one for each token. Who asks to have it think gets a word of that first; who gives a JSON
Schema gets the least that it allows.

A server with `slots` answers so many queries at once; the others wait, and their prompt counts as read in `wait`.

`GET /log` is which queries it has been asked since the last look, and when.
"""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

from benchmarks.peer import Pipe
from local.bus.messages import parted
from local.stand_in.server import smallest

Json = dict[str, Any]

MODEL = "gemma4:12b"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"
ANSWERS: dict[str, Json] = {
    "/api/version": {"version": "0.12.6"},
    "/api/tags": {"models": [{"name": MODEL, "model": MODEL}]},
    "/api/ps": {"models": []},
    "/api/show": {
        "capabilities": ["completion", "tools", "thinking"],
        "model_info": {"general.architecture": "bench", "bench.context_length": 32_768},
    },
}
MISSING: Json = {"error": "model not found, try pulling it first"}  # such as one that makes vectors

_log: list[tuple[str, float]] = []
_places: AbstractAsyncContextManager[object] = nullcontext()


def serve(pipe: Pipe, slots: int = 0) -> None:
    """The server's process; its first word is its address."""
    global _places
    _places = asyncio.Semaphore(slots) if slots else _places
    asyncio.run(_serve(pipe))


async def _serve(pipe: Pipe) -> None:
    server = await asyncio.start_server(_talk, "127.0.0.1", 0, backlog=256)
    pipe.send(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    await server.serve_forever()


async def _talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower().split("\r\n")
            sizes = [line.partition(":")[2] for line in head if line.startswith("content-length:")]
            body = await reader.readexactly(int(sizes[0])) if sizes else b""
            path = head[0].split()[1]
            if path == "/api/chat":
                await _chat(json.loads(body), writer)
            else:
                known = path in ANSWERS or path == "/log"
                _answer(200 if known else 404, _take_log() if path == "/log" else ANSWERS.get(path, MISSING), writer)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


def _answer(status: int, said: Json, writer: asyncio.StreamWriter) -> None:
    answer = json.dumps(said).encode()
    writer.write(b"HTTP/1.1 %d -\r\nContent-Type: application/json\r\n" % status)
    writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(answer), answer))


def _take_log() -> Json:
    taken: Json = {"asked": list(_log)}
    _log.clear()
    return taken


async def _chat(asked: Json, writer: asyncio.StreamWriter) -> None:
    messages = asked["messages"]
    if not asked.get("stream", True):  # a model is to be loaded
        _answer(200, {"model": MODEL, "message": {"role": "assistant", "content": ""}, "done": True}, writer)
        return
    query = next((message["content"] for message in reversed(messages) if message["role"] == "user"), "")
    if not query or "format" in asked or "[RESULT]" in query:  # an observer asks
        said = json.dumps(smallest(asked["format"])) if "format" in asked else "It is right. [RESULT] 4"
        writer.write(HEAD + _chunk(said) + _chunk("", done=True) + END)
        return
    query = parted(query).question  # what stands before it is the block of context
    _log.append((query, time.time()))
    async with _places:
        await _say(dict(word.split("=") for word in query.split()), messages[-1]["role"] == "tool", asked, writer)


async def _say(order: dict[str, str], has_called: bool, asked: Json, writer: asyncio.StreamWriter) -> None:
    head = HEAD + (_chunk("", thinking="Hm.") if asked.get("think") else b"")
    if "wait" in order:
        await asyncio.sleep(float(order["wait"]))
    if "call" in order and not has_called:
        name, _, value = order.get("argument", "text:hello").partition(":")
        call = {"id": "call_1", "function": {"name": order["call"], "arguments": {name: value}}}
        writer.write(head + _chunk("", tool_calls=[call]) + _chunk("", done=True) + END)
        return
    tokens, pause = int(order.get("tokens", "8")), float(order.get("pause", "0"))
    if not pause and "burst" not in order:
        content = b"".join(_chunk(f"word{n} ") for n in range(tokens))
        writer.write(head + content + _chunk("", done=True, read=_read(order, asked)) + END)
        return
    writer.write(head)
    for n in range(tokens):
        writer.write(_chunk(f"{time.monotonic_ns()} " if "stamp" in order else f"word{n} "))
        await (asyncio.sleep(pause) if pause else writer.drain())
    writer.write(_chunk("", done=True) + END)


def _read(order: dict[str, str], asked: Json) -> Json:
    """What a server with slots reports of the prompt."""
    if not isinstance(_places, asyncio.Semaphore):
        return {}
    seconds = float(order.get("wait", "0"))
    return {"prompt_eval_count": len(str(asked)) // 4, "prompt_eval_duration": int(seconds * 1e9)}


def _chunk(content: str, *, done: bool = False, read: Json | None = None, **fields: Any) -> bytes:
    line: Json = {
        "model": MODEL, "created_at": "2025-01-01T00:00:00.000000Z",
        "message": {"role": "assistant", "content": content, **fields}, "done": done,
    }  # fmt: skip
    if done:
        line |= {"done_reason": "stop", "total_duration": 1_000_000, "prompt_eval_count": 20, "eval_count": 8}
        line |= read or {}
    data = json.dumps(line).encode() + b"\n"
    return b"%x\r\n%b\r\n" % (len(data), data)
