"""The tool that has two answers compared, and a critic that says what it is told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from local.bus.bus import Bus
from local.bus.envelope import Envelope
from local.bus.message import ErrorInfo
from local.bus.messages import ParticipantStatus
from local.critic import compare as compare_answers
from local.critic.compare import MOST_CHARACTERS, CompareAnswersTool
from local.critic.messages import ComparisonRequest, ComparisonResult
from local.tools.tool import Tool
from tests.tools import conftest as tools_stage

serve, granted = tools_stage.serve, tools_stage.granted
Serve = Callable[[Tool], Awaitable[Any]]
TEXTS = {"question": "How deep?", "answer_a": "1308 m", "answer_b": "Very."}


class Critic:
    """Answers on the caller's bus, once it has been told to be there."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self.asked: list[Envelope] = []
        self.says: ComparisonResult | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        bus.subscribe(ComparisonRequest.subject, self._answer)

    def is_there(self, state: Any = "ready") -> None:
        self._bus.post(ParticipantStatus(name="critic", kind="agent", pid=1, instance="i", state=state))

    def _answer(self, envelope: Envelope) -> None:
        self.asked.append(envelope)
        if self.says is not None:
            task = asyncio.create_task(self._bus.publish(self.says, envelope.trace(), in_reply_to=envelope.id))
            self._tasks.add(task)


@pytest.fixture
async def served(serve: Serve) -> AsyncIterator[tuple[Any, Critic]]:
    caller = await serve(CompareAnswersTool())
    critic = Critic(caller.bus)
    await caller.bus.ready()
    yield caller, critic


@pytest.mark.parametrize(
    ("said", "text"),
    [
        ({"winner": "B", "order_consistent": True}, "Answer B is better. It is short."),
        ({"winner": "A", "order_consistent": True, "feedback": ""}, "Answer A is better."),
        (
            {"winner": "tie", "order_consistent": False},
            "Neither is better: it is a tie (the judge preferred another one when their order was changed)."
            " It is short.",
        ),
        ({"winner": "tie", "order_consistent": True}, "Neither is better: it is a tie. It is short."),
    ],
)
async def test_the_model_reads_which_is_better_and_why(served: Any, said: dict[str, Any], text: str) -> None:
    call, critic = served
    critic.says = ComparisonResult(**{"feedback": "It is short.", **said})
    critic.is_there()
    assert (await call(**TEXTS)).result == text
    (asked,) = critic.asked
    assert ComparisonRequest.decode(asked.payload) == ComparisonRequest(**TEXTS)


@pytest.mark.parametrize("state", [None, "stopping"])
async def test_without_a_critic_the_model_is_told_so_soon(
    served: Any, state: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    call, critic = served
    monkeypatch.setattr(compare_answers, "PRESENCE_SECONDS", 0.1)
    if state is not None:
        critic.is_there()
        critic.is_there(state)
    error = (await call(**TEXTS)).error
    assert error.kind == "unavailable"
    assert "no critic runs" in error.message
    assert critic.asked == []


@pytest.mark.parametrize("text", ["", "  \n", "x" * (MOST_CHARACTERS + 1)])
async def test_texts_that_cannot_be_compared_reach_no_critic(served: Any, text: str) -> None:
    call, critic = served
    critic.is_there()
    error = (await call(**{**TEXTS, "answer_b": text})).error
    assert error.kind == "bad_arguments" and "answer_b" in error.message
    assert critic.asked == []


async def test_why_there_is_no_comparison_is_for_the_model_to_read(
    served: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    call, critic = served
    critic.says = ComparisonResult(error=ErrorInfo(kind="unparsed", message="it mumbled"))
    critic.is_there()
    error = (await call(**TEXTS)).error
    assert (error.kind, error.message) == ("unparsed", "the answers could not be compared: it mumbled")
    critic.says = None
    monkeypatch.setattr(compare_answers, "COMPARISON_SECONDS", 0.1)
    assert (await call.call(TEXTS, "q1:0:1")).error.kind == "timeout"
