"""A login at a remote server: made by a person, kept among the secrets, renewed by itself, and sent to nobody else."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from local.core.errors import ConfigError, ToolError
from local.core.mcp_servers import MCPServerConfig
from local.core.secrets import SecretMask, SecretStore, secret_mask
from local.mcp.client import LoginPrompt, MCPConnection, RemoteLogin, RemoteServer, approvable
from local.mcp.stdio import LoginCallback
from local.mcp.tools import connect
from tests.mcp.http_server import PlainHTTPServer, served
from tests.mcp.login_server import Logins, desk, sums


@pytest.fixture(autouse=True)
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """What this process learns it forgets after the test."""
    monkeypatch.setattr(secret_mask, "__dict__", dict(vars(SecretMask())))


@pytest.fixture
def logins() -> Logins:
    return Logins()


@pytest.fixture
async def port(logins: Logins) -> AsyncIterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        number = reserved.getsockname()[1]
    async with served(sums(logins, number), number):
        yield number


@asynccontextmanager
async def connected(port: int, folder: Path, visitor: LoginPrompt | None = None) -> AsyncIterator[MCPConnection]:
    config = MCPServerConfig(url=f"http://127.0.0.1:{port}/mcp", headers={"X-Key": "of the tool server"})
    connection = connect("sums", config, folder, [], visitor)
    try:
        yield connection
    finally:
        await connection.close()


async def log_in(port: int, folder: Path) -> None:
    """As `local2 mcp login`, with a browser that is sent from page to page."""

    async def visit(url: str) -> None:
        async with httpx.AsyncClient(follow_redirects=True, trust_env=False) as browser:
            assert "The login is finished" in (await browser.get(url)).text

    async with LoginCallback.listening() as callback:
        visitor = LoginPrompt(callback.redirect_uri, visit, callback.answer)
        async with connected(port, folder, visitor) as connection:
            await connection.tools()


async def called(port: int, folder: Path) -> str:
    async with connected(port, folder) as connection:
        [add], _ = approvable("sums", await connection.tools())
        return (await connection.call(add, {"a": 2, "b": 3})).text


def kept(folder: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads(SecretStore(folder).get("mcp-login.sums"))
    return found


async def test_a_login_is_made_once_kept_among_the_secrets_and_used(logins: Logins, port: int, tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="it requires a login: local2 mcp login sums"):
        await called(port, tmp_path)
    assert (logins.clients, logins.visits) == ({}, 0), "nobody is asked for anything before"
    await log_in(port, tmp_path)
    assert await called(port, tmp_path) == "5"
    assert (logins.visits, logins.given) == (1, 1)
    [token] = logins.access
    assert token not in (tmp_path / "secrets" / "store.json").read_text()
    assert secret_mask.text(f"Bearer {token}") == "Bearer [secret:mcp-login.sums.access_token]"
    other = PlainHTTPServer()  # it is for one address alone
    async with served(other.app) as elsewhere:
        async with connected(elsewhere, tmp_path) as connection:
            await connection.tools()
        assert "authorization" not in other.headers


async def test_tokens_that_have_expired_are_renewed_without_a_person(logins: Logins, port: int, tmp_path: Path) -> None:
    logins.lasts = 1  # less than is left for a call to arrive
    await log_in(port, tmp_path)
    logins.lasts, [first] = 3600, logins.access
    del logins.access[first]
    assert await called(port, tmp_path) == "5"
    assert await called(port, tmp_path) == "5"
    assert (logins.visits, logins.given) == (1, 2), "the new ones are kept, too"


async def test_what_renews_a_login_goes_to_who_gave_it_and_never_to_the_tool_server(
    logins: Logins, tmp_path: Path
) -> None:
    ports = list[int]()
    for _ in range(2):
        with socket.create_server(("127.0.0.1", 0)) as reserved:
            ports.append(reserved.getsockname()[1])
    port, issuer = ports
    at_server, at_desk = list[str](), list[str]()
    app = sums(logins, port, issuer)

    async def noted(scope: Any, receive: Any, send: Any) -> None:
        at_server.append(scope.get("path", ""))
        await app(scope, receive, send)

    logins.lasts = 1
    async with served(desk(logins, issuer, at_desk), issuer), served(noted, port):
        await log_in(port, tmp_path)
        logins.lasts, [first] = 3600, logins.access
        del logins.access[first]
        assert "/register" in at_desk and "x-key" not in at_desk, "headers are for the tool server"
        at_desk.clear()
        assert await called(port, tmp_path) == "5"
        assert "/token" in at_desk and "/token" not in at_server
        stored = kept(tmp_path)
        stored.update(ends_at=0.0, authority=None)  # as an earlier version has kept it
        SecretStore(tmp_path).set("mcp-login.sums", json.dumps(stored))
        with pytest.raises(ToolError, match="it requires a login: local2 mcp login sums"):
            await called(port, tmp_path)
        assert "/token" not in at_server


@pytest.mark.thorough
async def test_a_login_that_was_withdrawn_is_reported_and_made_again(logins: Logins, port: int, tmp_path: Path) -> None:
    await log_in(port, tmp_path)
    logins.access.clear()
    logins.refreshes.clear()
    with pytest.raises(ToolError, match="it requires a login: local2 mcp login sums"):
        await called(port, tmp_path)
    await log_in(port, tmp_path)
    assert await called(port, tmp_path) == "5"


@pytest.mark.thorough
async def test_a_login_that_is_refused_leaves_the_last_one(logins: Logins, port: int, tmp_path: Path) -> None:
    await log_in(port, tmp_path)
    before = kept(tmp_path)
    logins.refuses = "access_denied"
    with pytest.raises(ToolError, match="the login was refused: access_denied"):
        await log_in(port, tmp_path)
    assert kept(tmp_path) == before


async def test_a_server_sends_nobody_where_it_could_be_overheard_or_into_this_machine(tmp_path: Path) -> None:
    def requires(server: str, named: str) -> None:
        RemoteServer(server, {}, 1.0, RemoteLogin("a", server, SecretStore(tmp_path))).require_near(named)

    requires("https://tools.example/mcp", "https://login.example/authorize")
    requires("http://127.0.0.1:1/mcp", "http://127.0.0.1:2/authorize")
    for named in (
        "http://login.example/authorize",
        "http://127.0.0.1:8765/memory",
        "https://localhost:8765/memory",
        "javascript:alert(1)",
    ):
        with pytest.raises(ConfigError, match="for logins, which is not allowed"):
            requires("https://tools.example/mcp", named)


async def test_the_callback_answers_one_address_and_takes_the_first_that_says_something() -> None:
    async with LoginCallback.listening() as callback, httpx.AsyncClient(trust_env=False) as browser:
        for nothing in ("?x=1", "/more?code=1", ""):
            assert (await browser.get(f"{callback.redirect_uri}{nothing}")).status_code == 404
        for code in ("first", "second"):
            await browser.get(f"{callback.redirect_uri}?code={code}&state=s")
        assert await callback.answer() == {"code": "first", "state": "s"}
        await browser.get(f"{callback.redirect_uri}?error=access_denied")
        assert await callback.answer() == {"error": "access_denied"}
