"""A model server without a model: Ollama's NDJSON over HTTP from a bare asyncio server, in its own process.

What it does is written in the last message of the user, as words: tokens=8, wait=0.35 (seconds before the first token),
pause=0.002 (seconds between tokens), stamp=1 (tokens are the nanoseconds of the monotonic clock at which they are
sent), call=instant (name of a tool to call first). Without pauses an answer is one write; with burst=1, one for each
token.
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

from benchmarks.peer import Pipe

MODEL = "bench"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"
ANSWERS: dict[str, dict[str, Any]] = {
    "/api/version": {"version": "0.12.6"},
    "/api/tags": {"models": [{"name": MODEL, "model": MODEL}]},
    "/api/show": {
        "capabilities": ["completion", "tools"],
        "model_info": {"general.architecture": "bench", "bench.context_length": 32_768},
    },
}


def serve(pipe: Pipe) -> None:
    """The server's process; its first word is its address."""
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
                await _chat(json.loads(body)["messages"], writer)
            else:
                answer = json.dumps(ANSWERS[path]).encode()
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: ")
                writer.write(b"%d\r\n\r\n%b" % (len(answer), answer))
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def _chat(messages: list[dict[str, Any]], writer: asyncio.StreamWriter) -> None:
    asked = [message["content"] for message in messages if message["role"] == "user"]
    order = dict(word.split("=") for word in (asked[-1] if asked else "").split())  # nothing is asked to load a model
    if "wait" in order:
        await asyncio.sleep(float(order["wait"]))
    if "call" in order and messages[-1]["role"] != "tool":
        call = {"id": "call_1", "function": {"name": order["call"], "arguments": {"text": "hello"}}}
        writer.write(HEAD + _chunk("", tool_calls=[call]) + _chunk("", done=True) + END)
        return
    tokens, pause = int(order.get("tokens", "8")), float(order.get("pause", "0"))
    if not pause and "burst" not in order:
        writer.write(HEAD + b"".join(_chunk(f"word{n} ") for n in range(tokens)) + _chunk("", done=True) + END)
        return
    writer.write(HEAD)
    for n in range(tokens):
        writer.write(_chunk(f"{time.monotonic_ns()} " if "stamp" in order else f"word{n} "))
        await (asyncio.sleep(pause) if pause else writer.drain())
    writer.write(_chunk("", done=True) + END)


def _chunk(content: str, *, done: bool = False, **fields: Any) -> bytes:
    line: dict[str, Any] = {
        "model": MODEL, "created_at": "2025-01-01T00:00:00.000000Z",
        "message": {"role": "assistant", "content": content, **fields}, "done": done,
    }  # fmt: skip
    if done:
        line |= {"done_reason": "stop", "total_duration": 1_000_000, "prompt_eval_count": 20, "eval_count": 8}
    data = json.dumps(line).encode() + b"\n"
    return b"%x\r\n%b\r\n" % (len(data), data)
