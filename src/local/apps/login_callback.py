"""Where a browser comes back to after a login elsewhere: a port of loopback that answers one address."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from urllib.parse import parse_qsl, urlsplit

PATH = "/callback"
HEAD_BYTES = 16 * 1024
PAGE = "You are back at LoCAL2, and can close this page: how it went stands in the terminal."


class LoginCallback:
    """`redirect_uri` is its address."""

    def __init__(self) -> None:
        self.redirect_uri = ""
        self._said: asyncio.Future[Mapping[str, str]] = asyncio.get_running_loop().create_future()

    @classmethod
    @asynccontextmanager
    async def listening(cls) -> AsyncIterator[LoginCallback]:
        """On a port of its own."""
        callback = cls()
        server = await asyncio.start_server(callback._answer, "127.0.0.1", 0, limit=HEAD_BYTES)
        async with server:
            port = server.sockets[0].getsockname()[1]
            callback.redirect_uri = f"http://127.0.0.1:{port}{PATH}"
            yield callback

    async def answer(self) -> Mapping[str, str]:
        """Wait for the browser, and give what the first address says with which it comes: a code, or an error. Asked
        again, what the next one says."""
        said = await asyncio.shield(self._said)
        self._said = asyncio.get_running_loop().create_future()
        return said

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, ValueError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            head = await reader.readuntil(b"\r\n\r\n")
            method, target, _ = head.split(b"\r\n", 1)[0].decode("ascii").split(" ")
            address = urlsplit(target)
            said = dict(parse_qsl(address.query))
            is_it = method == "GET" and address.path == PATH and bool(said.keys() & {"code", "error"})
            if is_it and not self._said.done():
                self._said.set_result(said)
            status, text = ("200 OK", PAGE) if is_it else ("404 Not Found", "There is nothing here.")
            lines = (
                f"HTTP/1.1 {status}", "Content-Type: text/plain; charset=utf-8", f"Content-Length: {len(text)}",
                "Connection: close", "", text,
            )  # fmt: skip
            writer.write("\r\n".join(lines).encode())
            await writer.drain()
        writer.close()
