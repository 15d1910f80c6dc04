"""An agent, its tasks, and the query in which it all began, as they are stored."""

from __future__ import annotations

from typing import Any, Literal

from local.protocol.agent_messages import AgentBudget, AgentRecord
from local.protocol.answer_options import AnswerProfile
from local.protocol.message import Data, ErrorInfo
from local.protocol.messages import AnswerOptions
from local.tools.agent_tools.agent_table import AgentState

Json = dict[str, Any]
TaskState = Literal["asked", "answered", "cancelled", "failed", "repeated"]


class RootQuery(Data):
    """A user's query whose model has work done by agents; `question` is empty where its words are not the user's own.
    `options` are as the user has asked with. With `in_background` nobody waits for it."""

    query_id: str
    session_id: str
    user_id: str | None = None
    question: str
    options: AnswerOptions | None = None
    incognito: bool = False
    in_background: bool = False


class Agent(Data):
    """An agent in the tree of a session; its own session has its id. `parent_id` is None where a user's query has made
    it, which `root_query_id` names; `parent_query_id` is the query that has. With `tools` None it has all; of those
    that it has, its `profile` may leave it less. One that is `passing` ends with its task. Times are seconds since
    1970."""

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
    """What an agent is asked, once; `call_id` and `index` are of the call that has asked it. `form` is a JSON Schema
    that the answer has to follow; one that did not was asked for again (`repeated`)."""

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
    is_told_later: bool = False  # to the inbox of whoever has given it
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
    """What one agent tells another one of its session; `to` and `sender` are ids, empty for the user's queries. It is
    read by the call `read_by`, and by that alone."""

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
    """What an agent tells all of its session, under a name; number `number` there."""

    event_id: str
    tree: str
    number: int
    name: str
    sender_name: str
    text: str
    tainted: bool = False
    at: float


class Asking(Data):
    """Who asks for something: a query, the agent whose it is (None: the user's own), and the user's query."""

    query_id: str
    root: RootQuery
    agent: Agent | None = None

    @property
    def depth(self) -> int:
        """How deep in the tree."""
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
    """How the query of a task has ended."""

    state: TaskState
    answer: str = ""
    error: ErrorInfo | None = None
    tainted: bool = False
    sources: tuple[str, ...] = ()
    tokens: int = 0
    calls: int = 0


def shown(agent: Agent, tasks: list[GivenTask], used: AgentBudget, root_session_id: str) -> AgentRecord:
    """An agent as doors show it, with its latest task."""
    latest = tasks[-1] if tasks else None
    return AgentRecord(
        agent_id=agent.agent_id,
        name=agent.name,
        parent_id=agent.parent_id,
        depth=agent.depth,
        state=agent.state,
        root_query_id=agent.root_query_id,
        root_session_id=root_session_id,
        parent_query_id=agent.parent_query_id,
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
