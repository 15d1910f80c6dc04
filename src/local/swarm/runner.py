"""Has agents work: their tasks are queries like a user's, recorded before they are asked, and each ends once."""

from __future__ import annotations

import asyncio
import json
import logging
import math
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, ClassVar

from local.bus.envelope import Trace, session_of
from local.bus.message import MAIN_RESPONDENT
from local.bus.messages import (
    AnswerOptions,
    ConversationRequest,
    ConversationResult,
    QueryCancel,
    QueryReceived,
    ToolRequest,
)
from local.bus.vocabulary import AGENT, BACKGROUND, CLARIFICATION
from local.core import failpoints
from local.core.errors import JournalFull, LocalError, RecordNotRedacted, RecordUnreadable, RequestTimeout, ToolError
from local.core.profiles import ProfileRegistry
from local.journal.messages import JournalRead
from local.queries.asker import query_envelope_id
from local.queries.errors import QueryDeleted
from local.queries.record import read_query
from local.runtime.participant import Participant, Publications
from local.swarm.agents import (
    Agent,
    AgentEvent,
    AgentMail,
    AgentStore,
    AgentTree,
    Asking,
    GivenTask,
    Json,
    Mailbox,
    Outcome,
    Record,
    RootQuery,
    StoredRecord,
)
from local.swarm.messages import AgentChanged

# A task as the query that an agent is asked.

_MAKING = ("delegate_task", "spawn_agent")
_NOT_HANDED_ON = ("format", "functions", "must_call", "one_call", "stop", "max_tokens", "remember", "think", "model")


def query_of(task: GivenTask, agent: Agent, root: RootQuery, tree: AgentTree) -> QueryReceived:
    """Return the recorded query of a task: the agent's earlier tasks are its history."""
    history: list[Json] = []
    for asked, answered in tree.history(task):
        history += [{"role": "user", "content": asked}, {"role": "assistant", "content": answered}]
    return QueryReceived(
        query_id=task.query_id,
        query=text_of(task, agent),
        incognito=root.incognito,
        origin=AGENT,
        history=tuple(history),
        options=options_of(task, agent, root.options or AnswerOptions(), tree),
        session_id=agent.agent_id,
        task=tree.as_asked(task),
    )


def text_of(task: GivenTask, agent: Agent) -> str:
    """Return the text for the agent."""
    who = f"You are the agent {agent.name}. Do this task, and answer with its result; nobody can be asked."
    form = f"\n\nAnswer with JSON alone, of this JSON Schema: {json.dumps(task.form)}" if task.form else ""
    return f"{who}\n\n{task.text}{form}"


def options_of(task: GivenTask, agent: Agent, asked: AnswerOptions, tree: AgentTree) -> AnswerOptions:
    """Return the options of the query: those of the user, with no tool that the parent does not have."""
    defaults = AnswerOptions()
    cleared = {name: getattr(defaults, name) for name in _NOT_HANDED_ON}
    no_agents = _MAKING if tree.is_deepest(agent) else ()  # it may make none: their schemas would waste tokens
    deny = tuple(dict.fromkeys((*asked.deny, CLARIFICATION, *no_agents)))
    form = task.form if task.is_formal else None
    return asked.model_copy(
        update={**cleared, "allow": agent.tools, "deny": deny, "format": form, "profile": agent.profile}
    )


log = logging.getLogger(__name__)

READ_SECONDS = 10.0
DELETE_SECONDS = 10.0
RETRY_SECONDS = 1.0
KINDS: dict[str, type[Record]] = {
    "agent": Agent, "task": GivenTask, "root": RootQuery, "mail": AgentMail, "event": AgentEvent,
}  # fmt: skip


class AgentRunner:
    """The tree with its file and its bus. It stores a decision before it publishes it; so a process that continues
    after a crash publishes what is missing, and nothing twice. `owner` has the bus; `clock` returns seconds since 1970.
    """

    publishes: ClassVar[Publications] = (
        QueryReceived,
        QueryCancel,
        AgentChanged,
        JournalRead,
        "conversation.request.delete",
    )

    def __init__(
        self,
        owner: Participant,
        store: AgentStore,
        tree: AgentTree,
        profiles: ProfileRegistry,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._owner, self._store, self.tree, self.profiles, self.clock = owner, store, tree, profiles, clock
        self._news = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def are_running(self) -> AsyncIterator[None]:
        """Continue what an earlier process has begun, and end tasks that take too long, while the block lasts."""
        async with self._store:
            self.tree.take_in(_read(each) for each in await self._store.all())
            for task in self.tree.open():
                self._begin(self._ask(task))
            self._begin(self._watch())
            try:
                yield
            finally:
                tasks = list(self._tasks)
                for task_ in tasks:
                    task_.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)

    async def asking(self, request: ToolRequest, trace: Trace) -> Asking:
        """Return the caller of a tool. Raises `ToolError` if it is unknown."""
        if request.respondent_id != MAIN_RESPONDENT:
            raise ToolError("a second respondent has no agents; go on without", kind="fenced")
        known = self.tree.asking(request.query_id)
        if known is not None:
            return known
        try:
            found = await read_query(self._owner.bus, request.query_id, READ_SECONDS)
        except (RecordUnreadable, RequestTimeout, QueryDeleted) as error:
            raise ToolError(f"who asks cannot be told now: {error}", kind="unavailable") from None
        query = next((each for each, _ in found if isinstance(each, QueryReceived)), None)
        if query is None:
            raise ToolError("the query that asks is not on record", kind="unavailable")
        root = RootQuery(
            query_id=query.query_id,
            session_id=session_of(trace, query.query_id),
            user_id=trace.user_id,
            question=query.query if query.is_of_user else "",
            options=query.options,
            incognito=query.incognito,
            in_background=query.origin in BACKGROUND,
        )
        return self.tree.begin(root)

    async def begin(self, tasks: Sequence[GivenTask]) -> None:
        """Ask the tasks that are new. Raises `StoreFailed`."""
        await self.save()
        failpoints.reach("swarm.stored")
        for task in tasks:
            if task.state == "asked":
                self._begin(self._ask(task))

    async def save(self) -> None:
        """Store the decisions, and publish the changes of agents. Raises `StoreFailed`."""
        changed = dict(self.tree.changed)
        if not changed:
            return
        records = [
            StoredRecord(kind, name, _tree_of(each), each.model_dump_json()) for (kind, name), each in changed.items()
        ]
        await self._store.keep(records)
        for key, each in changed.items():
            if self.tree.changed.get(key) is each:
                del self.tree.changed[key]
        for each in changed.values():
            if isinstance(each, Agent):
                self._begin(self._publish(each))
        self._wake()

    async def outcome_of(self, call_id: str, seconds: float) -> list[GivenTask]:
        """Return the tasks of a call when all have ended, or the time is over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while any(task.state == "asked" for task in self.tree.of_call(call_id)):
                    await self.news()
        return self.tree.of_call(call_id)

    async def news(self) -> None:
        """Wait for whatever changes next."""
        await self._news.wait()

    async def ended(self, query_id: str, outcome: Outcome) -> None:
        """The query of a task has ended. Raises `StoreFailed`."""
        task = self.tree.ended(query_id, outcome, self.clock())
        if task is None:
            return
        again = self.tree.repeat(task, self.clock())
        asking = self.tree.asking(task.parent_query_id)
        if again is None and task.is_told_later and asking is not None:
            Mailbox(self.tree).post_result(self.tree.tasks[query_id], asking, self.clock())
        cancelled = [] if again else self.tree.leave(task.agent_id, self.clock())
        await self.begin([again] if again else [])
        await self.cancel(cancelled)

    async def withdraw(self, query_id: str) -> None:
        """Cancel the tasks of a cancelled query. Raises `StoreFailed`, `NotConfirmed`."""
        cancelled = self.tree.withdraw(query_id, self.clock())
        await self.save()
        await self.cancel(cancelled)

    async def stop(self, agent: Agent) -> None:
        """An agent ends, with all that it has made. Raises `StoreFailed`, `NotConfirmed`."""
        cancelled = self.tree.stop(agent.agent_id, self.clock())
        await self.save()
        await self.cancel(cancelled)

    async def cancel(self, query_ids: Iterable[str]) -> None:
        """Have the queries of tasks cancelled. Raises `NotConfirmed`."""
        for query_id in query_ids:
            task = self.tree.tasks[query_id]
            agent = self.tree.agents[task.agent_id]
            trace = Trace(query_id, None, agent.agent_id, agent.user_id)
            await self._owner.bus.publish(QueryCancel(query_id=query_id), trace)

    async def forget(self, session_id: str) -> None:
        """Delete the tasks and answers of a deleted session's agents. Raises `RecordNotRedacted` while that is not
        possible, `StoreFailed`.
        """
        for agent in self.tree.of_tree(session_id):
            await self.stop(agent)
        for agent in self.tree.of_tree(session_id):
            await self._delete_session(agent)
        self.tree.forget(session_id)
        self.tree.changed = {key: each for key, each in self.tree.changed.items() if _tree_of(each) != session_id}
        await self._store.forget(session_id)

    async def _delete_session(self, agent: Agent) -> None:
        request = ConversationRequest(verb="delete", key=agent.agent_id)
        try:
            result = await self._owner.bus.request(request, ConversationResult, DELETE_SECONDS)
        except LocalError as error:
            raise RecordNotRedacted(str(error)) from None
        if result.error is not None and result.error.kind != "not_found":
            raise RecordNotRedacted(result.error.message)

    async def _ask(self, task: GivenTask) -> None:
        """Put a task on record as a query, under an id that is always the same."""
        agent, root = self.tree.agents[task.agent_id], self.tree.roots[task.root_query_id]
        query = query_of(task, agent, root, self.tree)
        trace = Trace(task.query_id, task.cause_id, agent.agent_id, agent.user_id)
        while True:
            try:
                envelope_id = query_envelope_id(task.query_id)
                await self._owner.bus.publish(query, trace, envelope_id=envelope_id, seconds=math.inf)
                failpoints.reach("swarm.asked")
                return
            except JournalFull as error:
                log.error("the task %s waits until it can be put on record: %s", task.query_id, error)
                await asyncio.sleep(RETRY_SECONDS)

    async def _publish(self, agent: Agent) -> None:
        tasks = self.tree.tasks_of(agent.agent_id)
        latest = tasks[-1] if tasks else None
        changed = AgentChanged(
            agent_id=agent.agent_id,
            name=agent.name,
            parent_id=agent.parent_id,
            depth=agent.depth,
            state=agent.state,
            query_id=agent.parent_query_id,
            root_query_id=agent.root_query_id,
            task_query_id=latest.query_id if latest else "",
            error=latest.error if latest else None,
        )
        root = self.tree.roots.get(agent.root_query_id)
        session = agent.parent_id or (root.session_id if root else None)
        await self._owner.bus.publish(changed, Trace(agent.parent_query_id, None, session, agent.user_id))

    async def _watch(self) -> None:
        """Cancel tasks that take longer than they may."""
        while True:
            open_tasks = [task.ends_by for task in self.tree.open() if not task.is_late]
            pause = max(0.0, min(open_tasks) - self.clock()) if open_tasks else None
            with suppress(TimeoutError):
                await asyncio.wait_for(self.news(), pause)
            if late := self.tree.late(self.clock()):
                await self.save()
                await self.cancel(late)

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(_logged(work), name="agent")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _logged(work: Coroutine[Any, Any, None]) -> None:
    try:
        await work
    except LocalError as error:
        log.error("left for the next start: %s", error)


def _read(stored: StoredRecord) -> Record:
    return KINDS[stored.kind].model_validate_json(stored.body)


def _tree_of(record: Record) -> str:
    return record.session_id if isinstance(record, RootQuery) else record.tree
