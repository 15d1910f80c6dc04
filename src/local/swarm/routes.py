"""HTTP routes of agents: the list, one with its tasks, and stopping one."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from local.api.context import api
from local.api.http import Id, JsonResponse, PathId
from local.api.security import Access, Caller, open_to
from local.swarm.messages import AgentRequest, AgentResult

SWARM = "swarm"


def add_routes(routes: APIRouter) -> None:
    """The routes under /agents."""
    agents = _Agents()
    routes.add_api_route("/agents", agents.listing, methods=["GET"])
    routes.add_api_route("/agents/{agent_id}", agents.show, methods=["GET"])
    routes.add_api_route("/agents/{agent_id}/stop", agents.stop, methods=["POST"])


class _Agents:
    @open_to(Access.USERS)
    async def listing(self, caller: Caller, query_id: Id | None = None) -> Response:
        """The agents, the oldest first; of one query with `query_id`."""
        result = await api().ask(
            SWARM, AgentRequest(verb="list", of_user=caller.user_id, query_id=query_id or ""), AgentResult
        )
        return JsonResponse({"agents": result.agents})

    @open_to(Access.USERS)
    async def show(self, agent_id: PathId, caller: Caller) -> Response:
        """One agent with all of its tasks and letters, the oldest first."""
        result = await api().ask(
            SWARM, AgentRequest(verb="show", of_user=caller.user_id, agent_id=agent_id), AgentResult
        )
        return JsonResponse({**result.agents[0].model_dump(), "given": result.tasks, "letters": result.letters})

    @open_to(Access.USERS)
    async def stop(self, agent_id: PathId, caller: Caller) -> Response:
        """End an agent, with all that it has made."""
        result = await api().ask(
            SWARM, AgentRequest(verb="stop", of_user=caller.user_id, agent_id=agent_id), AgentResult
        )
        return JsonResponse(result.agents[0])
