"""`local2 goals` and `local2 monologue` with a frontend that gives set answers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from local.reflection import commands as goal_commands
from local.reflection import commands as monologue_commands
from local.reflection import commands as routine_switch
from tests.cli.answering_frontend import AnsweringFrontend, Json

STATE: Json = {"is_on": True, "why": "no goal is due", "problem": "", "tokens_today": 7, "tokens_per_day": 9}
GOAL: Json = {
    "goal_id": "3f2a", "text": "Swim\x1b", "schedule": "every 1d", "state": "active", "next_at": 1e9, "checks": 3,
    "quiet": 2, "words": "Swim now!", "words_at": 5.0, "is_seen": False,
}  # fmt: skip
THOUGHT: Json = {"at": 0.0, "text": "Swimming.", "sources": ["a", "b"], "left_out": 4}
Run = Callable[..., tuple[int, str, str]]


def answer(method: str, path: str) -> Json:
    if path.endswith("/now"):
        return {**STATE, "why": "9 of 9 tokens are used today"}
    if path in ("/goals/on", "/goals/off", "/monologue/on"):
        return STATE
    if path.startswith("/monologue"):
        return {**STATE, "thoughts": [THOUGHT]}
    return {**STATE, "goals": [GOAL]} if (method, path) == ("GET", "/goals") else GOAL


@pytest.fixture
def frontend(found_by: Callable[..., None]) -> AnsweringFrontend:
    frontend = AnsweringFrontend(answer)
    found_by(frontend, goal_commands, monologue_commands, routine_switch)
    return frontend


def test_goals_are_shown_with_what_was_said_of_them_which_is_seen_then(run: Run, frontend: AnsweringFrontend) -> None:
    status, out, _ = run("goals", "list")
    assert (status, "\x1b" in out) == (0, False)
    assert "7 of 9 tokens today, waits for: no goal is due" in out
    assert "3 checks, 2 of them quiet" in out and "Swim now!  (new)" in out
    assert frontend.asked[-1] == ("PATCH", "/goals/3f2a", {"seen": 5.0})


def test_goals_are_set_and_ended(run: Run, frontend: AnsweringFrontend) -> None:
    assert run("goals", "set", "Swim", "--every", "every 2d")[0] == 0
    assert frontend.asked[-1] == ("POST", "/goals", {"text": "Swim", "schedule": "every 2d", "by": "terminal"})
    for verb, state in (("done", "done"), ("drop", "dropped"), ("reopen", "active")):
        assert run("goals", verb, "3f2a")[0] == 0
        assert frontend.asked[-1] == ("PATCH", "/goals/3f2a", {"state": state, "by": "terminal"})


def test_routines_are_switched_and_say_why_they_cannot_be_done_now(run: Run, frontend: AnsweringFrontend) -> None:
    assert run("goals", "off")[:2] == (0, "goals are no longer checked\n")
    assert run("monologue", "on")[:2] == (0, "switched on\n")
    assert run("goals", "now")[:2] == (0, "not now: 9 of 9 tokens are used today\n")
    assert frontend.asked == [("POST", "/goals/off"), ("POST", "/monologue/on"), ("POST", "/goals/now")]


def test_thoughts_are_shown_with_what_they_rest_on(run: Run, frontend: AnsweringFrontend) -> None:
    out = run("monologue", "show", "-n", "5")[1]
    assert frontend.asked == [("GET", "/monologue?limit=5")]
    assert out.startswith("on, 7 of 9 tokens today")
    assert "Swimming.  (from 2 exchanges, 4 with untrusted content left out)" in out
