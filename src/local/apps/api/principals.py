"""Who asks: the owner, who may act for any user, or one user, who sees nothing of the others."""

from __future__ import annotations

import hmac
import ipaddress
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Query
from starlette.requests import Request

from local.apps.api.errors import RequestRefused
from local.apps.api.identifiers import ID_PATTERN
from local.apps.api.peer import Peer
from local.apps.owner_token import TOKEN_PREFIX
from local.apps.users import Users
from local.protocol.memory_messages import OWNER

# Whoever passes requests on for others says so with one of these, and then its own Unix user says nothing.
_FORWARDING = frozenset({"forwarded", "via", "x-real-ip", "x-client-ip", "x-cluster-client-ip", "true-client-ip"})
_PORT = re.compile(r":\d*$")
_FORWARDING_PARTS = ("x-forwarded", "forwarded-for", "connecting-ip", "x-envoy-external")
_UNKNOWN = (
    "who asks? Send 'Authorization: Bearer …' with a token that `local2 user add` has given, or the owner's, which is"
    " LOCAL2_API_TOKEN or stands in the file api_token in the data directory"
)
OWNERS_TOKEN = (
    "this wants the owner's token, whoever runs the client: 'Authorization: Bearer …' with what stands in the"
    " file api_token in the data directory, or in LOCAL2_API_TOKEN"
)
_NOT_KNOWN = "this token is not known here, or not any more; `local2 user add` gives one"


@dataclass(frozen=True, slots=True)
class Principal:
    """Somebody who asks. Without `user_id` it is the owner; `by_token` says whether a token was shown. What has no user
    is the owner's."""

    user_id: str | None = None
    by_token: bool = False

    @property
    def is_owner(self) -> bool:
        """Whether everything is to be seen."""
        return self.user_id is None

    @property
    def name(self) -> str:
        """The user_id under which the memory and files know the principal."""
        return self.user_id or OWNER

    def sees(self, user_id: str | None) -> bool:
        """Whether what is that user's may be seen."""
        return self.user_id is None or self.user_id == (user_id or OWNER)

    def require(self, user_id: str | None, what: str) -> None:
        """Raises `RequestRefused` (not_found), as if it were not there, for what is another's."""
        if not self.sees(user_id):
            raise RequestRefused("not_found", f"there is no {what}")

    def require_token(self) -> None:
        """Raises `RequestRefused` (unauthorized) for one who was known by the Unix user alone."""
        if not self.by_token:
            raise RequestRefused("unauthorized", OWNERS_TOKEN)

    def require_owner(self) -> None:
        """Raises `RequestRefused` (forbidden) for anybody else."""
        if not self.is_owner:
            raise RequestRefused("forbidden", "this is for the owner of the system alone")

    def acting_for(self, user_id: str | None) -> Principal:
        """The principal with that user's eyes. Raises `RequestRefused` (not_found) unless it is the owner, or
        oneself."""
        if user_id is None or user_id == self.user_id:
            return self
        if not self.is_owner:
            raise RequestRefused("not_found", f"there is no user {user_id}", "user_id")
        return Principal(user_id, self.by_token)


class Principals:
    """Finds out who asks. `owner_token()` is asked each time: the file that holds it may be made anew. With `must_know`
    a token that is shown has to be known; without, one that is none of ours is
    taken for the key that OpenAI's clients have to send, and the Unix user counts."""

    def __init__(self, owner_token: Callable[[], str | None], users: Users, *, must_know: bool = False) -> None:
        self._owner_token, self._users, self._must_know = owner_token, users, must_know

    async def of(self, headers: Mapping[str, str], peer: Peer | None) -> Principal:
        """Raises `RequestRefused` (unauthorized). Header names are in lower case."""
        if known := self._by_token(headers.get("authorization", "")):
            return known
        if peer is not None and _counts(headers):
            if peer.is_own_user is None:
                await peer.look_up()
            if peer.is_own_user:
                return Principal()
        raise RequestRefused("unauthorized", _UNKNOWN)

    def _by_token(self, authorization: str) -> Principal | None:
        scheme, _, given = authorization.partition(" ")
        token = given.strip()
        if scheme.lower() != "bearer" or not token:
            return None
        # Encoded, because compare_digest takes text only if it is ASCII.
        if hmac.compare_digest(token.encode(), (self._owner_token() or "").encode()):
            return Principal(by_token=True)
        if name := self._users.name_of(token):
            return Principal(name, by_token=True)
        if self._must_know or token.startswith(TOKEN_PREFIX):
            raise RequestRefused("unauthorized", _NOT_KNOWN)
        return None


def principal_of(request: Request) -> Principal:
    """Who asks, as the guard has found out; at /health it may be None, of whom nothing is known."""
    principal: Principal = request.scope["principal"]
    return principal


async def _caller(request: Request, user_id: Annotated[str | None, Query(pattern=ID_PATTERN)] = None) -> Principal:
    return principal_of(request).acting_for(user_id)


Caller = Annotated[Principal, Depends(_caller)]
"""Who asks, for the user whom `?user_id=` names if it is the owner."""


def _counts(headers: Mapping[str, str]) -> bool:
    """Whether the Unix user at the other end is who asks: nobody passes this on, and it was sent to this machine."""
    if any(name in _FORWARDING or any(part in name for part in _FORWARDING_PARTS) for name in headers):
        return False
    host = _PORT.sub("", headers.get("host", "").lower())
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
