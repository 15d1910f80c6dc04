"""The system itself: participants are started, stopped and restarted. It wants the owner's token, whoever connects."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from local.apps.api.access import Access, open_to
from local.apps.api.context import PathId, api
from local.apps.api.json_body import JsonResponse
from local.protocol.control_messages import ControlVerb


def add_routes(routes: APIRouter) -> None:
    """The routes under /participants/{name}."""
    control = _Control()
    for verb, endpoint in (("start", control.start), ("stop", control.stop), ("restart", control.restart)):
        routes.add_api_route(f"/participants/{{name}}/{verb}", endpoint, methods=["POST"])


class _Control:
    @open_to(Access.TOKEN)
    async def start(self, name: PathId) -> Response:
        """Start one that was stopped or given up, or is new in the settings; answers when it is ready, or given up."""
        return await self._have("start", name)

    @open_to(Access.TOKEN)
    async def stop(self, name: PathId) -> Response:
        """Stop one and leave it stopped; not those without whom nobody could start it again."""
        return await self._have("stop", name)

    @open_to(Access.TOKEN)
    async def restart(self, name: PathId) -> Response:
        """Stop one and start it again, with the settings that its file has now; the API answers before its own."""
        return await self._have("restart", name)

    async def _have(self, verb: ControlVerb, name: str) -> Response:
        child = await api().control.participant(verb, name)
        return JsonResponse({"participant": child})
