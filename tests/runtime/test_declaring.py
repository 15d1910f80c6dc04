"""What a participant's class declares: by its handlers, by its own list, or by its code alone."""

from __future__ import annotations

import importlib
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from local.bus import messages
from local.bus.envelope import Envelope
from local.bus.message import message_classes
from local.bus.messages import (
    SUPERVISOR,
    AnswerDialog,
    ParticipantRequest,
    QueryAccepted,
    QueryReceived,
    ResponseGeneration,
)
from local.core.capability import participants
from local.critic.messages import RewardEvent
from local.memory.messages import MemoryRequest, MemoryResult
from local.queries.asker import Asker
from local.runtime.participant import EVERYBODY, Participant, declaration_of, on
from local.tools.tool import Tool

if TYPE_CHECKING:
    from local.bus.messages import QueryFailed

COMMON = {message.subject for message in EVERYBODY}
CONSUMING = {f"journal.{word}" for word in ("attach", "detach", "ack", "failed", "hurry", "working")}
OURS = {**participants(), "journal": "local.journal.server:Journal"}
OURS["api"] = "local.api.app:ApiParticipant"


def says(kind: type[Participant]) -> set[str]:
    """Beside what everybody says."""
    return set(declaration_of(kind).says - COMMON - CONSUMING)


class Observer(Participant):
    """Says nothing."""

    name = "observer"

    @on(ResponseGeneration, durable="observer")
    async def hear(self, message: ResponseGeneration, envelope: Envelope) -> None:
        assert isinstance(message, ResponseGeneration)


class Answering(Participant):
    """Says what its handlers return."""

    name = "answering"

    @on(MemoryRequest)
    async def answer(self, message: MemoryRequest, envelope: Envelope) -> MemoryResult | AnswerDialog | None:
        return None


class Inheriting(Answering):
    """Says that, too, and something else."""

    name = "inheriting"

    async def tell(self) -> None:
        await self.bus.publish(RewardEvent(query_id="q", reward=1, rated_at=1))


class Strict(Inheriting):
    """Its own code is not looked at."""

    name = "strict"
    publishes = ("memory.request.search",)

    async def tell(self) -> None:
        await self.bus.publish(QueryAccepted(query_id="q"))


class AskingAgent(Participant):
    """As the one in docs/how-to/extend.md."""

    name = "asking"

    @asynccontextmanager
    async def lifespan(self) -> Any:
        async with Asker(self.bus) as asker:
            yield asker


class OneFileTool(Tool):
    """Whose helpers publish."""

    name = "one_file"

    async def run(self) -> str:
        await _help(self)
        return "done"

    @property
    def greeting(self) -> messages.Message:
        return messages.QueryCancel(query_id="q")


async def _help(tool: Tool) -> None:
    async def nested() -> None:
        await tool.bus.publish(_Helper().message())

    await nested()


class _Helper:
    @staticmethod
    def message() -> MemoryRequest:
        return MemoryRequest(verb="search")


class OnlyTyped(Participant):
    """With an annotation that exists for type checkers alone."""

    name = "only_typed"

    @on(QueryReceived)
    async def take(self, message: QueryReceived, envelope: Envelope) -> QueryFailed | None:
        return messages.QueryFailed(query_id="q", error=messages.ErrorInfo(kind="no", message="no"))


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (Answering, {"memory.result.", "answer.dialog"}),
        (Inheriting, {"memory.result.", "answer.dialog", "reward.event"}),
        (Strict, {"memory.result.", "answer.dialog", "reward.event", "memory.request.search"}),
        (AskingAgent, {"query.received", "query.cancel", "conversation.request.query", "journal.read"}),
        (OneFileTool, {"tool.schema", "tool.result.one_file", "tool.begins", "query.cancel", "memory.request."}),
        (OnlyTyped, {"query.failed"}),
    ],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_class_says_what_can_be_read_off_it(kind: type[Participant], expected: set[str]) -> None:
    assert says(kind) == expected
    assert declaration_of(kind).serves == set()
    assert not declaration_of(kind).says & CONSUMING


def test_a_class_with_durable_handlers_serves_consumers_and_tells_the_journal() -> None:
    declaration = declaration_of(Observer)
    assert declaration.serves == {"observer"}
    assert declaration.says == COMMON | CONSUMING | {"response.generation"}  # its code names that one


@pytest.mark.parametrize(
    "request_class", sorted(filter(lambda kind: kind.is_request, message_classes()), key=lambda kind: kind.subject)
)
def test_every_request_names_who_answers_it(request_class: type[messages.Message]) -> None:
    asked = request_class.model_construct(tool="web_search").whom
    if asked == SUPERVISOR:  # which is no participant
        assert request_class is ParticipantRequest
        return
    module, _, kind = OURS[asked].partition(":")
    handlers = getattr(importlib.import_module(module), kind).handlers()
    assert request_class in {handles.message for handles in handlers}
