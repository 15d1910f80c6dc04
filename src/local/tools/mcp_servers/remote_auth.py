"""How the SDK logs in at a server elsewhere, and keeps being so: OAuth 2.1 with PKCE, and its tokens anew."""

from __future__ import annotations

from typing import Any

from mcp.client.auth import OAuthClientProvider
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

from local.errors import ConfigError
from local.tools.mcp_servers.remote_login import RemoteLogin, Visitor
from local.tools.mcp_servers.remote_server import RemoteServer

NO_REDIRECT = "http://127.0.0.1/callback"  # of a client whom nobody sends back


class _Storage:
    """The SDK's view of a login. Where a person is there, our client is made anew: it comes back to another port."""

    def __init__(self, login: RemoteLogin, *, begins_anew: bool) -> None:
        self._login, self._begins_anew = login, begins_anew
        self._client: dict[str, Any] | None = None  # kept with the tokens that it gets: the last login may be of use

    async def get_tokens(self) -> OAuthToken | None:
        tokens = {} if self._begins_anew else self._login.tokens()
        return OAuthToken.model_validate(tokens) if tokens else None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._login.keep(tokens=tokens.model_dump(mode="json", exclude_none=True), client=self._client)

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        client = {} if self._begins_anew else self._login.client()
        return OAuthClientInformationFull.model_validate(client) if client else None

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._client = client_info.model_dump(mode="json", exclude_none=True)


def auth_of(server: RemoteServer, login: RemoteLogin, visitor: Visitor | None) -> OAuthClientProvider:
    """What puts tokens on requests. Without a visitor, a login that no refresh helps loses the server."""

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
    storage = _Storage(login, begins_anew=visitor is not None)
    return OAuthClientProvider(server.url, metadata, storage, redirect_handler=visit, callback_handler=answer)


def login_wanted(name: str) -> str:
    """What an owner can do about a server that lets nobody in."""
    return f"it wants a login: local2 mcp login {name}"
