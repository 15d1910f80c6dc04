"""A server that runs elsewhere, and is asked over streamable HTTP; for as long as it is known to be there."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from local.config_mcp import is_loopback, is_private
from local.errors import ConfigError
from local.tools.mcp_servers.remote_login import RemoteLogin, Visitor


@dataclass(slots=True)
class RemoteServer:
    """`headers` may hold keys; `seconds` is for how long it may say nothing. `visitor` logs in, if there is one."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    seconds: float
    login: RemoteLogin
    visitor: Visitor | None = None
    _lost: asyncio.Future[str] = field(default_factory=lambda: asyncio.get_running_loop().create_future(), repr=False)

    @property
    def is_lost(self) -> bool:
        """Whether the server was there, and is no more."""
        return self._lost.done()

    def lose(self, why: str) -> None:
        """The server does not answer any more, or has forgotten us: whoever wants it again begins anew."""
        if not self._lost.done():
            self._lost.set_result(why)

    async def ended(self) -> str:
        """Wait until it is lost, and say why."""
        return await asyncio.shield(self._lost)

    def require_near(self, url: str) -> None:
        """Raises `ConfigError` for where nobody may be sent to log in, or asked for tokens: what goes over a network
        without TLS, and from another machine what is on this one."""
        if not is_private(url) or (is_loopback(url) and not is_loopback(self.url)):
            raise ConfigError(f"{urlsplit(self.url).hostname} names {url[:200]!r} for logins, which is not asked")
