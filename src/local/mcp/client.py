"""The connection to one MCP server: started with the first call, and again after its end, with pauses that grow."""

from __future__ import annotations

import asyncio
import hashlib
import importlib
import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self
from urllib.parse import urlsplit

import anyio
import httpx2
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import MCP_SESSION_ID, streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
)
from mcp.shared.message import SessionMessage
from mcp.types import (
    AudioContent,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    jsonrpc_message_adapter,
)

from local.core.errors import ConfigError, ToolError
from local.core.files import Backoff, write_private
from local.core.mcp_servers import is_loopback, is_private
from local.core.secrets import SecretStore, secret_mask
from local.sandbox.process import ContainedServer
from local.tools.tool import ToolOutput

if TYPE_CHECKING:
    from local.mcp.session import MCPSession


Change = Literal["as approved", "changed", "new", "gone"]

NAME_CHARS = 64
DESCRIPTION_CHARS = 4000


@dataclass(frozen=True, slots=True)
class ApprovedTool:
    """A tool of a server as its owner has approved it. The model is always shown this description, not a later one of
    the server. `name` is the model's name for it, `server_name` the server's; `digest` is the SHA-256 of the server's
    whole description.
    """

    name: str
    server_name: str
    description: str
    parameters: Mapping[str, Any]
    digest: str

    @classmethod
    def of(cls, server: str, told: Mapping[str, Any]) -> Self:
        """Return a tool from a server's present description. The name begins with the server's name, so that it
        differs from all built-in tools.
        """
        name = re.sub(r"[^A-Za-z0-9_-]", "_", f"{server}__{told['name']}")[:NAME_CHARS]
        said = (told.get("description") or told["name"])[:DESCRIPTION_CHARS]
        return cls(name, told["name"], said, told["inputSchema"], digest_of(told))


def digest_of(told: Mapping[str, Any]) -> str:
    """Return the SHA-256 of everything in a tool's announcement."""
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def approvable(server: str, told: Iterable[Mapping[str, Any]]) -> tuple[list[ApprovedTool], list[str]]:
    """Return a server's tools, and the reasons why some cannot be used: duplicate names."""
    tools: dict[str, ApprovedTool] = {}
    refused = []
    for each in told:
        tool = ApprovedTool.of(server, each)
        if tool.name in tools:
            refused.append(f"{tool.server_name!r}: another tool is called {tool.name}, too")
        else:
            tools[tool.name] = tool
    return list(tools.values()), refused


def changes(before: Iterable[ApprovedTool], now: Iterable[ApprovedTool]) -> dict[str, Change]:
    """Compare a server's tools with the approved ones; returns the change of each present or removed tool by
    its name."""
    known, told = ({tool.name: tool for tool in tools} for tools in (before, now))
    said: dict[str, Change] = {
        name: "new" if name not in known else "as approved" if known[name] == tool else "changed"
        for name, tool in told.items()
    }
    return {**said, **dict.fromkeys(known.keys() - told.keys(), "gone")}


def read_approved(path: Path) -> list[ApprovedTool]:
    """Return the approved tools of a server; none without the file. Raises `ConfigError`."""
    try:
        return [ApprovedTool(**each) for each in json.loads(path.read_text(encoding="utf-8"))]
    except FileNotFoundError:
        return []
    except (OSError, ValueError, TypeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}; remove it and approve the server's tools again") from None


def write_approved(path: Path, tools: Iterable[ApprovedTool]) -> None:
    """Store the approved tools. Raises `OSError`."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_private(path, json.dumps([asdict(tool) for tool in tools], indent=1))


# The stored login at a remote server: tokens and our client there, among the secrets, for its url alone.

PREFIX = "mcp-login."
SECRET_KEYS = ("access_token", "refresh_token", "client_secret")
EARLY_SECONDS = 30.0  # before its end a token counts as expired

Json = dict[str, Any]


class RemoteLogin:
    """The login at the server that `mcp.json` calls `name`, at `url`. Every method raises `ConfigError` where the store
    cannot be read or written."""

    def __init__(self, name: str, url: str, store: SecretStore) -> None:
        self.name, self.url, self._store = name, url, store

    @property
    def is_there(self) -> bool:
        """Whether there was a login, which may have ended."""
        return bool(self.tokens())

    def tokens(self) -> Json:
        """The last ones, without the access token if that has ended; empty without a login."""
        kept = self._kept()
        if kept.get("ends_at") is not None and time.time() > kept["ends_at"] - EARLY_SECONDS:
            return {**kept["tokens"], "access_token": ""}
        return dict(kept.get("tokens", {}))

    def client(self) -> Json:
        """Our client there; empty without one."""
        return dict(self._kept().get("client", {}))

    def authority(self) -> Json:
        """Return the authorization server's metadata, with its address for new tokens; empty if unknown."""
        return dict(self._kept().get("authority") or {})

    @property
    def may_renew(self) -> bool:
        """Whether it is known where the tokens came from. Logins of 0.2.0 and earlier did not keep it, so that one at
        another host has to be made again."""
        issuer = self.client().get("issuer")
        return bool(self.authority()) or not issuer or _origin(issuer) == _origin(self.url)

    def keep(
        self, tokens: Mapping[str, Any], client: Mapping[str, Any] | None, authority: Mapping[str, Any] | None
    ) -> None:
        """Store new tokens in place of the last ones, with the authorization server; and our client, if it is new."""
        lasts = tokens.get("expires_in")
        kept = {
            "url": self.url,
            "client": self.client() if client is None else dict(client),
            "authority": None if authority is None else dict(authority),
            "tokens": dict(tokens),
            "ends_at": None if lasts is None else time.time() + float(lasts),
        }
        self._hide(kept)
        self._store.set(f"{PREFIX}{self.name}", json.dumps(kept))

    def forget(self) -> bool:
        """Delete the login; returns whether there was one."""
        if f"{PREFIX}{self.name}" not in self._store.all():
            return False
        self._store.remove(f"{PREFIX}{self.name}")
        return True

    def _kept(self) -> Json:
        """Return the stored login, unless it is for another URL: no server gets the login of another one."""
        if f"{PREFIX}{self.name}" not in self._store.all():
            return {}
        try:
            kept: Json = json.loads(self._store.get(f"{PREFIX}{self.name}"))
        except ValueError:
            raise ConfigError(
                f"the login at {self.name} is damaged; log in again: local2 mcp login {self.name}"
            ) from None
        self._hide(kept)
        return kept if kept.get("url") == self.url else {}

    def _hide(self, kept: Json) -> None:
        for part in (kept.get("tokens", {}), kept.get("client", {})):
            for key in SECRET_KEYS:
                if value := part.get(key):
                    secret_mask.hide(f"{PREFIX}{self.name}.{key}", value)


def _origin(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return parts.scheme, parts.netloc.lower()


@dataclass(frozen=True, slots=True)
class LoginPrompt:
    """A person who can log in: `visit` shows an address, `answer` waits for the query with which the browser returns
    to `redirect_uri`.
    """

    redirect_uri: str
    visit: Callable[[str], Awaitable[None]]
    answer: Callable[[], Awaitable[Mapping[str, str]]]


@dataclass(slots=True)
class RemoteServer:
    """A server at a `url`, used over streamable HTTP while it is known to answer. `headers` may contain keys;
    `seconds` limits its silence. `visitor` logs in, if there is one.
    """

    url: str
    headers: Mapping[str, str] = field(repr=False)
    seconds: float
    login: RemoteLogin
    visitor: LoginPrompt | None = None
    _lost: asyncio.Future[str] = field(default_factory=lambda: asyncio.get_running_loop().create_future(), repr=False)

    @property
    def is_lost(self) -> bool:
        """Whether the server was connected and is not any more."""
        return self._lost.done()

    def lose(self, why: str) -> None:
        """Drop the connection, because the server no longer answers or has forgotten the session: the next call
        connects again.
        """
        if not self._lost.done():
            self._lost.set_result(why)

    async def ended(self) -> str:
        """Wait until the connection is lost, and return the reason."""
        return await asyncio.shield(self._lost)

    def require_near(self, url: str) -> None:
        """Raise `ConfigError` for a login address that is not allowed: over a network without TLS, or named by another
        machine but on this one.
        """
        if not is_private(url) or (is_loopback(url) and not is_loopback(self.url)):
            raise ConfigError(f"{urlsplit(self.url).hostname} names {url[:200]!r} for logins, which is not allowed")


FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
END_SECONDS = 3.0  # for a server that does not end by itself
CLOSED = "closed"
SESSION = "local.mcp.session"
Server = ContainedServer | RemoteServer
Start = Callable[[], AbstractAsyncContextManager[Server]]


class MCPConnection:
    """The connection to one server. `start` starts its process or reaches it; `name` is its name in `mcp.json`.
    `trouble` says why it is not available; it is empty while it is, and before the first call."""

    def __init__(
        self, name: str, start: Start, start_seconds: float, require: Callable[[], object] | None = None
    ) -> None:
        """`require()` raises `ToolError` if the server may not be used any more, which ends it."""
        self.name, self.trouble = name, ""
        self._start, self._start_seconds, self._require = start, start_seconds, require
        self.may_call: Callable[[], object] | None = None  # raises `ToolError` if no call is permitted any more
        self._serving: asyncio.Task[None] | None = None
        self._opened: asyncio.Future[MCPSession] | None = None
        self._server: Server | None = None
        self._pauses, self._again_at = Backoff(FIRST_PAUSE, LONGEST_PAUSE), 0.0

    async def call(self, tool: ApprovedTool, arguments: Mapping[str, Any]) -> ToolOutput:
        """Call a tool. Raises `ToolError`: unavailable, not_approved, or the server's error."""
        await self._check(self._require)
        await self._check(self.may_call)
        async with self._noticing_its_end():
            output = await (await self._session_with(tool)).call(tool, arguments)
        self._pauses.reset()
        return output

    async def tools(self) -> list[dict[str, Any]]:
        """Return the server's tools. Raises `ToolError`."""
        await self._check(self._require)
        async with self._noticing_its_end():
            return await (await self._session()).tools()

    async def close(self) -> None:
        """End the server."""
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.wait([self._serving])
            self._serving = None

    async def _check(self, require: Callable[[], object] | None) -> None:
        if require is None:
            return
        try:
            await asyncio.to_thread(require)
        except ToolError:
            await self.close()
            raise

    @asynccontextmanager
    async def _noticing_its_end(self) -> AsyncIterator[None]:
        try:
            yield
        except ToolError as error:
            if self._is_over(error):
                raise await self._ended() from None
            raise

    async def _session_with(self, tool: ApprovedTool) -> MCPSession:
        """Return the session with the server after comparing a tool with its approval. A session that was lost before
        the call is opened again.
        """
        was_open = self._opened is not None and self._opened.done()
        session = await self._session()
        try:
            await session.require(tool)
        except ToolError as error:
            if not (was_open and self._is_over(error)):
                raise
            await self._ended()
            session = await self._session()
            await session.require(tool)
        return session

    def _is_over(self, error: ToolError) -> bool:
        return error.kind == CLOSED or (isinstance(self._server, RemoteServer) and self._server.is_lost)

    async def _ended(self) -> ToolError:
        """Why the server is not there, with its last words."""
        if self._serving is not None:
            await asyncio.wait([self._serving], timeout=END_SECONDS)
        return self._unavailable()

    async def _session(self) -> MCPSession:
        """Return the session with the server, which is started if it does not run. One that has just failed is not
        retried for a while.
        """
        if self._serving is None or self._serving.done():
            if time.monotonic() < self._again_at:
                raise self._unavailable()
            self._opened = asyncio.get_running_loop().create_future()
            self._serving = asyncio.create_task(self._serve(self._opened))
        assert self._opened is not None
        either: list[asyncio.Future[Any]] = [self._opened, self._serving]
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if self._serving.done():
            raise self._unavailable()
        return self._opened.result()

    async def _serve(self, opened: asyncio.Future[MCPSession]) -> None:
        """From its start to its end, whatever that is."""
        try:
            sessions = (await asyncio.to_thread(importlib.import_module, SESSION)).MCPSession
            async with self._start() as server:
                self._server = server
                ended = asyncio.create_task(server.ended())
                try:
                    await self._talk(sessions, server, ended, opened)
                finally:
                    ended.cancel()
        except Exception as error:  # noqa: BLE001 - whatever a server does to the SDK, the model reads why
            self.trouble = self.trouble or _reason(error)
        finally:
            was_there = opened.done() and isinstance(self._server, RemoteServer)  # it ends with us alone
            self._again_at = time.monotonic() + (0.0 if was_there else self._pauses.next())

    async def _talk(
        self,
        sessions: type[MCPSession],
        server: Server,
        ended: asyncio.Task[str],
        opened: asyncio.Future[MCPSession],
    ) -> None:
        self.trouble = ""
        try:
            async with asyncio.timeout(self._start_seconds) as limit, sessions.opened(server, self.name) as session:
                limit.reschedule(None)
                opened.set_result(session)
                self.trouble = await ended
        except TimeoutError:
            self.trouble = f"it did not answer within {self._start_seconds:g} s of its start"
        except Exception:
            if not isinstance(server, RemoteServer) or server.is_lost:
                with suppress(TimeoutError):
                    self.trouble = await asyncio.wait_for(asyncio.shield(ended), END_SECONDS)  # which has more details
            raise

    def _unavailable(self) -> ToolError:
        return ToolError(
            f"the MCP server {self.name} is not available: {self.trouble or 'it ends'}", kind="unavailable"
        )


def _reason(error: BaseException) -> str:
    """Return the first line of the first error."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return (str(error) or type(error).__name__).partition("\n")[0]


# The result of a server's tool, as text for the model.


def output_of(result: CallToolResult) -> ToolOutput:
    """Return the texts of a result; other content is named. Raises `ToolError` if the server reports an error."""
    text = "\n\n".join(map(_text, result.content))
    if not text and result.structured_content is not None:
        text = json.dumps(result.structured_content, ensure_ascii=False)
    if result.is_error:
        raise ToolError(text or "it failed without a reason")
    return ToolOutput(text)


def _text(block: ContentBlock) -> str:
    match block:
        case TextContent():
            return block.text
        case ImageContent() | AudioContent():
            return f"[{block.type} of the type {block.mime_type}, left out]"
        case ResourceLink():
            return f"[{block.name}: {block.uri}]"
        case EmbeddedResource():
            return getattr(block.resource, "text", "") or f"[{block.resource.uri}, left out]"


# The SDK's streams over the lines of a sandboxed server.

Read = MemoryObjectReceiveStream[SessionMessage | Exception]
Written = MemoryObjectSendStream[SessionMessage]


@asynccontextmanager
async def streams_of(server: ContainedServer) -> AsyncIterator[tuple[Read, Written]]:
    """Return a transport of the SDK. An invalid line is an exception in the stream, which the SDK passes over; the end
    of the server is that of the stream.
    """
    heard, read = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    written, to_send = anyio.create_memory_object_stream[SessionMessage](0)

    async def read_progress() -> None:
        async with heard:
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                while line := await server.read_line():
                    await heard.send(_message(line))

    async def send() -> None:
        with suppress(OSError, anyio.ClosedResourceError):
            async for message in to_send:
                await server.write_line(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode())

    async with anyio.create_task_group() as tasks, read, written, to_send:
        tasks.start_soon(read_progress)
        tasks.start_soon(send)
        yield read, written
        tasks.cancel_scope.cancel()


def _message(line: bytes) -> SessionMessage | Exception:
    try:
        return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as error:
        return error


# How the SDK logs in at a remote server, and renews its tokens: OAuth 2.1 with PKCE.

NO_REDIRECT = "http://127.0.0.1/callback"  # for a client without a redirect


class _Storage:
    """The SDK's storage of a login. For an interactive login the client is registered again, because it returns to
    another port.
    """

    def __init__(self, login: RemoteLogin, *, registers_again: bool) -> None:
        self._login, self._registers_again = login, registers_again
        self._client: dict[str, Any] | None = None  # kept with the tokens that it gets: the last login may be of use
        self.authority: Callable[[], OAuthMetadata | None] = lambda: None

    async def get_tokens(self) -> OAuthToken | None:
        tokens = {} if self._registers_again else self._login.tokens()
        if not self._login.may_renew:
            tokens.pop("refresh_token", None)  # the SDK would send it to the tool server
        return OAuthToken.model_validate(tokens) if tokens else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        told, authority = tokens.model_dump(mode="json", exclude_none=True), self.authority()
        from_whom = None if authority is None else authority.model_dump(mode="json", exclude_none=True)
        self._login.keep(tokens=told, client=self._client, authority=from_whom)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        client = {} if self._registers_again else self._login.client()
        return OAuthClientInformationFull.model_validate(client) if client else None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info.model_dump(mode="json", exclude_none=True)


def auth_of(server: RemoteServer, login: RemoteLogin, visitor: LoginPrompt | None) -> OAuthClientProvider:
    """Return the handler that adds tokens to requests. Without a visitor, the server is lost when the login cannot be
    refreshed.
    """

    async def visit(url: str) -> None:
        if visitor is None:
            server.lose(login_wanted(login.name))
            raise ConfigError(login_wanted(login.name))
        server.require_near(url)
        await visitor.visit(url)

    async def answer() -> AuthorizationCodeResult:
        assert visitor is not None
        said = await visitor.answer()
        if "code" not in said:
            raise ConfigError(f"the login was refused: {said.get('error_description') or said.get('error', 'no code')}")
        return AuthorizationCodeResult(code=said["code"], state=said.get("state"), iss=said.get("iss"))

    metadata = OAuthClientMetadata.model_validate({
        "client_name": "LoCAL2", "redirect_uris": [visitor.redirect_uri if visitor else NO_REDIRECT],
        "grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"],
        "token_endpoint_auth_method": "none",
    })  # fmt: skip
    storage = _Storage(login, registers_again=visitor is not None)
    provider = OAuthClientProvider(server.url, metadata, storage, redirect_handler=visit, callback_handler=answer)
    if visitor is None and (known := login.authority()):
        provider.context.oauth_metadata = OAuthMetadata.model_validate(known)  # else it would get the refresh token
    storage.authority = lambda: provider.context.oauth_metadata
    return provider


def login_wanted(name: str) -> str:
    """Return what the owner can do about a server that requires a login."""
    return f"it requires a login: local2 mcp login {name}"


# The SDK's streams over HTTP to a remote server.

ANSWER_BYTES = 16 * 1024 * 1024
CONNECT_SECONDS = 10.0
UNAUTHORIZED, NOT_FOUND = 401, 404


@asynccontextmanager
async def remote_streams(server: RemoteServer) -> AsyncIterator[Any]:
    """A transport of the SDK, which follows redirects on the same host alone. No proxy of the environment is used."""

    async def notice(response: httpx2.Response) -> None:
        if response.status_code == NOT_FOUND and MCP_SESSION_ID in response.request.headers:
            server.lose("it was restarted and has forgotten the session")
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
    """A transport that notices a vanished server, and reads at most `ANSWER_BYTES` of one answer."""

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
