"""Agents, their budgets and their tasks: decisions only, without I/O and without a clock; and the file that stores
them.

A model gives tasks to agents, which may give tasks to agents of their own, three deep at most. Each agent gets a share
of its parent's remaining budget, reserved until it has ended, so that no tree uses more than its question may. Ids
follow from the call that made an agent or a task: a call that is repeated after a crash makes nothing twice. Untrusted
content that an agent has read taints its answers, and so all its later tasks.
"""

from __future__ import annotations

import json
import re
import sqlite3
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, Literal, Self

from pydantic import Field

from local.bus.message import Data, ErrorInfo
from local.bus.messages import AnswerOptions, AnswerProfile
from local.core.config import Settings
from local.core.database import OwnedDatabase
from local.core.errors import ToolError
from local.runtime.machine import Machine, Table
from local.swarm.messages import AgentBudget, AgentLetter, AgentRecord, AgentTask, AgentTaskRecord

KEPT_SECONDS = 30 * 24 * 3600.0

_MIGRATIONS = (
    """
    CREATE TABLE records (
        kind TEXT NOT NULL,
        id TEXT NOT NULL,
        tree TEXT NOT NULL,
        body TEXT NOT NULL,
        number INTEGER NOT NULL,
        changed_at REAL NOT NULL,
        PRIMARY KEY (kind, id)
    ) WITHOUT ROWID;
    CREATE INDEX records_by_tree ON records (tree);
    """,
)


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A row of the store: a record of a `kind`, under an `id`, of the session `tree`; `body` is JSON."""

    kind: str
    id: str
    tree: str
    body: str


class AgentStore(OwnedDatabase):
    """The file of agents; use as `async with`. The process that opened it last owns it, and a session in which nothing
    has changed for 30 days is forgotten then. Every coroutine returns after its commit; raises `StoreFailed`,
    `StoreFenced`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, _MIGRATIONS)

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        await self.erase(self._drop_old)
        return self

    async def all(self) -> list[StoredRecord]:
        """Everything, in the order in which it was first kept."""
        sql = "SELECT kind, id, tree, body FROM records ORDER BY number"
        return await self.run(lambda db: [StoredRecord(**dict(row)) for row in db.execute(sql)])

    async def keep(self, records: Sequence[StoredRecord]) -> None:
        """Store these, in one commit; each takes the place of an earlier one of its kind and id."""
        now = time.time()
        sql = (
            "INSERT INTO records VALUES (?, ?, ?, ?, (SELECT 1 + coalesce(max(number), 0) FROM records), ?)"
            " ON CONFLICT DO UPDATE SET body = excluded.body, changed_at = excluded.changed_at"
        )
        rows = [(each.kind, each.id, each.tree, each.body, now) for each in records]
        await self.write(lambda db: db.executemany(sql, rows).rowcount)

    async def forget(self, tree: str) -> None:
        """Remove permanently everything of a session."""
        await self.erase(lambda db: db.execute("DELETE FROM records WHERE tree = ?", (tree,)).rowcount)

    def _drop_old(self, db: sqlite3.Connection) -> None:
        sql = "DELETE FROM records WHERE tree IN (SELECT tree FROM records GROUP BY tree HAVING max(changed_at) < ?)"
        db.execute(sql, (time.time() - KEPT_SECONDS,))


class AgentState(StrEnum):
    """The state of an agent."""

    READY = "READY"
    WORKING = "WORKING"
    STOPPING = "STOPPING"
    ENDED = "ENDED"


class AgentAction(StrEnum):
    """An event in the life of an agent."""

    GIVE_TASK = "GIVE_TASK"
    TASK_ENDED = "TASK_ENDED"
    STOP = "STOP"


AGENT_TABLE: Final[Table[AgentState, AgentAction]] = {
    AgentState.READY: {
        AgentAction.GIVE_TASK: AgentState.WORKING,
        AgentAction.STOP: AgentState.ENDED,
    },
    AgentState.WORKING: {
        AgentAction.TASK_ENDED: AgentState.READY,
        AgentAction.STOP: AgentState.STOPPING,
    },
    AgentState.STOPPING: {
        AgentAction.TASK_ENDED: AgentState.ENDED,
        AgentAction.STOP: AgentState.STOPPING,
    },
    AgentState.ENDED: {
        AgentAction.STOP: AgentState.ENDED,
    },
}


Json = dict[str, Any]
TaskState = Literal["asked", "answered", "cancelled", "failed", "repeated"]


class RootQuery(Data):
    """A user's query whose model has agents work; `question` is empty if it is not in the user's own words. `options`
    are those of the user's query. With `in_background` no person waits for it.
    """

    query_id: str
    session_id: str
    user_id: str | None = None
    question: str
    options: AnswerOptions | None = None
    incognito: bool = False
    in_background: bool = False


class Agent(Data):
    """An agent in the tree of a session; the id of its own session is its id. `parent_id` is None if a user's query has
    made it, named by `root_query_id`; `parent_query_id` is the query that has made it. With `tools` None it has all
    tools; its `profile` may allow fewer. One that is `passing` ends with its task. Times are seconds since 1970.
    """

    agent_id: str
    name: str
    parent_id: str | None
    depth: int
    tree: str
    root_query_id: str
    parent_query_id: str
    user_id: str | None
    state: AgentState = AgentState.READY
    budget: AgentBudget
    used_tokens: int = 0
    used_calls: int = 0
    tools: tuple[str, ...] | None = None
    profile: AnswerProfile | None = None
    passing: bool = False
    tainted: bool = False
    made_at: float
    ends_by: float
    ended_at: float | None = None


class GivenTask(Data):
    """A task given to an agent, asked once as a query; `call_id` and `index` are of the call that gave it. `form` is a
    JSON Schema that the answer has to follow; an answer that did not was asked for again (`repeated`).
    """

    query_id: str
    agent_id: str
    tree: str
    root_query_id: str
    parent_query_id: str
    call_id: str
    index: int
    cause_id: str | None = None
    text: str
    form: Json | None = None
    is_formal: bool = False  # the model is held to the form
    is_told_later: bool = False  # to the inbox of the agent or query that gave it
    tainted: bool = False
    in_background: bool = False
    max_tokens: int
    max_calls: int
    asked_at: float
    ends_by: float
    is_late: bool = False
    state: TaskState = "asked"
    answer: str = ""
    error: ErrorInfo | None = None
    is_answer_tainted: bool = False
    sources: tuple[str, ...] = ()
    tokens: int = 0


class AgentMail(Data):
    """A letter from one agent to another one of its session; `to` and `sender` are ids, empty for the user's queries.
    It is read by the call `read_by`, and by that alone."""

    mail_id: str
    tree: str
    to: str
    sender: str
    sender_name: str
    text: str
    tainted: bool = False
    at: float
    read_by: str = ""


class AgentEvent(Data):
    """A named event that an agent announces to all of its session, with its `number` there."""

    event_id: str
    tree: str
    number: int
    name: str
    sender_name: str
    text: str
    tainted: bool = False
    at: float


class Asking(Data):
    """The asker of something: a query, the agent that it belongs to (None: the user's own), and the user's query."""

    query_id: str
    root: RootQuery
    agent: Agent | None = None

    @property
    def depth(self) -> int:
        """Return the agent's depth in the tree."""
        return 0 if self.agent is None else self.agent.depth

    @property
    def name(self) -> str:
        """The name by which others call the agent."""
        return "root" if self.agent is None else self.agent.name

    @property
    def agent_id(self) -> str:
        """Empty for a user's query."""
        return "" if self.agent is None else self.agent.agent_id


class Outcome(Data):
    """The end of the query of a task."""

    state: TaskState
    answer: str = ""
    error: ErrorInfo | None = None
    tainted: bool = False
    sources: tuple[str, ...] = ()
    tokens: int = 0
    calls: int = 0


def shown(agent: Agent, tasks: list[GivenTask], used: AgentBudget, root: RootQuery | None) -> AgentRecord:
    """An agent as frontends show it, with its latest task."""
    latest = tasks[-1] if tasks else None
    return AgentRecord(
        agent_id=agent.agent_id,
        name=agent.name,
        parent_id=agent.parent_id,
        depth=agent.depth,
        state=agent.state,
        root_query_id=agent.root_query_id,
        root_session_id=root.session_id if root else agent.tree,
        parent_query_id=agent.parent_query_id,
        question=root.question if root else "",
        task=latest.text if latest else "",
        task_query_id=latest.query_id if latest else "",
        tasks=len(tasks),
        answer=latest.answer if latest and latest.state != "asked" else None,
        error=latest.error if latest else None,
        tainted=agent.tainted or any(task.is_answer_tainted for task in tasks),
        budget=agent.budget,
        used=used,
        made_at=agent.made_at,
        ended_at=agent.ended_at,
    )


def shown_task(task: GivenTask) -> AgentTaskRecord:
    """A task as frontends show it."""
    told = {"query_id", "text", "state", "answer", "error", "sources", "tokens", "asked_at"}
    return AgentTaskRecord.model_validate(task.model_dump(include=told))


Record = Agent | GivenTask | RootQuery | AgentMail | AgentEvent


class AgentRecords:
    """All agents, tasks, letters and events in memory, by their ids. `changed` are those that are not stored yet, by
    kind and id.
    """

    def __init__(self) -> None:
        self.agents: dict[str, Agent] = {}
        self.tasks: dict[str, GivenTask] = {}  # by query_id, in the order in which they were given
        self.roots: dict[str, RootQuery] = {}  # by query_id
        self.mails: dict[str, AgentMail] = {}
        self.events: dict[str, AgentEvent] = {}
        self.changed: dict[tuple[str, str], Record] = {}

    def asking(self, query_id: str) -> Asking | None:
        """Return the asker of a query; None for a user's query that has used no agents yet."""
        if (task := self.tasks.get(query_id)) is not None:
            root = self.roots.get(task.root_query_id)
            agent = self.agents.get(task.agent_id)
            return None if root is None or agent is None else Asking(query_id=query_id, root=root, agent=agent)
        root = self.roots.get(query_id)
        return None if root is None else Asking(query_id=query_id, root=root)

    def begin(self, root: RootQuery) -> Asking:
        """A user's query asks something of agents for the first time."""
        self.note(root)
        return Asking(query_id=root.query_id, root=root)

    def children(self, agent_id: str) -> list[Agent]:
        """The agents that an agent has made."""
        return [each for each in self.agents.values() if each.parent_id == agent_id]

    def history(self, task: GivenTask) -> list[tuple[str, str]]:
        """Return the agent's earlier tasks and answers."""
        before = takewhile(lambda each: each.query_id != task.query_id, self.tasks_of(task.agent_id))
        return [(each.text, each.answer) for each in before if each.answer]

    def open(self) -> list[GivenTask]:
        """Tasks that have not ended."""
        return [task for task in self.tasks.values() if task.state == "asked"]

    def of_call(self, call_id: str) -> list[GivenTask]:
        """Return the tasks of a call, in its order; of a repeated one the last."""
        return sorted(self._of_call(call_id), key=lambda task: task.index)

    def tasks_of(self, agent_id: str) -> list[GivenTask]:
        """All of an agent, the latest last."""
        return [task for task in self.tasks.values() if task.agent_id == agent_id]

    def of_tree(self, tree: str) -> list[Agent]:
        """The agents of a session, in the order in which they were made."""
        return list(self._of_tree(tree))

    def below(self, asking: Asking) -> list[Agent]:
        """Return the agents that the asker may give tasks to and stop: those that it has made, and theirs."""
        found = [each for each in self._of_tree(asking.root.session_id) if (each.parent_id or "") == asking.agent_id]
        for agent in found:
            found += self.children(agent.agent_id)
        return found

    def named(self, asking: Asking, name: str) -> Agent:
        """Return the asker's agent of that name. Raises `ToolError`."""
        found = [each for each in self.below(asking) if name in (each.name, each.agent_id)]
        if not found:
            mine = self.below(asking)
            text = f"you have no agent {name!r}; yours: {', '.join(each.name for each in mine) or 'none'}"
            raise ToolError(text, kind="unknown_agent", tainted=any(each.tainted for each in mine))
        return found[0]

    def forget(self, tree: str) -> list[Agent]:
        """Delete everything of a session; returns the agents that it had."""
        gone = self.of_tree(tree)
        self.agents = {name: each for name, each in self.agents.items() if each.tree != tree}
        self.tasks = {name: each for name, each in self.tasks.items() if each.tree != tree}
        self.roots = {name: each for name, each in self.roots.items() if each.session_id != tree}
        self.mails = {name: each for name, each in self.mails.items() if each.tree != tree}
        self.events = {name: each for name, each in self.events.items() if each.tree != tree}
        return gone

    def take_in(self, records: Iterable[Record]) -> None:
        """Add stored records."""
        for record in records:
            self._put(record)

    def _of_call(self, call_id: str) -> Iterator[GivenTask]:
        return (task for task in self.tasks.values() if task.call_id == call_id and task.state != "repeated")

    def _of_tree(self, tree: str) -> Iterator[Agent]:
        return (each for each in self.agents.values() if each.tree == tree)

    def _of_root(self, root_query_id: str) -> Iterator[Agent]:
        return (each for each in self.agents.values() if each.root_query_id == root_query_id)

    def note(self, record: Record) -> None:
        """A record is new, or another one than before: it is to be stored."""
        self.changed[self._put(record)] = record

    def _put(self, record: Record) -> tuple[str, str]:
        if isinstance(record, Agent):
            self.agents[record.agent_id] = record
            return "agent", record.agent_id
        if isinstance(record, GivenTask):
            self.tasks[record.query_id] = record
            return "task", record.query_id
        if isinstance(record, AgentMail):
            self.mails[record.mail_id] = record
            return "mail", record.mail_id
        if isinstance(record, AgentEvent):
            self.events[record.event_id] = record
            return "event", record.event_id
        self.roots[record.query_id] = record
        return "root", record.query_id


class AgentSpec(Data):
    """An agent that a model wants; None leaves a value to the settings. One that is `passing` ends with its task."""

    name: str
    tools: tuple[str, ...] | None = None
    profile: AnswerProfile | None = None
    tokens: int | None = None
    seconds: float | None = None
    calls: int | None = None
    passing: bool = False
    tainted: bool = False


class TaskOrder(Data):
    """A task that a model wants done, number `index` of a call."""

    text: str
    call_id: str
    index: int = 0
    cause_id: str | None = None
    form: dict[str, Any] | None = None
    is_formal: bool = False
    in_background: bool = False  # the result is delivered later, without waiting
    tainted: bool = False


MOST_MAILS = 1000  # of one session, and so many events
ROOT, PARENT = "root", "parent"
MOST_RESULT_CHARACTERS: Final = 20_000


class Mailbox:
    """The letters and events of agents, kept in the records. An agent writes to those of its own session: by name, to
    its `parent`, or to the `root`, which are the user's queries. A text is marked if untrusted content was in front of
    the model that wrote it.
    """

    def __init__(self, records: AgentRecords) -> None:
        self._records = records

    def send(self, asking: Asking, to: str, text: str, call_id: str, now: float, *, tainted: bool) -> AgentMail:
        """Send a letter. Raises `ToolError` if there is no agent of that name, or there are too many letters."""
        if (known := self._records.mails.get(call_id)) is not None:
            return known
        tree = asking.root.session_id
        self._require_room(sum(each.tree == tree for each in self._records.mails.values()))
        mail = AgentMail(
            mail_id=call_id, tree=tree, to=self._id_of(asking, to), sender=asking.agent_id, sender_name=asking.name,
            text=text, tainted=tainted, at=now,
        )  # fmt: skip
        self._records.note(mail)
        return mail

    def post_result(self, task: GivenTask, asking: Asking, now: float) -> None:
        """Write the result of a background task to the agent or query that gave it."""
        agent = self._records.agents[task.agent_id]
        error = {} if task.error is None else {"error": task.error.model_dump()}
        told = {"task": task.text[:200], "status": task.state, "answer": task.answer[:MOST_RESULT_CHARACTERS], **error}
        mail = AgentMail(
            mail_id=f"{task.query_id} has ended", tree=task.tree, to=asking.agent_id, sender=agent.agent_id,
            sender_name=agent.name, text=json.dumps(told, ensure_ascii=False),
            tainted=task.is_answer_tainted or task.tainted, at=now,
        )  # fmt: skip
        self._records.note(mail)

    def letters(self, agent: Agent) -> list[AgentLetter]:
        """The letters that an agent has written or was written, as frontends show them."""
        names = {each.agent_id: each.name for each in self._records.of_tree(agent.tree)}
        return [
            AgentLetter(
                sender=mail.sender_name, to=names.get(mail.to, ROOT), text=mail.text, at=mail.at,
                is_read=bool(mail.read_by), tainted=mail.tainted,
            )
            for mail in self._records.mails.values()
            if mail.tree == agent.tree and agent.agent_id in (mail.to, mail.sender)
        ]  # fmt: skip

    def inbox(self, asking: Asking, call_id: str) -> list[AgentMail]:
        """Return the unread letters, and those that this call has read before."""
        mine = [
            each for each in self._records.mails.values()
            if each.tree == asking.root.session_id and each.to == asking.agent_id and each.read_by in ("", call_id)
        ]  # fmt: skip
        if any(each.read_by for each in mine):
            return [each for each in mine if each.read_by]
        for each in mine:
            self._records.note(each.model_copy(update={"read_by": call_id}))
        return mine

    def emit(self, asking: Asking, name: str, text: str, call_id: str, now: float, *, tainted: bool) -> AgentEvent:
        """An event. Raises `ToolError` where there are too many."""
        if (known := self._records.events.get(call_id)) is not None:
            return known
        tree = asking.root.session_id
        number = 1 + sum(each.tree == tree for each in self._records.events.values())
        self._require_room(number)
        event = AgentEvent(
            event_id=call_id, tree=tree, number=number, name=name, sender_name=asking.name, text=text, tainted=tainted,
            at=now,
        )  # fmt: skip
        self._records.note(event)
        return event

    def event(self, asking: Asking, name: str, after: int) -> AgentEvent | None:
        """Return the first event of that name with a higher number; None if there is none yet."""
        tree = asking.root.session_id
        found = (each for each in self._records.events.values() if (each.tree, each.name) == (tree, name))
        return next((each for each in found if each.number > after), None)

    def _id_of(self, asking: Asking, to: str) -> str:
        if to == ROOT or (to == PARENT and (asking.agent is None or not asking.agent.parent_id)):
            return ""
        if to == PARENT:
            return asking.agent.parent_id or "" if asking.agent else ""
        agents = self._records.of_tree(asking.root.session_id)
        found = next((each for each in agents if each.name == to and each.state is not AgentState.ENDED), None)
        if found is None:
            names = ", ".join(each.name for each in agents if each.state is not AgentState.ENDED)
            text = f"there is no agent {to!r} here; there are {names or 'none'}, parent and root"
            raise ToolError(text, kind="unknown_agent", tainted=any(each.tainted for each in agents))
        return found.agent_id

    def _require_room(self, number: int) -> None:
        if number >= MOST_MAILS:
            raise ToolError(f"{MOST_MAILS} of them are kept for one conversation, and are there", kind="too_many")


class SwarmConfig(Settings):
    """The settings in `swarm.yaml`; the comments there explain each key."""

    offer: Literal["none", "core", "all"] = "core"
    depth: int = Field(3, ge=1, le=3)
    children: int = Field(8, ge=1, le=64)
    agents: int = Field(40, ge=1, le=1000)
    tokens: int = Field(1_000_000, ge=1000)
    seconds: float = Field(1800, gt=0)
    calls: int = Field(500, ge=0)
    agent_tokens: int = Field(200_000, ge=1000)
    agent_seconds: float = Field(900, gt=0)
    agent_calls: int = Field(50, ge=0)
    wait_seconds: float = Field(600, gt=0, le=3600)
    max_result_chars: int = Field(100_000, ge=1000)


# The requested form of an answer: a JSON Schema, and its violations.

MOST_CHARACTERS = 8000
MOST_SHOWN = 300
_NOT_ALLOWED = frozenset({"$ref", "$dynamicRef", "pattern", "patternProperties"})  # lead elsewhere, or take for ever
_FENCED = re.compile(r"\A\s*```\w*\n(.*?)\n?```\s*\Z", re.DOTALL)


def check_form(form: dict[str, Any]) -> None:
    """Raise `ToolError` (bad_arguments) for a schema that cannot be used to check an answer."""
    from jsonschema import Draft202012Validator  # takes long, and is rarely needed
    from jsonschema.exceptions import SchemaError

    if len(json.dumps(form)) > MOST_CHARACTERS:
        raise ToolError(f"schema: more than {MOST_CHARACTERS} characters", kind="bad_arguments")
    if found := sorted(_keys(form) & _NOT_ALLOWED):
        raise ToolError(
            f"schema: {', '.join(found)}: not allowed here; write the schema out in place", kind="bad_arguments"
        )
    try:
        Draft202012Validator.check_schema(form)
    except SchemaError as error:
        raise ToolError(f"schema: {error.message[:MOST_SHOWN]}", kind="bad_arguments") from None


def value_of(answer: str) -> Any:
    """Return the JSON of an answer, which may be in a fence. Raises `ValueError`."""
    fenced = _FENCED.match(answer)
    return json.loads(fenced[1] if fenced else answer)


def fault_of(answer: str, form: dict[str, Any]) -> str:
    """Return the error in the form of an answer; empty if it is valid."""
    from jsonschema import Draft202012Validator

    try:
        value = value_of(answer)
    except ValueError as error:
        return f"it is not JSON: {error}"
    faults = sorted(Draft202012Validator(form).iter_errors(value), key=lambda error: error.json_path)
    return "; ".join(f"{each.json_path}: {each.message}" for each in faults[:3])[:MOST_SHOWN]


def _keys(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set(value).union(*map(_keys, value.values()))
    return set[str]().union(*map(_keys, value)) if isinstance(value, list) else set()


LEAST_TOKENS = 1000  # no answer is possible with fewer
NO_BUDGET, TOO_MANY, TOO_DEEP = "no_budget", "too_many_agents", "too_deep"
_NAMESPACE = uuid.UUID("7c1f5d0e-9a55-4b19-8d8e-8f1c2f0b6a3d")


def agent_id_of(call_id: str, index: int) -> str:
    """Always the same, so that a call that is made again makes no other agent."""
    return uuid.uuid5(_NAMESPACE, f"{call_id}\n{index}").hex


class AgentTree(AgentRecords):
    """The records with their rules. An agent's usage counts for its parent, too; an agent's share is reserved until it
    has ended.
    """

    def __init__(self, limits: SwarmConfig) -> None:
        super().__init__()
        self._limits = limits

    # Budgets

    def used(self, agent: Agent, now: float) -> AgentBudget:
        """Return the usage of an agent with that of its own agents; its children are those that have not ended."""
        below = [self.used(child, now) for child in self.children(agent.agent_id)]
        return AgentBudget(
            tokens=agent.used_tokens + sum(each.tokens for each in below),
            calls=agent.used_calls + sum(each.calls for each in below),
            seconds=round((agent.ended_at or now) - agent.made_at, 3),
            children=sum(child.state is not AgentState.ENDED for child in self.children(agent.agent_id)),
        )

    def left(self, asking: Asking, now: float) -> AgentBudget:
        """Return the asker's remaining budget."""
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

    def make(self, asking: Asking, order: AgentSpec, call_id: str, index: int, now: float, parts: int = 1) -> Agent:
        """Make an agent, the first of `parts` that are to be made together, each with its share of the remaining
        budget. Raises `ToolError` for one too many, too deep, or without a budget.
        """
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

    def assign(self, agent: Agent, asking: Asking, order: TaskOrder, now: float) -> GivenTask:
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
        """Return the asker's fields in the query of a task."""
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
        """End the task of a query; None for a query of no task, or of one that had ended before."""
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
        """Ask the agent once more if its answer has not the requested form, with the form enforced; returns that task.
        If that fails, the task has failed.
        """
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
            return self.assign(agent, asking, order, now)
        except ToolError as error:
            failed = ErrorInfo.of(error)
            self.note(task.model_copy(update={"state": "failed", "error": failed}))
            return None

    def leave(self, agent_id: str, now: float) -> list[str]:
        """Remove an agent that existed only for its task; returns the queries to cancel."""
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
        """Cancel the tasks of a cancelled query; returns their queries."""
        queries = [task.query_id for task in self.open() if task.parent_query_id == query_id]
        for agent in [each for each in self.agents.values() if each.parent_query_id == query_id]:
            queries += self.stop(agent.agent_id, now)
        return list(dict.fromkeys(queries))

    def late(self, now: float) -> list[str]:
        """Return the queries of tasks whose time has just run out."""
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

    def _share(self, order: AgentSpec, left: AgentBudget, parts: int) -> AgentBudget:
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
    """Return the profile of the asker: its own, or that of the user's query."""
    if asking.agent is not None:
        return asking.agent.profile
    return asking.root.options.profile if asking.root.options else None


def _both(parents: tuple[str, ...] | None, wanted: Sequence[str] | None) -> tuple[str, ...] | None:
    """The tools that an agent has: of those that it is to have those that its parent has."""
    if wanted is None:
        return parents
    return tuple(dict.fromkeys(tool for tool in wanted if parents is None or tool in parents))
