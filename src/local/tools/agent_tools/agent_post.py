"""What agents of one session tell each other: letters to one, and events for all. Decisions only."""

from __future__ import annotations

import json
from typing import Final

from local.errors import ToolError
from local.tools.agent_tools.agent import AgentEvent, AgentMail, Asking, GivenTask
from local.tools.agent_tools.agent_book import AgentBook
from local.tools.agent_tools.agent_table import AgentState

MOST_MAILS = 1000  # of one session, and so many events
ROOT, PARENT = "root", "parent"
MOST_RESULT_CHARACTERS: Final = 20_000


class AgentPost:
    """Kept in the book. An agent writes to those of its own session: by name, to its `parent`, or to the `root`, which
    are the user's queries. What is written where words of strangers were before the model is marked so."""

    def __init__(self, book: AgentBook) -> None:
        self._book = book

    def send(self, asking: Asking, to: str, text: str, call_id: str, now: float, *, tainted: bool) -> AgentMail:
        """A letter. Raises `ToolError` for nobody of that name, or where there are too many."""
        if (known := self._book.mails.get(call_id)) is not None:
            return known
        tree = asking.root.session_id
        self._require_room(sum(each.tree == tree for each in self._book.mails.values()))
        mail = AgentMail(
            mail_id=call_id, tree=tree, to=self._id_of(asking, to), sender=asking.agent_id, sender_name=asking.name,
            text=text, tainted=tainted, at=now,
        )  # fmt: skip
        self._book.note(mail)
        return mail

    def tell_result(self, task: GivenTask, asking: Asking, now: float) -> None:
        """What has come of a task for which nobody has waited, to whoever has given it."""
        agent = self._book.agents[task.agent_id]
        error = {} if task.error is None else {"error": task.error.model_dump()}
        told = {"task": task.text[:200], "status": task.state, "answer": task.answer[:MOST_RESULT_CHARACTERS], **error}
        mail = AgentMail(
            mail_id=f"{task.query_id} has ended", tree=task.tree, to=asking.agent_id, sender=agent.agent_id,
            sender_name=agent.name, text=json.dumps(told, ensure_ascii=False),
            tainted=task.is_answer_tainted or task.tainted, at=now,
        )  # fmt: skip
        self._book.note(mail)

    def inbox(self, asking: Asking, call_id: str) -> list[AgentMail]:
        """What nobody has read, or what this call has read before."""
        mine = [
            each for each in self._book.mails.values()
            if each.tree == asking.root.session_id and each.to == asking.agent_id and each.read_by in ("", call_id)
        ]  # fmt: skip
        if any(each.read_by for each in mine):
            return [each for each in mine if each.read_by]
        for each in mine:
            self._book.note(each.model_copy(update={"read_by": call_id}))
        return mine

    def emit(self, asking: Asking, name: str, text: str, call_id: str, now: float, *, tainted: bool) -> AgentEvent:
        """An event. Raises `ToolError` where there are too many."""
        if (known := self._book.events.get(call_id)) is not None:
            return known
        tree = asking.root.session_id
        number = 1 + sum(each.tree == tree for each in self._book.events.values())
        self._require_room(number)
        event = AgentEvent(
            event_id=call_id, tree=tree, number=number, name=name, sender_name=asking.name, text=text, tainted=tainted,
            at=now,
        )  # fmt: skip
        self._book.note(event)
        return event

    def event(self, asking: Asking, name: str, after: int) -> AgentEvent | None:
        """The first of that name with a higher number; None if there is none yet."""
        tree = asking.root.session_id
        found = (each for each in self._book.events.values() if (each.tree, each.name) == (tree, name))
        return next((each for each in found if each.number > after), None)

    def _id_of(self, asking: Asking, to: str) -> str:
        if to == ROOT or (to == PARENT and (asking.agent is None or not asking.agent.parent_id)):
            return ""
        if to == PARENT:
            return asking.agent.parent_id or "" if asking.agent else ""
        agents = self._book.of_tree(asking.root.session_id)
        found = next((each for each in agents if each.name == to and each.state is not AgentState.ENDED), None)
        if found is None:
            names = ", ".join(each.name for each in agents if each.state is not AgentState.ENDED)
            text = f"there is no agent {to!r} here; there are {names or 'none'}, parent and root"
            raise ToolError(text, kind="unknown_agent", tainted=any(each.tainted for each in agents))
        return found.agent_id

    def _require_room(self, number: int) -> None:
        if number >= MOST_MAILS:
            raise ToolError(f"{MOST_MAILS} of them are kept for one conversation, and are there", kind="too_many")
