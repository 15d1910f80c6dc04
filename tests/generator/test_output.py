"""What the model is saying, on the bus as it says it: without what may be a call that it writes as text."""

import asyncio
from typing import Any

import pytest

from local.bus.envelope import Trace
from local.bus.message import Message
from local.bus.messages import GenerationThinking
from local.generator import output as turn_output
from local.generator.output import TurnOutput
from local.generator.runner import HeldCall
from local.models.chat import ContentDelta, RestartDelta, ThinkingDelta

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


def output(posted: Any) -> TurnOutput:
    no_record: Any = None
    return TurnOutput(posted, no_record, TRACE, "agent", "q1", "A", attempt=2)


@pytest.fixture
def stream(posted: Posted) -> TurnOutput:
    made = output(posted)
    made.release()
    return made


async def test_a_lone_fragment_leaves_in_the_next_round_of_the_loop(posted: Posted, stream: TurnOutput) -> None:
    stream.receive(ContentDelta("Hi"))
    assert posted.texts == []
    await asyncio.sleep(0)
    assert posted.texts == [("token", "Hi")]


async def test_fragments_that_came_together_travel_together(posted: Posted, stream: TurnOutput) -> None:
    for text in ("How ", "are ", "you?"):
        stream.receive(ContentDelta(text))
    await asyncio.sleep(0)
    stream.receive(ContentDelta(" Well."))
    await asyncio.sleep(0)
    assert posted.texts == [("token", "How are you?"), ("token", " Well.")]


async def test_thinking_and_content_stay_apart_and_in_order(posted: Posted, stream: TurnOutput) -> None:
    for delta in (ThinkingDelta("a"), ThinkingDelta("b"), ContentDelta("c"), ThinkingDelta("d")):
        stream.receive(delta)
    await asyncio.sleep(0)
    assert posted.texts == [("thinking", "ab"), ("token", "c"), ("thinking", "d")]
    assert [message.index for message in posted.messages] == [0, 1, 2]
    assert {message.attempt for message in posted.messages} == {2}


async def test_what_is_held_leaves_in_order_when_it_is_released_and_the_rest_at_once(posted: Posted) -> None:
    held = output(posted)
    for delta in (ThinkingDelta("a"), ContentDelta("b"), ContentDelta("c")):
        held.receive(delta)
        await asyncio.sleep(0)
    assert posted.texts == []
    held.release()
    assert posted.texts == [("thinking", "a"), ("token", "bc")]
    held.receive(ContentDelta("d"))
    await asyncio.sleep(0)
    assert posted.texts[2:] == [("token", "d")]


async def test_what_is_held_is_bounded_by_pausing_the_model(posted: Posted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn_output, "MOST_HELD", 3)
    held = output(posted)
    held.receive(ContentDelta("abc"))
    await asyncio.wait_for(held.room(), 90)
    held.receive(ContentDelta("d"))
    waiting = asyncio.create_task(held.room())
    await asyncio.sleep(0)
    assert not waiting.done()
    held.release()
    await asyncio.wait_for(waiting, 90)


# A call that the model writes as text is held back.

ROLL_CALL = '{"name": "roll", "arguments": {"n": 1}}'


def passed_on(content: str, size: int) -> tuple[str, str]:
    """What is told of it when it comes in pieces, and what is held at the end."""
    held, said = HeldCall(["roll"]), ""
    for at in range(0, len(content), size):
        for delta in held.receive(ContentDelta(content[at : at + size])):
            assert isinstance(delta, ContentDelta)
            said += delta.text
    return said, held.text


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
@pytest.mark.parametrize("begin", ["", "I roll.\n", "I roll.\n\n```json\n", "<tool_call>\n"])
def test_a_call_is_held_from_the_line_on_which_it_begins(begin: str, size: int) -> None:
    words = begin.partition("```")[0].partition("<")[0].rstrip("\n")
    said, held = passed_on(begin + ROLL_CALL, size)
    assert said.rstrip("\n") == words and ROLL_CALL in held


@pytest.mark.parametrize("size", [1, 7, 1000])
@pytest.mark.parametrize("before", ["I roll: ", "Well [1], (two)\nthree: ", "Use the tool `roll` so: "])
@pytest.mark.parametrize("call", [ROLL_CALL, f"<tool_call>{ROLL_CALL}</tool_call>", f"```json\n{ROLL_CALL}\n```"])
def test_a_call_in_the_middle_of_a_line_is_held_with_all_that_follows(before: str, call: str, size: int) -> None:
    assert passed_on(f"{before}{call} and then I tell you.", size) == (before, f"{call} and then I tell you.")


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
@pytest.mark.parametrize(
    "answer",
    [
        "Two words.",
        '{"name": "Ada", "age": 36}',
        "```c\nint a[] = {1, 2};\n```\nThat is C.",
        "Rolls:\n[1, 2]\n{x}\nrolling\n",
        "a\n\n\nb",
        "<p>{{ name }}</p>",
    ],
)
def test_of_an_answer_nothing_is_held_or_lost(answer: str, size: int) -> None:
    assert passed_on(answer, size) == (answer, "")


def test_an_answer_that_begins_again_begins_with_nothing_held() -> None:
    held = HeldCall(["roll"])
    assert list(held.receive(ContentDelta(ROLL_CALL[:20]))) == []
    assert list(held.receive(RestartDelta("again"))) == [RestartDelta("again")]
    assert list(held.receive(ThinkingDelta("hm"))) == [ThinkingDelta("hm")]
    assert list(held.receive(ContentDelta("Six."))) == [ContentDelta("Six.")]
