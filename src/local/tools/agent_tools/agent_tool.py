"""The base of the tools for agents: who calls, and what that one may do is decided by the tree."""

from __future__ import annotations

import asyncio
from typing import Annotated, ClassVar

from pydantic import StringConstraints

from local.errors import ToolError
from local.instructions.profile_registry import NoSuchProfile
from local.protocol.answer_options import AnswerProfile
from local.protocol.memory_messages import OWNER
from local.runtime.participant import Publications
from local.tools.agent_tools.agent import Asking, GivenTask, Json
from local.tools.agent_tools.agent_post import AgentPost
from local.tools.agent_tools.agent_runner import AgentRunner
from local.tools.agent_tools.swarm_config import SwarmConfig
from local.tools.agent_tools.task_form import value_of
from local.tools.tool import Tool, ToolOutput

MOST_TASK_CHARACTERS = 20_000
SLACK_SECONDS = 10.0  # so that the tool's own waiting ends first

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,31}$")]
TaskText = Annotated[str, StringConstraints(min_length=1, max_length=MOST_TASK_CHARACTERS)]


class AgentTool(Tool):
    """A tool that asks something of agents. It changes nothing outside of the system: what an agent may do is no more
    than its parent may, within the parent's budget; so none of them asks for leave, and what agents do asks as ever."""

    Config = SwarmConfig
    safety = "L0"
    category = "meta"
    effect = "none"
    trusted = True  # what strangers have said is marked in each result
    publishes: ClassVar[Publications | None] = (AgentRunner,)

    def __init__(self, config: SwarmConfig, runner: AgentRunner) -> None:
        super().__init__(config)
        self._settings, self._runner, self._post = config, runner, AgentPost(runner.tree)
        self.timeout_seconds = config.wait_seconds + SLACK_SECONDS

    async def asking(self) -> Asking:
        """Who calls. Raises `ToolError`."""
        return await self._runner.asking(self.request(), self.asked_by())

    async def profile(self, name: str | None) -> AnswerProfile | None:
        """The profile of that name, as it is now; a workspace's are its owner's. Raises `ToolError`."""
        if name is None:
            return None
        of_owner = self.asked_by().user_id in (None, OWNER)
        profiles = await asyncio.to_thread(self._runner.profiles.read, of_owner=of_owner)
        try:
            found = profiles.find(name)
        except NoSuchProfile as error:
            raise ToolError(str(error), kind="bad_arguments") from None
        return AnswerProfile(
            name=found.name, origin=found.origin, tools=found.tools, model=found.model, instructions=found.instructions
        )

    def told(self, task: GivenTask) -> Json:
        """What has become of a task, for whoever has given it."""
        agent = self._runner.tree.agents[task.agent_id]
        told: Json = {"agent": agent.name, "status": "working" if task.state == "asked" else task.state}
        if task.error is not None:
            told["error"] = task.error.model_dump()
        if task.state == "answered" and task.form is not None:
            return {**told, "value": value_of(task.answer)}
        return {**told, "answer": task.answer} if task.answer else told

    def output(self, text: str, tasks: list[GivenTask]) -> ToolOutput:
        """A result that tells of these tasks."""
        tainted = any(task.is_answer_tainted or task.tainted for task in tasks)
        sources = tuple(dict.fromkeys(source for task in tasks for source in task.sources))
        return ToolOutput(text, sources=sources, tainted=tainted)
