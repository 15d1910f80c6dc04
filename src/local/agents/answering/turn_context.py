"""What the turns of a respondent work with, and where they stand in the line for their model."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeVar

from local.agents.answering.call_gate import CallGate
from local.agents.answering.context.prompt_fitter import PromptFitter
from local.agents.answering.question import Question
from local.agents.answering.tool_registry import ToolRegistry
from local.agents.leases import Leases
from local.bus.blobs import BlobStore
from local.models.chat import ChatModel
from local.protocol.query_origin import BACKGROUND

T = TypeVar("T")


class Priority(Protocol):
    """One turn's way to its model."""

    def turn(self) -> AbstractContextManager[None]:
        """Hold this for as long as the turn runs."""

    async def call(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What `work()`, one call of the model, returns or raises. It may be cut off and called again."""


@dataclass(frozen=True, slots=True)
class UsersTurn:
    """A user waits for it: it asks nobody, and others make room."""

    leases: Leases
    model: str

    def turn(self) -> AbstractContextManager[None]:
        """Announce the turn for as long as it runs."""
        return self.leases.users_turn(self.model)

    async def call(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What `work()` returns or raises; it is called once."""
        return await work()


@dataclass(frozen=True, slots=True)
class BackgroundTurn:
    """Nobody waits for it: each call takes a lease, and gives it up when a user's turn needs the model.

    `purpose` is a word for those who watch the line.
    """

    leases: Leases
    model: str
    purpose: str

    def turn(self) -> AbstractContextManager[None]:
        """Announce nothing."""
        return nullcontext()

    async def call(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What `work()` returns or raises, under a lease of its own."""
        return await self.leases.in_background(self.model, self.purpose, work)


def priority_of(origin: str, otherwise: Callable[[Leases, str], Priority]) -> Callable[[Leases, str], Priority]:
    """Where turns for queries of that origin stand: behind every user's, if nobody waits for them."""
    return partial(BackgroundTurn, purpose=origin) if origin in BACKGROUND else otherwise


@dataclass(frozen=True, slots=True)
class TurnContext:
    """What a turn works with. `answers_as` is the name to sign with, where it is not the model's; `on_away` is
    told when no model server answers for now."""

    model: ChatModel
    prompts: PromptFitter
    tools: ToolRegistry
    model_name: str
    options: Mapping[str, Any]
    tool_timeout_seconds: float
    max_answer_tokens: int = 8192
    answers_as: str | None = None
    priority: Priority = field(default_factory=lambda: UsersTurn(Leases(), ""))
    clock: Callable[[], float] = field(default=time.monotonic)
    blobs: BlobStore | None = None
    gate: CallGate | None = None  # without one, no call asks for leave, and no tool gets a grant
    on_away: Callable[[str], object] = field(default=lambda _: None)

    def priority_of(self, question: Question) -> Priority:
        """Where one turn stands in the line: that of an agent for which nobody waits makes room for the others."""
        usual = self.priority
        if question.task is not None and question.task.in_background and isinstance(usual, UsersTurn):
            return BackgroundTurn(usual.leases, usual.model, "agents")
        return usual
