"""What a model wants of an agent: one to be made, or a task to be done."""

from __future__ import annotations

from typing import Any

from local.protocol.answer_options import AnswerProfile
from local.protocol.message import Data


class AgentOrder(Data):
    """An agent that is wanted; None leaves it to the settings. One that is `passing` ends with its task."""

    name: str
    tools: tuple[str, ...] | None = None
    profile: AnswerProfile | None = None
    tokens: int | None = None
    seconds: float | None = None
    calls: int | None = None
    passing: bool = False
    tainted: bool = False


class TaskOrder(Data):
    """A task that is wanted, number `index` of a call."""

    text: str
    call_id: str
    index: int = 0
    cause_id: str | None = None
    form: dict[str, Any] | None = None
    is_formal: bool = False
    in_background: bool = False  # nobody waits: the result is told later
    tainted: bool = False
