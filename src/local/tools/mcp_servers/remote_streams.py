"""What the SDK reads and writes, over HTTP to a server elsewhere."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import httpx2
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client

from local.tools.mcp_servers.remote_auth import auth_of, login_wanted
from local.tools.mcp_servers.remote_server import RemoteServer

ANSWER_BYTES = 16 * 1024 * 1024
CONNECT_SECONDS = 10.0
UNAUTHORIZED, NOT_FOUND = 401, 404


@asynccontextmanager
async def remote_streams(server: RemoteServer) -> AsyncIterator[Any]:
    """A transport of the SDK, which follows redirects on the same host alone. No proxy of the environment is used."""

    async def notice(response: httpx2.Response) -> None:
        if response.status_code == NOT_FOUND and MCP_SESSION_ID in response.request.headers:
            server.lose("it has begun anew, and knows nothing of us")
        if response.status_code == UNAUTHORIZED and auth is None:
            server.lose(login_wanted(server.login.name))

    is_login = server.visitor is not None or server.login.is_there
    auth = auth_of(server, server.login, server.visitor) if is_login else None
    async with (
        httpx2.AsyncClient(
            headers=dict(server.headers),
            auth=auth,
            timeout=httpx2.Timeout(server.seconds, connect=CONNECT_SECONDS),
            transport=_BoundedTransport(server),
            event_hooks={"response": [notice]},
        ) as client,
        _streams(server, client) as streams,
    ):
        yield streams


def _streams(server: RemoteServer, client: httpx2.AsyncClient) -> AbstractAsyncContextManager[Any]:
    return streamable_http_client(server.url, http_client=client, max_sse_event_size=ANSWER_BYTES)


class _BoundedTransport(httpx2.AsyncHTTPTransport):
    """Says when nobody is there, and reads no more of one answer than `ANSWER_BYTES`."""

    def __init__(self, server: RemoteServer) -> None:
        super().__init__(trust_env=False)
        self._server = server

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self._server.require_near(str(request.url))
        try:
            response = await super().handle_async_request(request)
        except httpx2.TransportError as error:
            self._server.lose(f"{request.url.host} does not answer: {str(error) or type(error).__name__}")
            raise
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _BoundedStream(response.stream)
        return response


class _BoundedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = ANSWER_BYTES
        async for part in self._stream:
            left -= len(part)
            if left < 0:
                raise httpx2.StreamError(f"an answer of more than {ANSWER_BYTES // 1024**2} MB")
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()
