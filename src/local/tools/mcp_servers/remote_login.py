"""What is kept of a login at a server elsewhere: tokens and our client there, among the secrets, for its url alone."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from local.errors import ConfigError
from local.secrets.secret_mask import secret_mask
from local.secrets.secret_store import SecretStore

PREFIX = "mcp-login."
SECRET_KEYS = ("access_token", "refresh_token", "client_secret")
EARLY_SECONDS = 30.0  # before its end a token is taken for ended

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

    def keep(self, tokens: Mapping[str, Any], client: Mapping[str, Any] | None) -> None:
        """Keep new tokens in place of the last ones; and if there is a new one, our client."""
        lasts = tokens.get("expires_in")
        kept = {
            "url": self.url,
            "client": self.client() if client is None else dict(client),
            "tokens": dict(tokens),
            "ends_at": None if lasts is None else time.time() + float(lasts),
        }
        self._hide(kept)
        self._store.set(f"{PREFIX}{self.name}", json.dumps(kept))

    def forget(self) -> bool:
        """Keep nothing of it; says whether there was anything."""
        if f"{PREFIX}{self.name}" not in self._store.all():
            return False
        self._store.remove(f"{PREFIX}{self.name}")
        return True

    def _kept(self) -> Json:
        """Nothing that was kept for another url: no server gets what is another's."""
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


@dataclass(frozen=True, slots=True)
class Visitor:
    """A person who is there to log in: `visit` shows them an address, `answer` waits for the query of the address to
    which they come back, which is `redirect_uri`."""

    redirect_uri: str
    visit: Callable[[str], Awaitable[None]]
    answer: Callable[[], Awaitable[Mapping[str, str]]]
