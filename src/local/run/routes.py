"""The settings of every participant: what they are, and how the owner changes them."""

from __future__ import annotations

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.requests import Request
from starlette.responses import Response

from local.api.context import api
from local.api.http import JsonResponse, PathId, RequestRefused, read_body, takes
from local.api.security import Access, open_to
from local.core.errors import ConfigError
from local.run.settings_files import SettingsFiles


def _files() -> SettingsFiles:
    return api().part(SettingsFiles, lambda: SettingsFiles(api().layers))


class SettingsBody(BaseModel):
    """The body of PUT /settings/{name}: the keys that are to change, mappings key by key."""

    model_config = ConfigDict(extra="forbid", strict=True)
    values: Annotated[dict[str, Any], Field(min_length=1)]


def add_settings_routes(routes: APIRouter) -> None:
    """The routes under /settings."""
    settings = _Settings()
    routes.add_api_route("/settings", settings.listing, methods=["GET"])
    routes.add_api_route("/settings/{name}", settings.show, methods=["GET"])
    routes.add_api_route("/settings/{name}", settings.change, methods=["PUT"], openapi_extra=takes(SettingsBody))


class _Settings:
    @open_to(Access.OWNER)
    async def listing(self) -> Response:
        """Every file of settings, and which participants read it."""
        names = await self._done(_files().names)
        return JsonResponse({"settings": [{"name": name, "read_by": readers} for name, readers in names.items()]})

    @open_to(Access.OWNER)
    async def show(self, name: PathId) -> Response:
        """One of them: schema, values, defaults, the user's file, and who has to be restarted after a change."""
        return JsonResponse(await self._done(_files().show, name))

    @open_to(Access.TOKEN)
    async def change(self, name: PathId, request: Request) -> Response:
        """Change some keys in the user's file, and nothing else in it; they hold from the next restart on."""
        body = await read_body(request, SettingsBody)
        return JsonResponse(await self._done(_files().change, name, body.values))

    async def _done(self, work: Any, *arguments: Any) -> Any:
        try:
            return await asyncio.to_thread(work, *arguments)
        except ConfigError as error:
            raise RequestRefused("invalid", str(error)) from None
