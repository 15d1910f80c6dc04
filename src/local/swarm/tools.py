"""The tools by which a model has work done by agents, in one process, which keeps the tree of them."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Annotated, Any, ClassVar, Self

from pydantic import Field, StringConstraints

from local.bus.envelope import Envelope
from local.bus.message import MAIN_RESPONDENT, ErrorInfo, Message
from local.bus.messages import AnswerProfile, QueryCancel, QueryFailed, ResponseGeneration, SessionDeleted, ToolRequest
from local.core.errors import LocalError, ToolError
from local.core.profiles import NoSuchProfile, ProfileRegistry
from local.memory.messages import OWNER, MemoryDeleted
from local.runtime.participant import Handles, Publications, Resources, on
from local.swarm.agents import (
    Agent,
    AgentEvent,
    AgentSpec,
    AgentStore,
    AgentTree,
    Asking,
    GivenTask,
    Json,
    Mailbox,
    Outcome,
    SwarmConfig,
    TaskOrder,
    check_form,
    shown,
    shown_task,
    value_of,
)
from local.swarm.messages import AgentRecord, AgentRequest, AgentResult
from local.swarm.runner import AgentRunner
from local.tools.group import ToolGroup
from local.tools.tool import Tool, ToolOutput

# The base of the tools for agents: the tree decides about the caller's permissions.

MOST_TASK_CHARACTERS = 20_000
SLACK_SECONDS = 10.0  # so that the tool's own waiting ends first

Name = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9-]{0,31}$")]
TaskText = Annotated[str, StringConstraints(min_length=1, max_length=MOST_TASK_CHARACTERS)]


class AgentTool(Tool):
    """The base of the tools for agents. It changes nothing outside of the system: an agent may do no more than its
    parent, within the parent's budget; so none of these tools requests approval, and the calls of agents do as ever.
    """

    Config = SwarmConfig
    safety = "L0"
    category = "meta"
    effect = "none"
    trusted = True  # untrusted content is marked in each result
    publishes: ClassVar[Publications | None] = (AgentRunner,)

    def __init__(self, config: SwarmConfig, runner: AgentRunner) -> None:
        super().__init__(config)
        self._settings, self._runner, self._post = config, runner, Mailbox(runner.tree)
        self.timeout_seconds = config.wait_seconds + SLACK_SECONDS

    async def asking(self) -> Asking:
        """Return the caller. Raises `ToolError`."""
        return await self._runner.asking(self.request(), self.asked_by())

    async def profile(self, name: str | None) -> AnswerProfile | None:
        """Return the present profile of that name that the asking user may choose. Raises `ToolError`."""
        if name is None:
            return None
        of_owner = self.asked_by().user_id in (None, OWNER)
        profiles = await asyncio.to_thread(self._runner.profiles.read, of_owner=of_owner)
        try:
            found = profiles.find(name)
        except NoSuchProfile as error:
            raise ToolError(str(error), kind="bad_arguments") from None
        return AnswerProfile(name=found.name, tools=found.tools, model=found.model, instructions=found.instructions)

    def result_of(self, task: GivenTask) -> Json:
        """Return the result of a task, for the model that gave it."""
        agent = self._runner.tree.agents[task.agent_id]
        told: Json = {"agent": agent.name, "status": "working" if task.state == "asked" else task.state}
        if task.error is not None:
            told["error"] = task.error.model_dump()
        if task.state == "answered" and task.form is not None:
            return {**told, "value": value_of(task.answer)}
        return {**told, "answer": task.answer} if task.answer else told

    def output(self, text: str, tasks: list[GivenTask]) -> ToolOutput:
        """Return a result with the state of these tasks."""
        tainted = any(task.is_answer_tainted or task.tainted for task in tasks)
        sources = tuple(dict.fromkeys(source for task in tasks for source in task.sources))
        return ToolOutput(text, sources=sources, tainted=tainted)


# The tool by which an agent reads the letters of others.


class CheckInboxTool(AgentTool):
    """Read what agents have written to you, and what came of tasks for which you did not wait. Each is told once."""

    name = "check_inbox"

    async def run(self) -> ToolOutput:
        """What is new."""
        asking = await self.asking()
        mails = self._post.inbox(asking, self.request().call_id)
        await self._runner.save()
        told = "\n\n".join(f"{each.sender_name} has written:\n{each.text}" for each in mails)
        return ToolOutput(told or "Nothing is new.", tainted=any(each.tainted for each in mails))


# The tool by which agents do tasks, side by side.

MOST_TASKS = 16


class DelegateTaskTool(AgentTool):
    """Give tasks to agents of your own, which do them side by side, each with your tools. An agent knows nothing but
    its task: write down all that it needs. Use it where parts of a question can be worked on apart."""

    name = "delegate_task"

    async def run(
        self,
        tasks: Annotated[list[TaskText], "One task for each agent", Field(min_length=1, max_length=MOST_TASKS)],
        schema: Annotated[dict[str, Any] | None, "A JSON Schema that each answer has to follow"] = None,
        wait: Annotated[bool, "False: do not wait; list_agents tells what has come of them"] = True,
        agent: Annotated[Name | None, "An agent that there is, for one task more"] = None,
        tools: Annotated[list[str] | None, "Which of your tools they get; without it all"] = None,
        profile: Annotated[str | None, "What kind of assistants they are; without it as you are"] = None,
    ) -> ToolOutput:
        """The results, in the order of the tasks, failures included."""
        if schema is not None:
            check_form(schema)
        if agent is not None and len(tasks) != 1:
            raise ToolError("one agent takes one task at a time", kind="bad_arguments")
        asking, call_id = await self.asking(), self.request().call_id
        orders = [
            TaskOrder(
                text=text, call_id=call_id, index=index, cause_id=self.asked_by().cause_id, form=schema,
                in_background=not wait, tainted=self.request().tainted,
            )
            for index, text in enumerate(tasks)
        ]  # fmt: skip
        wanted = AgentSpec(
            name="agent", tools=None if tools is None else tuple(tools), profile=await self.profile(profile),
            passing=True, tainted=self.request().tainted,
        )  # fmt: skip
        refused: list[dict[str, Any]] = []
        for order in orders:
            try:
                self._assign(asking, order, agent, wanted, len(orders) - order.index)
            except ToolError as error:
                if len(orders) == 1:
                    raise
                refused.append(_refused(order, error))
        await self._runner.begin(self._runner.tree.of_call(call_id))
        done = await self._runner.outcome_of(call_id, self._settings.wait_seconds if wait else 0.0)
        results = [{"task": task.index, **self.result_of(task)} for task in done] + refused
        results.sort(key=lambda result: result["task"])
        return self.output(json.dumps({"results": results}, ensure_ascii=False), done)

    def _assign(self, asking: Asking, order: TaskOrder, agent: str | None, wanted: AgentSpec, parts: int) -> GivenTask:
        tree, now = self._runner.tree, self._runner.clock()
        if agent is not None:
            return tree.assign(tree.named(asking, agent), asking, order, now)
        made = tree.make(asking, wanted, order.call_id, order.index, now, parts)
        return tree.assign(made, asking, order, now)


def _refused(order: TaskOrder, error: ToolError) -> dict[str, Any]:
    return {"task": order.index, "status": "refused", "error": {"kind": error.kind, "message": str(error)}}


# The tool by which an agent publishes an event for all others.


class EmitEventTool(AgentTool):
    """Tell all agents of this conversation that something has happened; wait_for_event waits for it."""

    name = "emit_event"

    async def run(
        self,
        name: Annotated[Name, "What it is called: small letters, digits, hyphens"],
        text: Annotated[TaskText, "What has happened"],
    ) -> ToolOutput:
        """The event's number."""
        asking, request = await self.asking(), self.request()
        now = self._runner.clock()
        event = self._post.emit(asking, name, text, request.call_id, now, tainted=request.tainted)
        await self._runner.save()
        return ToolOutput(f"{name} is event {event.number}.")


# The tool that lists the states of agents.

MOST_SHOWN = 2000  # characters of an answer


class ListAgentsTool(AgentTool):
    """Tell how your agents are, what each was asked last and has answered, and what it has used."""

    name = "list_agents"

    async def run(self) -> ToolOutput:
        """The agents of the asker, and theirs."""
        asking = await self.asking()
        tree, now = self._runner.tree, self._runner.clock()
        agents, tasks = tree.below(asking), []
        listed = []
        for agent in agents:
            latest = tree.tasks_of(agent.agent_id)[-1:]
            tasks += latest
            used = tree.used(agent, now)
            told: Json = {"agent": agent.name, "state": agent.state, "depth": agent.depth}
            told |= {"tokens": f"{used.tokens} of {agent.budget.tokens}"}
            for task in latest:
                told |= {"task": task.text[:MOST_SHOWN], **self.result_of(task)}
                if "answer" in told:
                    told["answer"] = told["answer"][:MOST_SHOWN]
            listed.append(told)
        return self.output(json.dumps({"agents": listed}, ensure_ascii=False), tasks)


# The tool by which one agent writes to another.


class SendMessageTool(AgentTool):
    """Write to an agent of this conversation, who reads it with check_inbox."""

    name = "send_message"

    async def run(
        self,
        to: Annotated[Name, "Its name; or parent, who has made you; or root, who talks with the user"],
        text: Annotated[TaskText, "What to tell"],
    ) -> ToolOutput:
        """That the message is there."""
        asking, request = await self.asking(), self.request()
        self._post.send(asking, to, text, request.call_id, self._runner.clock(), tainted=request.tainted)
        await self._runner.save()
        return ToolOutput(f"{to} has it in the inbox.")


# The tool that makes an agent which stays.


class SpawnAgentTool(AgentTool):
    """Make an agent that stays and remembers what it was asked, and begin its first task in the background. list_agents
    tells how it is; delegate_task with its name asks more of it; terminate_agent ends it."""

    name = "spawn_agent"

    async def run(
        self,
        name: Annotated[Name, "What it is called: small letters, digits, hyphens"],
        task: Annotated[TaskText, "All that it is to do and to know"],
        tools: Annotated[list[str] | None, "Which of your tools it gets; without it all"] = None,
        profile: Annotated[str | None, "What kind of assistant it is; without it as you are"] = None,
        tokens: Annotated[int | None, "How many tokens it may use at most", Field(ge=1000)] = None,
        seconds: Annotated[float | None, "How long it may live", Field(gt=0)] = None,
    ) -> ToolOutput:
        """The agent's name, and what it may use."""
        asking, request = await self.asking(), self.request()
        tree, now = self._runner.tree, self._runner.clock()
        order = AgentSpec(
            name=name, tools=None if tools is None else tuple(tools), profile=await self.profile(profile),
            tokens=tokens, seconds=seconds, tainted=request.tainted,
        )  # fmt: skip
        agent = tree.make(asking, order, request.call_id, 0, now)
        first = TaskOrder(
            text=task, call_id=request.call_id, cause_id=self.asked_by().cause_id, in_background=True,
            tainted=request.tainted,
        )  # fmt: skip
        given = tree.assign(agent, asking, first, now)
        await self._runner.begin([given])
        told = {"agent": agent.name, "agent_id": agent.agent_id, "status": "working"}
        return self.output(json.dumps({**told, "budget": agent.budget.model_dump()}), [given])


# The tool that ends an agent.


class TerminateAgentTool(AgentTool):
    """End one of your agents, with all agents that it has made; what they are doing is cancelled."""

    name = "terminate_agent"

    async def run(self, agent: Annotated[Name, "Its name"]) -> str:
        """That the agent ends."""
        found = self._runner.tree.named(await self.asking(), agent)
        await self._runner.stop(found)
        return f"{found.name} has ended."


# The tool by which an agent waits until something has happened.


class WaitForEventTool(AgentTool):
    """Wait until an agent of this conversation has told that something has happened; at once if one has."""

    name = "wait_for_event"

    async def run(
        self,
        name: Annotated[Name, "What it is called"],
        after: Annotated[int, "The number of the last one that you know", Field(ge=0)] = 0,
        seconds: Annotated[float, "How long to wait at most", Field(gt=0, le=600)] = 60,
    ) -> ToolOutput:
        """The event, with its number."""
        event = await self._event(await self.asking(), name, after, min(seconds, self._settings.wait_seconds))
        if event is None:
            raise ToolError(f"no {name} within {seconds:g} s", kind="timeout")
        told = {"number": event.number, "from": event.sender_name, "text": event.text}
        return ToolOutput(json.dumps(told, ensure_ascii=False), tainted=event.tainted)

    async def _event(self, asking: Asking, name: str, after: int, seconds: float) -> AgentEvent | None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while (event := self._post.event(asking, name, after)) is None:
                    await self._runner.news()
                return event
        return None


CONSUMER = "swarm"
ANSWERS_AT_ONCE = 64
CALLS_AT_ONCE = 1024  # most of them wait for agents, some of which have calls here in turn
CORE: tuple[type[AgentTool], ...] = (SpawnAgentTool, DelegateTaskTool, ListAgentsTool, TerminateAgentTool)
KINDS = (*CORE, SendMessageTool, CheckInboxTool, EmitEventTool, WaitForEventTool)


class Swarm(ToolGroup):
    """The participant that keeps the tree of agents and offers the tools for it. An agent is a session of the
    generator: it is asked by queries, like a user's."""

    name = "swarm"
    Config = SwarmConfig
    tools = KINDS

    def __init__(self, config: SwarmConfig, store: AgentStore, profiles: ProfileRegistry) -> None:
        self._settings, self._tree = config, AgentTree(config)
        self._runner = AgentRunner(self, store, self._tree, profiles)
        super().__init__(config, [kind(config, self._runner) for kind in KINDS])

    @classmethod
    def build(cls, config: SwarmConfig, resources: Resources) -> Self:
        """Build it with its own file, and the existing profiles."""
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
        """Open the tree, and continue with its tasks."""
        async with super().lifespan(), self._runner.are_running():
            yield

    def offered(self) -> Iterable[Tool]:
        """The tools that the settings offer."""
        kinds: tuple[type[AgentTool], ...] = {"none": (), "core": CORE, "all": KINDS}[self._settings.offer]
        return [tool for tool in super().offered() if isinstance(tool, kinds)]

    def metrics(self) -> dict[str, int]:
        """Return the number of agents, and of those that work."""
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
        """Cancel the tasks of a cancelled query."""
        await self._runner.withdraw(cancel.query_id)

    @on(SessionDeleted, durable=CONSUMER)
    async def forget_tree(self, deleted: SessionDeleted, envelope: Envelope) -> None:
        """Forget a deleted session, and its agents' work."""
        await self._runner.forget(deleted.deleted_session_id)

    @on(MemoryDeleted, durable=CONSUMER)
    async def forget_root(self, deleted: MemoryDeleted, envelope: Envelope) -> None:
        """Forget a deleted exchange: its agents' work is deleted with everything that the session's agents know."""
        if (root := self._tree.roots.get(deleted.query_id)) is not None:
            await self._runner.forget(root.session_id)

    @on(AgentRequest)
    async def serve(self, request: AgentRequest, envelope: Envelope) -> AgentResult:
        """Answer a frontend: list the agents, show one, or stop one."""
        found = [each for each in self._tree.agents.values() if self._is_meant(each, request)]
        if request.verb == "list":
            return AgentResult(verb="list", agents=tuple(map(self._shown, found)))
        if not found:
            error = ErrorInfo(kind="not_found", message=f"there is no agent {request.agent_id}")
            return AgentResult(verb=request.verb, error=error)
        if request.verb == "show":
            tasks = tuple(map(shown_task, self._tree.tasks_of(found[0].agent_id)))
            letters = tuple(Mailbox(self._tree).letters(found[0]))
            return AgentResult(verb="show", agents=(self._shown(found[0]),), tasks=tasks, letters=letters)
        await self._runner.stop(found[0])
        return AgentResult(verb="stop", agents=(self._shown(self._tree.agents[found[0].agent_id]),))

    def error_reply(self, message: Message, error: Exception) -> Message | None:
        """The reply for a request that failed."""
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
        return shown(agent, self._tree.tasks_of(agent.agent_id), used, root)
