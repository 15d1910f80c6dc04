"""What the model is saying, on the bus as it says it."""

import asyncio
from typing import Any

import pytest

from local.agents.answering.turn_output import TurnOutput
from local.models.chat import ContentDelta, Done, ThinkingDelta, ToolCall, Usage
from local.protocol.envelope import Trace
from local.protocol.messages import GenerationThinking, Message

TRACE = Trace("q1")


class Posted:
    """Stands for the bus: keeps what is posted."""

    def __init__(self) -> None:
        self.messages: list[GenerationThinking] = []

    def post(self, message: Message, trace: Trace) -> bool:
        assert trace is TRACE
        assert isinstance(message, GenerationThinking)
        self.messages.append(message)
        return True

    @property
    def texts(self) -> list[tuple[str, str]]:
        return [(message.subject.removeprefix("generation."), message.text) for message in self.messages]


@pytest.fixture
def posted() -> Posted:
    return Posted()


@pytest.fixture
def stream(posted: Any) -> TurnOutput:
    return TurnOutput(posted, TRACE, "agent", "q1", "A", attempt=2)


async def test_a_lone_fragment_leaves_in_the_next_round_of_the_loop(posted: Posted, stream: TurnOutput) -> None:
    stream.hear(ContentDelta("Hi"))
    assert posted.texts == []
    await asyncio.sleep(0)
    assert posted.texts == [("token", "Hi")]


async def test_fragments_that_came_together_travel_together(posted: Posted, stream: TurnOutput) -> None:
    for text in ("How ", "are ", "you?"):
        stream.hear(ContentDelta(text))
    await asyncio.sleep(0)
    stream.hear(ContentDelta(" Well."))
    await asyncio.sleep(0)
    assert posted.texts == [("token", "How are you?"), ("token", " Well.")]


async def test_thinking_and_content_stay_apart_and_in_order(posted: Posted, stream: TurnOutput) -> None:
    for delta in (ThinkingDelta("a"), ThinkingDelta("b"), ContentDelta("c"), ThinkingDelta("d")):
        stream.hear(delta)
    await asyncio.sleep(0)
    assert posted.texts == [("thinking", "ab"), ("token", "c"), ("thinking", "d")]
    assert [message.index for message in posted.messages] == [0, 1, 2]
    assert {message.attempt for message in posted.messages} == {2}


async def test_calls_and_ends_are_no_fragments(posted: Posted, stream: TurnOutput) -> None:
    stream.hear(ToolCall("dice", {}))
    stream.hear(Done(Usage()))
    stream.flush()
    assert posted.texts == []


async def test_flush_publishes_at_once_and_nothing_twice(posted: Posted, stream: TurnOutput) -> None:
    stream.hear(ContentDelta("Hi"))
    stream.flush()
    assert posted.texts == [("token", "Hi")]
    await asyncio.sleep(0)
    stream.flush()
    assert posted.texts == [("token", "Hi")]
