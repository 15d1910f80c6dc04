"""The model, asked for what nobody waits for: its reply is an object of a form, its cost is counted."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, TypeVar

from local.agents.leases import Leases
from local.errors import ModelError
from local.models.chat import ChatModel, whole_reply
from local.runtime.participant import Publications
from local.services.model_reply import UnreadableReply

T = TypeVar("T")
Json = dict[str, Any]
Unread = tuple[tuple[str, str], ...]  # replies that could not be read, each with the reason

CALLS = 2  # of the model for one question
CONTEXT_TOKENS = 32_000  # where nobody says how large the window is
MAX_TOKENS = 1_500  # of a reply


class NotAsAsked(ModelError):
    """A model that has not replied in the form it was asked for, as often as it may."""


@dataclass(frozen=True, slots=True)
class BackgroundQuestion(Generic[T]):
    """What a model is asked: `messages` with its replies so far that could not be read, the schema of the reply, and
    how that is read, which raises `UnreadableReply`."""

    messages: Callable[[Unread], list[Json]]
    schema: Json
    read: Callable[[str], T]


@dataclass(slots=True)
class BackgroundCost:
    """What a question has cost so far."""

    calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        """The tokens of prompts and replies together."""
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True, slots=True)
class BackgroundModel:
    """A model with a lease for each question, which makes way for users' turns."""

    publishes: ClassVar[Publications] = (Leases,)
    chat: ChatModel
    name: str
    leases: Leases = field(default_factory=Leases)
    num_ctx: int | None = None

    async def ask(self, purpose: str, question: BackgroundQuestion[T], cost: BackgroundCost) -> T:
        """What the reply says; asked once more where it cannot be read. `purpose` is the word for the line of the
        model; `cost` is added to. Raises `NotAsAsked` and `ModelError`."""
        return await self.leases.in_background(self.name, purpose, lambda: self._asked(question, cost))

    async def _asked(self, question: BackgroundQuestion[T], cost: BackgroundCost) -> T:
        unread: Unread = ()
        while True:
            reply = await self._reply(question.messages(unread), question.schema, cost)
            try:
                return question.read(reply)
            except UnreadableReply as error:
                unread = (*unread, (reply, str(error)))
                if len(unread) == CALLS:
                    raise NotAsAsked(f"{self.name} has not replied as asked: {error}") from None

    async def _reply(self, messages: list[Json], schema: Json, cost: BackgroundCost) -> str:
        options = {"num_ctx": self.num_ctx or CONTEXT_TOKENS, "temperature": 0, "num_predict": MAX_TOKENS}
        begun = time.monotonic()
        stream = self.chat.chat(self.name, messages, options=options, format=schema)
        reply, usage = await whole_reply(stream)
        cost.calls += 1
        cost.prompt_tokens += usage.prompt_tokens
        cost.completion_tokens += usage.completion_tokens
        cost.seconds += time.monotonic() - begun
        return reply
