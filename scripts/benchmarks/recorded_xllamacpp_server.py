"""The model server of the package `xllamacpp` behind a proxy that records each exchange: a program that stands in for
llama-server as `providers.llama_server.program`, with the same arguments.

Each POST gets two JSON lines in the file that `LOCAL2_RECORD` names: one when it comes, and one at its end with path,
body, the times at which it began, said its first word and ended (seconds of the monotonic clock), and the server's
`timings`. `LOCAL2_FAKE_PARAMETERS` is what
/v1/models is to say of the model's size. A client that goes away ends its request at the server, too.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

HOST = "127.0.0.1"
_WORD = re.compile(rb'"(?:content|reasoning_content|arguments)":"[^"]')
_CHUNK_BYTES = 1 << 16
_END_OF_HEAD = b"\r\n\r\n"

Json = dict[str, Any]


async def main(arguments: list[str]) -> int:
    """Serve until the server ends; gives its exit status."""
    from local.models import xllamacpp_server

    place = arguments.index("--port") + 1
    port, behind = int(arguments[place]), _free_port()
    arguments[place] = str(behind)
    server = await asyncio.create_subprocess_exec(sys.executable, "-I", str(xllamacpp_server.__file__), *arguments)
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, server.terminate)
    proxy = _Proxy(behind, Path(os.environ["LOCAL2_RECORD"]))
    async with await asyncio.start_server(proxy.serve, HOST, port):
        return await server.wait()


def _free_port() -> int:
    with closing(socket.create_server((HOST, 0))) as probe:
        port: int = probe.getsockname()[1]
        return port


class _Proxy:
    """Passes requests on to `port`, one to a connection, and writes down what they were."""

    def __init__(self, port: int, record: Path) -> None:
        self._port, self._record = port, record
        self._parameters = os.environ.get("LOCAL2_FAKE_PARAMETERS")

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request and its response."""
        try:
            head = await reader.readuntil(_END_OF_HEAD)
            body = await reader.readexactly(_length(head))
            began = time.monotonic()
            theirs, ours = await asyncio.open_connection(HOST, self._port)
        except (OSError, EOFError, asyncio.IncompleteReadError):
            writer.close()
            return
        is_recorded = head.startswith(b"POST")
        line = {"path": head.split(b" ", 2)[1].decode(), "began": began}
        if is_recorded:
            line["body"] = json.loads(body or b"null")
            self._write({"path": line["path"], "began": began})
        ours.write(_closing_head(head) + body)
        answering = asyncio.create_task(self._answer(theirs, writer, head))
        gone = asyncio.create_task(reader.read(1))  # nobody sends anything more: it ends with the client
        await asyncio.wait({answering, gone}, return_when=asyncio.FIRST_COMPLETED)
        ours.close()
        if not answering.done():
            theirs.feed_eof()
        first, answer = await answering
        gone.cancel()
        if is_recorded:
            self._write({**line, "first": first, "ended": time.monotonic(), **_read(answer)})
        writer.close()

    def _write(self, line: Json) -> None:
        with self._record.open("a") as file:
            file.write(json.dumps(line) + "\n")

    async def _answer(
        self, theirs: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes
    ) -> tuple[float | None, bytes]:
        """When the first word came, and everything that did."""
        first, told = None, []
        try:
            while data := await theirs.read(_CHUNK_BYTES):
                if first is None and _WORD.search(data):
                    first = time.monotonic()
                told.append(data)
                if not (self._parameters and b"/models" in head[:80]):
                    writer.write(data)
            if self._parameters and b"/models" in head[:80]:
                writer.write(_with_size(b"".join(told), self._parameters))
            await writer.drain()
        except OSError:
            pass  # one of both has gone
        return first, b"".join(told)


def _length(head: bytes) -> int:
    found = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
    return int(found[1]) if found else 0


def _closing_head(head: bytes) -> bytes:
    kept = re.sub(rb"(?i)\r\nconnection:[^\r]*", b"", head)
    return kept[: -len(_END_OF_HEAD)] + b"\r\nConnection: close" + _END_OF_HEAD


def _with_size(answer: bytes, parameters: str) -> bytes:
    head, _, body = answer.partition(_END_OF_HEAD)
    body = re.sub(rb'"n_params":\d+', b'"n_params":' + parameters.encode(), body)
    head = re.sub(rb"(?i)content-length: *\d+", b"Content-Length: %d" % len(body), head)
    return head + _END_OF_HEAD + body


def _read(answer: bytes) -> Json:
    """What the server has said and counted. It writes each event, and each whole answer, in one piece."""
    said, timings = list[Json](), Json()
    for line in answer.splitlines():
        try:
            told = json.loads(line.removeprefix(b"data: "))
            choices = told.get("choices") or ()
        except (ValueError, AttributeError):
            continue
        timings = told.get("timings") or timings
        said += [choice.get("delta") or choice.get("message") or {} for choice in choices]
    status = answer.split(b" ", 2)[1:2]
    text = "".join(piece.get("content") or "" for piece in said)
    return {
        "status": int(status[0]) if status else None, "timings": timings, "text": text,
        "calls": [call for piece in said for call in piece.get("tool_calls") or ()],
    }  # fmt: skip


if __name__ == "__main__":
    sys.exit(asyncio.run(main(sys.argv[1:])))
