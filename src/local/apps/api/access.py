"""Whom each route is for: declared at its function, and checked where it is served."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import Any, TypeVar

from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from local.apps.api.principals import Principal

F = TypeVar("F", bound=Callable[..., Any])


class Access(StrEnum):
    """Whom a route is for, and so whose the things are that it tells of."""

    ANYBODY = "anybody"  # it looks itself at how much it may tell to whom
    USERS = "users"  # each of what is theirs, which the route asks for; the owner of everything
    OWNER = "owner"
    TOKEN = "token"  # the owner, and not by the Unix user: what would loosen what the owner has decided


class Undeclared(TypeError):
    """A route that does not say whom it is for."""


def open_to(access: Access) -> Callable[[F], F]:
    """Declare whom a route's function is for; every one has to be."""

    def declare(endpoint: F) -> F:
        endpoint.access = access  # type: ignore[attr-defined]
        return endpoint

    return declare


def access_of(route: Route) -> Access:
    """What a route declares. Raises `Undeclared`."""
    access = getattr(route.endpoint, "access", None)
    if not isinstance(access, Access):
        raise Undeclared(f"{route.path} does not say whom it is for: mark its function with @open_to(Access.…)")
    return access


def enforce(routes: Sequence[BaseRoute]) -> None:
    """Have every route refuse those whom it is not for. Raises `Undeclared`."""
    for route in routes:
        if not isinstance(route, Route):
            raise Undeclared(f"{route} is no plain route: whom it is for cannot be declared")
        access = access_of(route)
        if access in (Access.OWNER, Access.TOKEN):  # the guard has let in nobody who is none of the users
            route.app = _only_for(access, route.app)


def open_to_anybody(routes: Sequence[BaseRoute]) -> Callable[[str], bool]:
    """Tells of a path whether somebody of whom nothing is known may ask for it."""
    reached = [route.path_regex for route in routes if isinstance(route, Route) and access_of(route) is Access.ANYBODY]
    return lambda path: any(each.match(path) for each in reached)


def _only_for(access: Access, app: ASGIApp) -> ASGIApp:
    async def checked(scope: Scope, receive: Receive, send: Send) -> None:
        _check(access, scope["principal"])
        await app(scope, receive, send)

    return checked


def _check(access: Access, principal: Principal) -> None:
    principal.require_owner()
    if access is Access.TOKEN:
        principal.require_token()
