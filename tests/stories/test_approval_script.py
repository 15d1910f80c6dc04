"""What a story decides of calls that ask for leave: which of its lines is meant, and what the card must say."""

from __future__ import annotations

from typing import Any

import pytest

from local.stories.player import ApprovalScript
from local.stories.story import Approval


def asked(call_id: str = "q:0:0", tool: str = "write_file", **args: Any) -> dict[str, Any]:
    """The payload of an `approval.request`."""
    return {"call_id": call_id, "tool": tool, "args": args, "level": "L1", "why": "It can be undone.", "sources": ["a"]}


def script(*lines: dict[str, Any]) -> ApprovalScript:
    return ApprovalScript([Approval.model_validate({"tool": "write_file", **line}) for line in lines])


def failures(played: ApprovalScript) -> list[str]:
    return [check.what for check in (*played.checks, *played.missing()) if not check.passed]


def test_a_decision_is_found_by_tool_and_arguments_and_used_once() -> None:
    played = script({"args": {"path": "a"}, "decision": "deny"}, {"args": {"path": "b"}, "decision": "allow_session"})
    assert played.decision(asked("q:0:1", path="b")) == {"decision": "allow_session", "by": "story"}
    assert played.decision(asked("q:0:0", path="a")) == {"decision": "deny", "by": "story"}
    assert failures(played) == []
    assert played.decision(asked("q:1:0", path="a")) == {"decision": "deny", "by": "story"}
    assert failures(played) == ["only what the story foresees needs approval"]


@pytest.mark.parametrize("question", [asked(tool="edit_file", path="a"), asked(path="b"), asked()])
def test_what_nobody_has_foreseen_is_denied_and_fails(question: dict[str, Any]) -> None:
    played = script({"args": {"path": "a"}})
    assert played.decision(question) == {"decision": "deny", "by": "story"}
    assert failures(played) == ["only what the story foresees needs approval", "write_file needs approval"]


def test_a_question_that_comes_again_after_the_connection_broke_is_decided_once() -> None:
    played = script({}, {})
    assert played.decision(asked()) is not None
    assert played.decision(asked()) is None
    assert failures(played) == ["write_file needs approval"]


def test_what_may_come_often_may_come_any_number_of_times_or_not_at_all() -> None:
    assert failures(script({"often": True})) == []
    played = script({"often": True})
    assert [played.decision(asked(f"q:{number}:0")) for number in range(3)] == [
        {"decision": "allow", "by": "story"}
    ] * 3
    assert failures(played) == []


@pytest.mark.parametrize(
    ("card", "passes"),
    [
        ({"level": "L1", "why": {"contains": "can be UNDONE"}, "sources": {"contains": "a"}}, True),
        ({"level": "L2"}, False),
        ({"why": {"contains": "may not"}}, False),
        ({"sources": {"contains": "b"}}, False),
        ({"nothing": "of the kind"}, False),
    ],
)
def test_the_card_must_say_what_the_story_says(card: dict[str, Any], passes: bool) -> None:
    played = script({"card": card})
    played.decision(asked())
    assert [check.passed for check in played.checks] == [passes]


def test_an_answer_goes_along_to_a_question_of_the_model() -> None:
    played = ApprovalScript([Approval(tool="request_clarification", answer="blue")])
    body = played.decision(asked(tool="request_clarification", question="Which?"))
    assert body == {"decision": "allow", "answer": "blue", "by": "story"}
