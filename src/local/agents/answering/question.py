"""What a turn starts from."""

from __future__ import annotations

from dataclasses import dataclass

from local.agents.answering.context.prompt_parts import Attached, Summary
from local.agents.answering.turn_limits import TurnLimits
from local.models.chat import Json
from local.protocol.messages import AnswerOptions


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
    prompt: str = "default"  # the name of its instructions
    incognito: bool = False
    in_history: bool = True
    options: AnswerOptions | None = None
    continued: tuple[Json, ...] = ()  # what has followed the query: calls of the asker's functions, their results
    tainted: bool = False  # by what was said before, or by a file
    private: tuple[str, ...] = ()  # what the prompt has of the user's that they have not said in this conversation
