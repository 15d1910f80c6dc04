"""What is told of a message that may hold a call written as text."""

from __future__ import annotations

import pytest

from local.generator.runner import HeldCall
from local.models.chat import ContentDelta, RestartDelta, ThinkingDelta

CALL = '{"name": "roll", "arguments": {"n": 1}}'


def told(content: str, size: int) -> tuple[str, str]:
    """What is told of it when it comes in pieces, and what is held at the end."""
    held, said = HeldCall(["roll"]), ""
    for at in range(0, len(content), size):
        for delta in held.hear(ContentDelta(content[at : at + size])):
            assert isinstance(delta, ContentDelta)
            said += delta.text
    return said, held.text


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
@pytest.mark.parametrize("begin", ["", "I roll.\n", "I roll.\n\n```json\n", "<tool_call>\n"])
def test_a_call_is_held_from_the_line_on_which_it_begins(begin: str, size: int) -> None:
    words = begin.partition("```")[0].partition("<")[0].rstrip("\n")
    said, held = told(begin + CALL, size)
    assert said.rstrip("\n") == words and CALL in held


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
    assert told(answer, size) == (answer, "")


def test_an_answer_that_begins_again_begins_with_nothing_held() -> None:
    held = HeldCall(["roll"])
    assert list(held.hear(ContentDelta(CALL[:20]))) == []
    assert list(held.hear(RestartDelta("again"))) == [RestartDelta("again")]
    assert list(held.hear(ThinkingDelta("hm"))) == [ThinkingDelta("hm")]
    assert list(held.hear(ContentDelta("Six."))) == [ContentDelta("Six.")]
