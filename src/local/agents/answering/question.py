"""What a turn starts from."""

from __future__ import annotations

from dataclasses import dataclass

from local.agents.answering.context.prompt_parts import Attached, Parts, Summary
from local.agents.answering.turn_limits import TurnLimits
from local.models.chat import Json
from local.protocol.conversation_messages import RecalledExchange
from local.protocol.messages import AgentTask, AnswerOptions
from local.protocol.query_origin import USER

NOT_TOLD = "the memory did not say in time what it knows of the user: this answer was made without it"


@dataclass(frozen=True, slots=True)
class Question:
    """What a turn starts from. `prelude` is what the model gets before the query: system prompt and history, but for
    the exchanges that are in the `summary`."""

    query_id: str
    respondent_id: str
    query: str
    prelude: tuple[Json, ...]
    think: bool
    limits: TurnLimits
    summary: Summary = Summary()  # noqa: RUF009 - frozen
    attached: Attached = Attached()  # noqa: RUF009 - frozen
    beginning: Parts | None = None  # of its prompts; made of the prelude, the summary and the files where there is none
    recalled: tuple[RecalledExchange, ...] = ()  # what the memory has found of earlier conversations
    prompt: str = "default"  # the name of its instructions
    profile: str = ""  # its name, if it was asked with one
    incognito: bool = False
    in_history: bool = True
    options: AnswerOptions | None = None
    continued: tuple[Json, ...] = ()  # what has followed the query: calls of the asker's functions, their results
    tainted: bool = False  # by what was said before, or by a file
    origin: str = USER
    own_words: bool = True  # false where the query itself may have words of strangers in it
    private: tuple[str, ...] = ()  # what the prompt has of the user's that they have not said in this conversation
    notes: tuple[str, ...] = ()  # what the prompt had to be made without
    task: AgentTask | None = None  # where a model has asked it of an agent, and no user
    model: str = ""  # the one that answers

    @property
    def spoken(self) -> tuple[str, ...]:
        """What the user has said in it and before it. A task and those before it are words of models."""
        if self.task is not None:
            return (self.task.asked,)
        before = [str(each.get("content") or "") for each in self.prelude if each.get("role") == "user"]
        return (*before, self.query)

    @property
    def whose(self) -> dict[str, str]:
        """What is said of an agent where it asks for leave."""
        task = self.task
        if task is None:
            return {}
        return {"agent": task.name, "root_query_id": task.root_query_id, "root_session_id": task.root_session_id}
