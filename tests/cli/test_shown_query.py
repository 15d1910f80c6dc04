"""A question to a person stays on the terminal until it is answered; what happened meanwhile is told then."""

from __future__ import annotations

from typing import Any

from local.cli.client import StreamEvent
from local.cli.conversation import ShownQuery
from local.cli.renderer import QueryProgress, Renderer


class Told(Renderer):
    """What was told, in order."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.closed = 0

    def receive(self, event: StreamEvent, progress: QueryProgress) -> None:
        self.events.append(event.name)

    def tick(self, progress: QueryProgress) -> None:
        self.events.append("tick")

    def close(self) -> None:
        self.closed += 1


class Prompt:
    """Asks until the test says that somebody has answered."""

    is_open = False

    def receive(self, name: str, data: dict[str, Any]) -> None:
        self.is_open = name == "approval"

    def poll(self) -> None: ...


def shown() -> tuple[ShownQuery, Told, Prompt]:
    told, prompt = Told(), Prompt()
    return ShownQuery(told, QueryProgress(), prompt), told, prompt  # type: ignore[arg-type]


def happens(query: ShownQuery, *names: str) -> None:
    for name in names:
        data = {"call_id": "1", "tool": "dice", "text": "x", "to": "CALLING", "reason": ""}
        query.receive(StreamEvent(name, data, ""))


def test_nothing_is_told_in_the_midst_of_a_question_and_all_of_it_after_the_answer() -> None:
    query, told, prompt = shown()
    happens(query, "token", "approval")
    before = list(told.events)
    happens(query, "state", "thinking", "tool_call")
    query.tick()
    assert told.events == before == ["token", "approval"]
    prompt.is_open = False  # somebody has typed it
    happens(query, "token")
    query.tick()
    assert told.events == [*before, "state", "thinking", "tool_call", "token", "tick"]


def test_the_lines_that_move_go_before_a_question_and_wipe_none_that_stands_there() -> None:
    query, told, prompt = shown()
    happens(query, "approval", "approval")
    assert told.closed == 1
    prompt.is_open = False
    happens(query, "token", "approval")
    assert told.closed == 2


def test_a_question_that_is_answered_at_another_frontend_lets_the_rest_be_told() -> None:
    query, told, _ = shown()
    happens(query, "approval", "state", "decision")
    assert told.events == ["approval", "state", "decision"]


def test_the_end_is_told_whatever_is_asked() -> None:
    query, told, _ = shown()
    happens(query, "approval", "token", "response")
    assert told.events == ["approval", "token", "response"]
