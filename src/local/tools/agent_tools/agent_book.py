"""The agents of every session with their tasks, by what names them; and what of it is still to be stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from local.errors import ToolError
from local.tools.agent_tools.agent import Agent, AgentEvent, AgentMail, Asking, GivenTask, RootQuery

Record = Agent | GivenTask | RootQuery | AgentMail | AgentEvent


class AgentBook:
    """`changed` has what is to be stored, by kind and id."""

    def __init__(self) -> None:
        self.agents: dict[str, Agent] = {}
        self.tasks: dict[str, GivenTask] = {}  # by query_id, in the order in which they were given
        self.roots: dict[str, RootQuery] = {}  # by query_id
        self.mails: dict[str, AgentMail] = {}
        self.events: dict[str, AgentEvent] = {}
        self.changed: dict[tuple[str, str], Record] = {}

    def asking(self, query_id: str) -> Asking | None:
        """Whose a query is; None for a user's that has asked nothing of agents yet."""
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
        """What the agent was asked before, and has answered."""
        before = [each for each in self.tasks.values() if each.agent_id == task.agent_id]
        before = before[: before.index(task)]
        return [(each.text, each.answer) for each in before if each.answer]

    def open(self) -> list[GivenTask]:
        """Tasks that have not ended."""
        return [task for task in self.tasks.values() if task.state == "asked"]

    def of_call(self, call_id: str) -> list[GivenTask]:
        """The tasks that a call has asked, in its order; of one that was asked again the last one."""
        return sorted(self._of_call(call_id), key=lambda task: task.index)

    def tasks_of(self, agent_id: str) -> list[GivenTask]:
        """All of an agent, the latest last."""
        return [task for task in self.tasks.values() if task.agent_id == agent_id]

    def of_tree(self, tree: str) -> list[Agent]:
        """The agents of a session, in the order in which they were made."""
        return list(self._of_tree(tree))

    def below(self, asking: Asking) -> list[Agent]:
        """The agents that whoever asks may give tasks and stop: those that they have made, and what these have."""
        found = [each for each in self._of_tree(asking.root.session_id) if (each.parent_id or "") == asking.agent_id]
        for agent in found:
            found += self.children(agent.agent_id)
        return found

    def named(self, asking: Asking, name: str) -> Agent:
        """The agent of that name among these. Raises `ToolError`."""
        found = [each for each in self.below(asking) if name in (each.name, each.agent_id)]
        if not found:
            mine = self.below(asking)
            text = f"you have no agent {name!r}; yours: {', '.join(each.name for each in mine) or 'none'}"
            raise ToolError(text, kind="unknown_agent", tainted=any(each.tainted for each in mine))
        return found[0]

    def forget(self, tree: str) -> list[Agent]:
        """Nothing is to be known of a session any more; returns the agents that it had."""
        gone = self.of_tree(tree)
        self.agents = {name: each for name, each in self.agents.items() if each.tree != tree}
        self.tasks = {name: each for name, each in self.tasks.items() if each.tree != tree}
        self.roots = {name: each for name, each in self.roots.items() if each.session_id != tree}
        self.mails = {name: each for name, each in self.mails.items() if each.tree != tree}
        self.events = {name: each for name, each in self.events.items() if each.tree != tree}
        return gone

    def take_in(self, records: Iterable[Record]) -> None:
        """What was stored."""
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
