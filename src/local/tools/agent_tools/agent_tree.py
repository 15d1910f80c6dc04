"""Which agents there are, what each may use, and what becomes of their tasks: decisions only, no I/O and no clock."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from local.errors import ToolError
from local.protocol.agent_messages import AgentBudget, AgentTask
from local.protocol.answer_options import AnswerOptions, AnswerProfile
from local.protocol.message import ErrorInfo
from local.runtime.machine import Machine
from local.tools.agent_tools.agent import Agent, Asking, GivenTask, Outcome
from local.tools.agent_tools.agent_book import AgentBook
from local.tools.agent_tools.agent_order import AgentOrder, TaskOrder
from local.tools.agent_tools.agent_table import AGENT_TABLE, AgentAction, AgentState
from local.tools.agent_tools.swarm_config import SwarmConfig
from local.tools.agent_tools.task_form import fault_of

LEAST_TOKENS = 1000  # with fewer nobody answers anything
NO_BUDGET, TOO_MANY, TOO_DEEP = "no_budget", "too_many_agents", "too_deep"
_NAMESPACE = uuid.UUID("7c1f5d0e-9a55-4b19-8d8e-8f1c2f0b6a3d")


def agent_id_of(call_id: str, index: int) -> str:
    """Always the same, so that a call that is made again makes no other agent."""
    return uuid.uuid5(_NAMESPACE, f"{call_id}\n{index}").hex


class AgentTree(AgentBook):
    """The agents of every session. What an agent uses, its parent uses with it; what it may use is set apart for it
    until it has ended."""

    def __init__(self, limits: SwarmConfig) -> None:
        super().__init__()
        self._limits = limits

    # What may be used

    def used(self, agent: Agent, now: float) -> AgentBudget:
        """What an agent has used, with all that its own have; its children are those that have not ended."""
        below = [self.used(child, now) for child in self.children(agent.agent_id)]
        return AgentBudget(
            tokens=agent.used_tokens + sum(each.tokens for each in below),
            calls=agent.used_calls + sum(each.calls for each in below),
            seconds=round((agent.ended_at or now) - agent.made_at, 3),
            children=sum(child.state is not AgentState.ENDED for child in self.children(agent.agent_id)),
        )

    def left(self, asking: Asking, now: float) -> AgentBudget:
        """What whoever asks may still use, or give away."""
        limits = self._limits
        if asking.agent is None:
            made = [each for each in self._of_root(asking.query_id) if each.depth == 1]
            tokens, calls, seconds, children = limits.tokens, limits.calls, limits.seconds, limits.children
            at_once = [each for each in self._of_tree(asking.root.session_id) if each.depth == 1]
        else:
            agent = self.agents[asking.agent.agent_id]
            made = at_once = self.children(agent.agent_id)
            tokens, calls = agent.budget.tokens - agent.used_tokens, agent.budget.calls - agent.used_calls
            seconds, children = agent.ends_by - now, agent.budget.children
        taken = [self._taken(each, now) for each in made]
        return AgentBudget(
            tokens=max(0, tokens - sum(each.tokens for each in taken)),
            calls=max(0, calls - sum(each.calls for each in taken)),
            seconds=max(0.0, seconds),
            children=max(0, children - sum(each.state is not AgentState.ENDED for each in at_once)),
        )

    def _taken(self, agent: Agent, now: float) -> AgentBudget:
        used = self.used(agent, now)
        if agent.state is AgentState.ENDED:
            return used
        larger = {name: max(getattr(used, name), getattr(agent.budget, name)) for name in ("tokens", "calls")}
        return agent.budget.model_copy(update=larger)

    # Making and asking

    def make(self, asking: Asking, order: AgentOrder, call_id: str, index: int, now: float, parts: int = 1) -> Agent:
        """A new agent, the first of `parts` that are still to be made together, each with its share of what is left.
        Raises `ToolError` for one too many, too deep, or with nothing to use."""
        agent_id = agent_id_of(call_id, index)
        if (known := self.agents.get(agent_id)) is not None:
            return known
        left = self.left(asking, now)
        self._require_room(asking, left)
        budget = self._share(order, left, parts)
        agent = Agent(
            agent_id=agent_id,
            name=self._free_name(asking.root.session_id, order.name),
            parent_id=asking.agent_id or None,
            depth=asking.depth + 1,
            tree=asking.root.session_id,
            root_query_id=asking.root.query_id,
            parent_query_id=asking.query_id,
            user_id=asking.root.user_id,
            budget=budget,
            tools=_both(self._tools_of(asking), order.tools),
            profile=order.profile or _profile_of(asking),
            passing=order.passing,
            tainted=order.tainted,
            made_at=now,
            ends_by=now + budget.seconds,
        )
        self.note(agent)
        return agent

    def give(self, agent: Agent, asking: Asking, order: TaskOrder, now: float) -> GivenTask:
        """A task for an agent that has none. Raises `ToolError` for one that works or has ended, or has nothing left
        to use."""
        known = next((task for task in self._of_call(order.call_id) if task.index == order.index), None)
        if known is not None:
            return known
        agent = self.agents[agent.agent_id]
        if agent.state is not AgentState.READY:
            raise ToolError(f"the agent {agent.name} is {agent.state.lower()}; it can have no task now", kind="busy")
        left = self.left(Asking(query_id="", root=asking.root, agent=agent), now)
        if left.tokens < LEAST_TOKENS or left.seconds <= 0:
            raise ToolError(f"the agent {agent.name} has used all that it may use; make another one", kind=NO_BUDGET)
        task = self._task(agent, asking, order, left, now)
        tainted = agent.tainted or order.tainted
        self.note(task)
        self.note(self._advanced(agent.model_copy(update={"tainted": tainted}), AgentAction.GIVE_TASK, now))
        return task

    def _task(self, agent: Agent, asking: Asking, order: TaskOrder, left: AgentBudget, now: float) -> GivenTask:
        number = 1 + sum(task.agent_id == agent.agent_id for task in self.tasks.values())
        asked_by = self.tasks.get(asking.query_id)
        background = (
            order.in_background or asking.root.in_background or (asked_by is not None and asked_by.in_background)
        )
        return GivenTask(
            query_id=f"{agent.agent_id}-{number}",
            agent_id=agent.agent_id,
            tree=agent.tree,
            root_query_id=asking.root.query_id,
            parent_query_id=asking.query_id,
            call_id=order.call_id,
            index=order.index,
            cause_id=order.cause_id,
            text=order.text,
            form=order.form,
            is_formal=order.is_formal,
            is_told_later=order.in_background,
            tainted=agent.tainted or order.tainted,
            in_background=background,
            max_tokens=left.tokens,
            max_calls=left.calls,
            asked_at=now,
            ends_by=agent.ends_by,
        )

    def is_deepest(self, agent: Agent) -> bool:
        """Whether an agent may have none."""
        return agent.depth >= self._limits.depth

    def as_asked(self, task: GivenTask) -> AgentTask:
        """What the query of a task says of whose it is."""
        agent, root = self.agents[task.agent_id], self.roots[task.root_query_id]
        return AgentTask(
            agent_id=agent.agent_id,
            name=agent.name,
            depth=agent.depth,
            parent_query_id=task.parent_query_id,
            root_query_id=root.query_id,
            root_session_id=root.session_id,
            asked=root.question,
            tainted=task.tainted,
            in_background=task.in_background,
            max_tokens=task.max_tokens,
            max_calls=task.max_calls,
        )

    # Ending

    def ended(self, query_id: str, outcome: Outcome, now: float) -> GivenTask | None:
        """The query of a task has ended; None for one that is no task's, or had ended before."""
        task = self.tasks.get(query_id)
        if task is None or task.state != "asked":
            return None
        error = ErrorInfo(kind="timeout", message="its time was over") if task.is_late else outcome.error
        told = outcome.model_dump(include={"state", "answer", "sources", "tokens"})
        task = task.model_copy(update={**told, "error": error, "is_answer_tainted": outcome.tainted})
        self.note(task)
        agent = self.agents[task.agent_id]
        used = {"used_tokens": agent.used_tokens + outcome.tokens, "used_calls": agent.used_calls + outcome.calls}
        agent = agent.model_copy(update={**used, "tainted": agent.tainted or outcome.tainted})
        agent = self._advanced(agent, AgentAction.TASK_ENDED, now)
        if now >= agent.ends_by:
            agent = self._advanced(agent, AgentAction.STOP, now)
        self.note(agent)
        return task

    def repeat(self, task: GivenTask, now: float) -> GivenTask | None:
        """Where an answer has not the form that was asked for, the agent is asked once more, and held to it; returns
        that task. What has not that form then has failed."""
        fault = fault_of(task.answer, task.form) if task.form and task.state == "answered" else ""
        if not fault:
            return None
        agent, asking = self.agents[task.agent_id], self.asking(task.parent_query_id)
        if task.is_formal or asking is None or agent.state is not AgentState.READY:
            error = ErrorInfo(kind="bad_form", message=f"the answer has not the form that was asked for: {fault}")
            self.note(task.model_copy(update={"state": "failed", "error": error}))
            return None
        self.note(task.model_copy(update={"state": "repeated"}))
        order = TaskOrder(
            text=f"Your answer has not the form that was asked for ({fault}). Say it again, in that form.",
            call_id=task.call_id, index=task.index, cause_id=task.cause_id, form=task.form, is_formal=True,
            in_background=task.in_background, tainted=task.is_answer_tainted,
        )  # fmt: skip
        try:
            return self.give(agent, asking, order, now)
        except ToolError as error:
            failed = ErrorInfo.of(error)
            self.note(task.model_copy(update={"state": "failed", "error": failed}))
            return None

    def leave(self, agent_id: str, now: float) -> list[str]:
        """An agent that was only there for its task is not needed any more; returns what of it is to be cancelled."""
        return self.stop(agent_id, now) if self.agents[agent_id].passing else []

    def stop(self, agent_id: str, now: float) -> list[str]:
        """An agent ends, with all that it has made; returns the queries that are to be cancelled."""
        agent, queries = self.agents[agent_id], []
        for child in self.children(agent_id):
            queries += self.stop(child.agent_id, now)
        if agent.state is AgentState.WORKING:
            queries += [task.query_id for task in self.open() if task.agent_id == agent_id]
        if agent.state is not AgentState.ENDED:
            self.note(self._advanced(agent, AgentAction.STOP, now))
        return queries

    def withdraw(self, query_id: str, now: float) -> list[str]:
        """A query is cancelled: whatever it has asked of agents is, too; returns the queries."""
        queries = [task.query_id for task in self.open() if task.parent_query_id == query_id]
        for agent in [each for each in self.agents.values() if each.parent_query_id == query_id]:
            queries += self.stop(agent.agent_id, now)
        return list(dict.fromkeys(queries))

    def late(self, now: float) -> list[str]:
        """The queries of tasks whose time is over, for the first time."""
        over = [task for task in self.open() if task.ends_by <= now and not task.is_late]
        for task in over:
            self.note(task.model_copy(update={"is_late": True}))
        return [task.query_id for task in over]

    def _require_room(self, asking: Asking, left: AgentBudget) -> None:
        limits = self._limits
        if asking.depth >= limits.depth:
            raise ToolError(f"agents are {limits.depth} deep at most: do this yourself", kind=TOO_DEEP)
        if not left.children:
            raise ToolError("no more agents at once: wait for those that work, or stop one", kind=TOO_MANY)
        if sum(1 for _ in self._of_root(asking.root.query_id)) >= limits.agents:
            raise ToolError(f"one question has {limits.agents} agents at most, and has had them", kind=TOO_MANY)

    def _share(self, order: AgentOrder, left: AgentBudget, parts: int) -> AgentBudget:
        limits = self._limits
        budget = AgentBudget(
            tokens=min(order.tokens or limits.agent_tokens, left.tokens // (parts + 1)),
            calls=min(order.calls or limits.agent_calls, left.calls // (parts + 1)),
            seconds=min(order.seconds or limits.agent_seconds, left.seconds),
            children=limits.children,
        )
        if budget.tokens < LEAST_TOKENS or budget.seconds <= 0:
            text = f"there is too little left for an agent: {left.tokens} tokens, {left.seconds:.0f} s"
            raise ToolError(text, kind=NO_BUDGET)
        return budget

    def _tools_of(self, asking: Asking) -> tuple[str, ...] | None:
        options, profile = asking.root.options or AnswerOptions(), _profile_of(asking)
        has = asking.agent.tools if asking.agent is not None else options.allow
        return _both(has, profile.tools if profile is not None else None)

    def _free_name(self, tree: str, wanted: str) -> str:
        taken = {"root", *(each.name for each in self._of_tree(tree))}
        names = (wanted if number == 1 else f"{wanted}-{number}" for number in range(1, len(taken) + 2))
        return next(name for name in names if name not in taken)

    def _advanced(self, agent: Agent, action: AgentAction, now: float) -> Agent:
        state = Machine(AGENT_TABLE, agent.state).advance(action)
        ended_at = now if state is AgentState.ENDED and agent.ended_at is None else agent.ended_at
        return agent.model_copy(update={"state": state, "ended_at": ended_at})


def _profile_of(asking: Asking) -> AnswerProfile | None:
    """That of whoever asks: its own, or the one with which the user has asked."""
    if asking.agent is not None:
        return asking.agent.profile
    return asking.root.options.profile if asking.root.options else None


def _both(parents: tuple[str, ...] | None, wanted: Sequence[str] | None) -> tuple[str, ...] | None:
    """The tools that an agent has: of those that it is to have those that its parent has."""
    if wanted is None:
        return parents
    return tuple(dict.fromkeys(tool for tool in wanted if parents is None or tool in parents))
