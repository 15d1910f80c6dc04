"""An MCP server that wants a login, and gives it, made of the SDK's own parts: whoever asks at its page is let in."""

from __future__ import annotations

import secrets
import time
from typing import Any

from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    ProviderTokenVerifier,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.routes import create_auth_routes
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl, ConfigDict, TypeAdapter
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

TOKEN_SECONDS = 3600


class Logins(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """`given` counts the tokens that were given, `visits` how often somebody has come to the page; `refuses` what the
    page says to everybody, if so."""

    def __init__(self) -> None:
        self.given = self.visits = 0
        self.refuses = ""
        self.lasts = TOKEN_SECONDS
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.refreshes: dict[str, RefreshToken] = {}

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id or ""] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        self.visits += 1
        if self.refuses:
            return construct_redirect_uri(str(params.redirect_uri), error=self.refuses, state=params.state)
        code = AuthorizationCode(
            code=secrets.token_hex(16), scopes=[], expires_at=time.time() + 60, client_id=client.client_id or "",
            code_challenge=params.code_challenge, redirect_uri=params.redirect_uri, resource=params.resource,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
        )  # fmt: skip
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self._token(client.client_id or "", authorization_code.resource)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        return self.refreshes.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        del self.refreshes[refresh_token.token]
        return self._token(client.client_id or "", refresh_token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.access.pop(token.token, None)

    def _token(self, client_id: str, resource: str | None) -> OAuthToken:
        self.given += 1
        access, refresh = (f"{kind}-{secrets.token_hex(16)}" for kind in ("access", "refresh"))
        self.access[access] = AccessToken(token=access, client_id=client_id, scopes=[], resource=resource)
        self.refreshes[refresh] = RefreshToken(token=refresh, client_id=client_id, scopes=[], resource=resource)
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=self.lasts)


def desk(logins: Logins, port: int, asked: list[str]) -> ASGIApp:
    """A server at this port that only gives logins; `asked` gets the paths of its requests, and names of headers that
    are another server's."""
    issuer = TypeAdapter(AnyHttpUrl, config=ConfigDict(url_preserve_empty_path=True)).validate_python(
        f"http://127.0.0.1:{port}"
    )
    routes = create_auth_routes(logins, issuer, client_registration_options=ClientRegistrationOptions(enabled=True))
    app = Starlette(routes=routes)  # type: ignore[arg-type]

    async def noted(scope: Scope, receive: Receive, send: Send) -> None:
        asked.append(scope.get("path", ""))
        asked.extend(name.decode() for name, _ in scope.get("headers", ()) if name.startswith(b"x-key"))
        await app(scope, receive, send)

    return noted


def sums(logins: Logins, port: int, issuer_port: int = 0) -> ASGIApp:
    """The server, at this port; logins are given there, or at the `issuer_port`."""
    here = f"http://127.0.0.1:{port}"
    settings = AuthSettings.model_validate({
        "issuer_url": f"http://127.0.0.1:{issuer_port or port}", "resource_server_url": f"{here}/mcp",
        "validate_token_resource": True, "client_registration_options": ClientRegistrationOptions(enabled=True),
    })  # fmt: skip
    by: dict[str, Any] = {"token_verifier": ProviderTokenVerifier(logins)} if issuer_port else {}
    server = MCPServer("sums", log_level="ERROR", auth=settings, **(by or {"auth_server_provider": logins}))

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    return server.streamable_http_app()
