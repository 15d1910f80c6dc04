"""The tools by which a model has work done by agents, in one process, which keeps the tree of them."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Self

from local.errors import LocalError
from local.instructions.profile_registry import ProfileRegistry
from local.protocol.agent_messages import AgentRecord, AgentRequest, AgentResult
from local.protocol.envelope import Envelope
from local.protocol.memory_messages import MemoryDeleted
from local.protocol.message import MAIN_RESPONDENT, ErrorInfo
from local.protocol.messages import (
    Message,
    QueryCancel,
    QueryFailed,
    ResponseGeneration,
    SessionDeleted,
    ToolRequest,
)
from local.runtime.participant import Handles, Resources, on
from local.services.agent_store import AgentStore
from local.tools.agent_tools.agent import Agent, Outcome, shown
from local.tools.agent_tools.agent_runner import AgentRunner
from local.tools.agent_tools.agent_tool import AgentTool
from local.tools.agent_tools.agent_tree import AgentTree
from local.tools.agent_tools.check_inbox_tool import CheckInboxTool
from local.tools.agent_tools.delegate_task_tool import DelegateTaskTool
from local.tools.agent_tools.emit_event_tool import EmitEventTool
from local.tools.agent_tools.list_agents_tool import ListAgentsTool
from local.tools.agent_tools.send_message_tool import SendMessageTool
from local.tools.agent_tools.spawn_agent_tool import SpawnAgentTool
from local.tools.agent_tools.swarm_config import SwarmConfig
from local.tools.agent_tools.terminate_agent_tool import TerminateAgentTool
from local.tools.agent_tools.wait_for_event_tool import WaitForEventTool
from local.tools.tool import Tool
from local.tools.tool_group import ToolGroup

CONSUMER = "swarm"
ANSWERS_AT_ONCE = 64
CALLS_AT_ONCE = 1024  # most of them wait for agents, some of which have calls here in turn
CORE: tuple[type[AgentTool], ...] = (SpawnAgentTool, DelegateTaskTool, ListAgentsTool, TerminateAgentTool)
KINDS = (*CORE, SendMessageTool, CheckInboxTool, EmitEventTool, WaitForEventTool)


class Swarm(ToolGroup):
    """Keeps which agents there are. An agent is a session of the generator's: it is asked by queries, like a user's."""

    name = "swarm"
    Config = SwarmConfig
    tools = KINDS

    def __init__(self, config: SwarmConfig, store: AgentStore, profiles: ProfileRegistry) -> None:
        self._settings, self._tree = config, AgentTree(config)
        self._runner = AgentRunner(self, store, self._tree, profiles)
        super().__init__(config, [kind(config, self._runner) for kind in KINDS])

    @classmethod
    def build(cls, config: SwarmConfig, resources: Resources) -> Self:
        """With a file of its own, and the profiles that there are."""
        settings = resources.layers[-1] if resources.layers else resources.data_dir
        profiles = ProfileRegistry(settings, resources.workspace_folder)
        return cls(config, AgentStore(resources.data_dir / "agents.db"), profiles)

    @classmethod
    def handlers(cls) -> Iterator[Handles]:
        """With room for calls that wait for others."""
        for handles in super().handlers():
            yield replace(handles, concurrency=CALLS_AT_ONCE) if handles.message is ToolRequest else handles

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Hold the tree, and go on with it."""
        async with super().lifespan(), self._runner.are_running():
            yield

    def offered(self) -> Iterable[Tool]:
        """The tools that the settings offer."""
        kinds: tuple[type[AgentTool], ...] = {"none": (), "core": CORE, "all": KINDS}[self._settings.offer]
        return [tool for tool in super().offered() if isinstance(tool, kinds)]

    def figures(self) -> dict[str, int]:
        """How many agents there are, and how many of them work."""
        open_tasks = len(self._tree.open())
        return {
            "agents": sum(each.ended_at is None for each in self._tree.agents.values()),
            "agents_working": open_tasks,
        }

    @on(ResponseGeneration, durable=CONSUMER, concurrency=ANSWERS_AT_ONCE)
    async def answered(self, response: ResponseGeneration, envelope: Envelope) -> None:
        """A query has ended, perhaps an agent's."""
        if response.respondent_id != MAIN_RESPONDENT or response.query_id not in self._tree.tasks:
            return
        calls = response.tool_calls
        outcome = Outcome(
            state=response.status,
            answer=response.answer,
            error=response.error,
            tainted=response.brings_taint,
            sources=tuple(dict.fromkeys(source for call in calls for source in call.sources)),
            tokens=response.usage.prompt_tokens + response.usage.completion_tokens,
            calls=len(calls),
        )
        await self._runner.ended(response.query_id, outcome)

    @on(QueryFailed, durable=CONSUMER)
    async def failed(self, failed: QueryFailed, envelope: Envelope) -> None:
        """A query has ended without an answer, perhaps an agent's."""
        if failed.respondent_id == MAIN_RESPONDENT and failed.query_id in self._tree.tasks:
            state = "cancelled" if failed.error.kind == "cancelled" else "failed"
            await self._runner.ended(failed.query_id, Outcome(state=state, error=failed.error))

    @on(QueryCancel, durable=CONSUMER)
    async def withdraw(self, cancel: QueryCancel, envelope: Envelope) -> None:
        """A query is cancelled: so is what it has asked of agents."""
        await self._runner.withdraw(cancel.query_id)

    @on(SessionDeleted, durable=CONSUMER)
    async def forget_tree(self, deleted: SessionDeleted, envelope: Envelope) -> None:
        """A session is gone, and what its agents have done for it."""
        await self._runner.forget(deleted.deleted_session_id)

    @on(MemoryDeleted, durable=CONSUMER)
    async def forget_root(self, deleted: MemoryDeleted, envelope: Envelope) -> None:
        """An exchange is gone: what agents have done for it goes with all that the session's agents know."""
        if (root := self._tree.roots.get(deleted.query_id)) is not None:
            await self._runner.forget(root.session_id)

    @on(AgentRequest)
    async def serve(self, request: AgentRequest, envelope: Envelope) -> AgentResult:
        """A door shows the agents, or has one stopped."""
        found = [each for each in self._tree.agents.values() if self._is_meant(each, request)]
        if request.verb == "list":
            return AgentResult(verb="list", agents=tuple(map(self._shown, found)))
        if not found:
            error = ErrorInfo(kind="not_found", message=f"there is no agent {request.agent_id}")
            return AgentResult(verb="stop", error=error)
        await self._runner.stop(found[0])
        return AgentResult(verb="stop", agents=(self._shown(self._tree.agents[found[0].agent_id]),))

    def error_reply(self, message: Message, error: Exception) -> Message | None:
        """What a door is told of what went wrong, or a model."""
        if not isinstance(message, AgentRequest):
            return super().error_reply(message, error)
        kind = error.kind if isinstance(error, LocalError) else "internal"
        return AgentResult(verb=message.verb, error=ErrorInfo(kind=kind, message=str(error) or type(error).__name__))

    def _is_meant(self, agent: Agent, request: AgentRequest) -> bool:
        is_theirs = request.of_user is None or agent.user_id == request.of_user
        is_of_query = not request.query_id or agent.root_query_id == request.query_id
        return is_theirs and is_of_query and request.agent_id in ("", agent.agent_id)

    def _shown(self, agent: Agent) -> AgentRecord:
        root = self._tree.roots.get(agent.root_query_id)
        used = self._tree.used(agent, time.time())
        return shown(agent, self._tree.tasks_of(agent.agent_id), used, root.session_id if root else agent.tree)
