"""The HTTP routes of hooks: list, add and remove those of the owner's `hooks.yaml`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter
from fastapi import Path as InPath
from starlette.requests import Request
from starlette.responses import Response

from local.api.context import api
from local.api.http import JsonResponse, RequestRefused, read_body, takes
from local.api.security import Access, open_to
from local.core.config import load
from local.core.config_file import change
from local.hooks.hooks import FOLDER, HooksConfig
from local.hooks.messages import HookSettings

FILE = "hooks"
HookName = Annotated[str, InPath(pattern=r"^[a-z0-9_-]{1,40}$")]
_changing = threading.Lock()


class HookBody(HookSettings):
    """The body of POST /hooks: one hook as in hooks.yaml."""


def add_routes(routes: APIRouter) -> None:
    """The routes under /hooks."""
    routes.add_api_route("/hooks", listing, methods=["GET"])
    routes.add_api_route("/hooks", add, methods=["POST"], openapi_extra=takes(HookBody))
    routes.add_api_route("/hooks/{name}", remove, methods=["DELETE"])


@open_to(Access.OWNER)
async def listing() -> Response:
    """List the hooks in the order in which they are asked. `runs_commands` says whether the participant `hooks`, which
    runs their commands, takes part.
    """
    settings = api().layers[-1]
    config = await asyncio.to_thread(load, FILE, HooksConfig, api().layers)
    runs = any(each["name"] == FILE for each in api().participants.listing(api().clock()))
    places = {"file": str(settings / f"{FILE}.yaml"), "scripts": str(settings / FOLDER)}
    return JsonResponse({"hooks": config.hooks, "runs_commands": runs, **places})


@open_to(Access.TOKEN)
async def add(request: Request) -> Response:
    """Add a hook after the others. The status is 201. It is asked after a restart of the participants named in
    `restart_needed`.
    """
    hook = await read_body(request, HookBody)

    def with_it(hooks: Sequence[HookSettings]) -> list[HookSettings]:
        if any(each.name == hook.name for each in hooks):
            raise RequestRefused("conflict", f"name: there is a hook {hook.name} already; choose another name", "name")
        return [*hooks, hook]

    await asyncio.to_thread(_change, api().layers, with_it)
    return JsonResponse({"hook": hook, "restart_needed": _readers()}, 201)


@open_to(Access.TOKEN)
async def remove(name: HookName) -> Response:
    """Remove a hook. It is asked until a restart of the participants named in `restart_needed`."""

    def without_it(hooks: Sequence[HookSettings]) -> list[HookSettings]:
        if all(each.name != name for each in hooks):
            raise RequestRefused("not_found", f"there is no hook {name}")
        return [each for each in hooks if each.name != name]

    await asyncio.to_thread(_change, api().layers, without_it)
    return JsonResponse({"name": name, "removed": True, "restart_needed": _readers()})


def _change(layers: Sequence[Path], changed: Callable[[Sequence[HookSettings]], list[HookSettings]]) -> None:
    """Write the hooks into the owner's file and leave the rest of it unchanged. Raises `ConfigError`,
    `RequestRefused`.
    """
    with _changing:
        hooks = changed(load(FILE, HooksConfig, layers).hooks)
        written = [hook.model_dump(mode="json", exclude_defaults=True) for hook in hooks]
        change(layers[-1] / f"{FILE}.yaml", {"hooks": written})


def _readers() -> list[str]:
    """Return the participants that read hooks.yaml and take part: respondents, and the one that runs commands."""
    names = [each["name"] for each in api().participants.listing(api().clock())]
    return [name for name in names if name in (FILE, "generator", "generator_b")]
