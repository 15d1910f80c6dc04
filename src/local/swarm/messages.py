"""The messages about agents: whose task a query is, and the state of each agent."""

from __future__ import annotations

from typing import Literal

from local.bus.message import Data, Delivery, ErrorInfo, Message
from local.bus.messages import AgentTask as AgentTask

AgentVerb = Literal["list", "show", "stop"]


class AgentBudget(Data):
    """The budget or the usage of an agent, including its own agents: tokens, seconds, calls of tools; and the number of
    agents that it may have.
    """

    tokens: int
    seconds: float
    calls: int
    children: int


class AgentRecord(Data):
    """An agent as frontends show it. `parent_id` is None for one that a user's query has made. `task` is its latest,
    asked as `task_query_id`, with its result. `question` is the user's, empty where it is not known. Times are seconds
    since 1970."""

    agent_id: str
    name: str
    parent_id: str | None = None
    depth: int
    state: str
    root_query_id: str
    root_session_id: str
    parent_query_id: str
    question: str = ""
    task: str = ""
    task_query_id: str = ""
    tasks: int = 0
    answer: str | None = None
    error: ErrorInfo | None = None
    tainted: bool = False
    budget: AgentBudget
    used: AgentBudget
    made_at: float
    ended_at: float | None = None


class AgentTaskRecord(Data):
    """A task of an agent with its result, as frontends show it. `sources` names where untrusted content in the answer
    came from."""

    query_id: str
    text: str
    state: str
    answer: str = ""
    error: ErrorInfo | None = None
    sources: tuple[str, ...] = ()
    tokens: int = 0
    asked_at: float


class AgentLetter(Data):
    """A letter of an agent or to it, as frontends show it. `sender` and `to` are names; "root" is the user's query."""

    sender: str
    to: str
    text: str
    at: float
    is_read: bool = False
    tainted: bool = False


class AgentChanged(Message):
    """Published by the swarm when an agent is made, is given a task, has ended one, or ends itself. It belongs to the
    query whose model has made it; `task_query_id` is the query of its task.
    """

    subject = "agent.changed"
    agent_id: str
    name: str
    parent_id: str | None = None
    depth: int
    state: str
    query_id: str
    root_query_id: str
    task_query_id: str = ""
    error: ErrorInfo | None = None


class AgentRequest(Message):
    """A frontend's request to list the agents (with `query_id`: of one query), to show one with its tasks and letters,
    or to stop one with all that it has made. With `of_user` only that user's agents exist."""

    subject = "agent.request."
    delivery = Delivery.EPHEMERAL
    family_key = "verb"
    is_request = True
    answered_by = "swarm"
    verb: AgentVerb
    of_user: str | None = None
    query_id: str = ""
    agent_id: str = ""


class AgentResult(Message):
    """The answer of the swarm. Only `show` has tasks and letters, the oldest first."""

    subject = "agent.result."
    delivery = Delivery.EPHEMERAL
    family_key = "verb"
    verb: AgentVerb
    agents: tuple[AgentRecord, ...] = ()
    tasks: tuple[AgentTaskRecord, ...] = ()
    letters: tuple[AgentLetter, ...] = ()
    error: ErrorInfo | None = None
