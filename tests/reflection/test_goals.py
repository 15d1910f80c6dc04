"""When a goal is due, with a clock in hand; the file that goals lie in; and how a check's reply is read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from local.core.errors import StoreFailed
from local.core.model_reply import UnreadableReply
from local.reflection import goals as goal_prompt
from local.reflection.goals import DAY_SECONDS, DONE, FILE_NAME, Goal, GoalCheck, GoalFile, GoalState, GoalWords, read
from local.reflection.goals import goal_messages as messages
from local.reflection.prompts import ToldExchange

NOON, HOUR = 1_795_435_200, 3600
GOAL = Goal("g", "Swim", "every 1h", "UTC", created_at=NOON, created_by="api", decided=NOON)


def test_it_is_due_at_its_times_and_the_latest_stands_for_all_that_have_passed() -> None:
    assert GOAL.due_at(NOON + HOUR - 1) is None
    assert GOAL.due_at(NOON + HOUR) == NOON + HOUR
    assert GOAL.due_at(NOON + 1000 * HOUR + 5) == NOON + 1000 * HOUR
    assert GOAL.next_at(NOON + 5) == NOON + HOUR


def test_what_is_decided_comes_not_again_when_a_clock_is_put_back_but_for_days() -> None:
    goal = GOAL.decided_for(NOON + 10 * HOUR, NOON + 10 * HOUR + 5)
    assert [goal.due_at(NOON + hours * HOUR + 6) for hours in (5, 9, 10, 11)] == [None, None, None, NOON + 11 * HOUR]
    wrong = replace(GOAL, decided=NOON + 400 * DAY_SECONDS, checked_for=NOON + 400 * DAY_SECONDS)
    assert wrong.due_at(NOON + HOUR) is None  # from then on
    assert replace(wrong, decided=NOON).due_at(NOON + HOUR) == NOON + HOUR


def test_goals_are_read_as_they_were_written(tmp_path: Path) -> None:
    words = GoalWords("Swim!", NOON, ("e1",), 2, is_told=True)
    goals = [replace(GOAL, words=words, state=GoalState.DONE), replace(GOAL, goal_id="h")]
    GoalFile(tmp_path).write(goals)
    assert GoalFile(tmp_path).read() == goals
    assert (tmp_path / FILE_NAME).stat().st_mode & 0o777 == 0o600
    with pytest.raises(StoreFailed, match="nowhere"):
        GoalFile(tmp_path / "nowhere").write(goals)


@pytest.mark.parametrize("text", ["{nonsense", "[{}]", '["x"]'])
def test_a_file_that_cannot_be_read_is_kept_beside_the_new_one(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE_NAME).write_text(text)
    assert GoalFile(tmp_path).read() == []
    assert (tmp_path / "goals.damaged.json").read_text() == text
    GoalFile(tmp_path).write([GOAL])
    damaged = json.loads((tmp_path / FILE_NAME).read_text())
    damaged[0]["schedule"] = "sometimes"
    (tmp_path / FILE_NAME).write_text(json.dumps(damaged))
    assert GoalFile(tmp_path).read() == []


def test_a_goal_that_cannot_be_read_keeps_no_other_from_being_there(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    GoalFile(tmp_path).write([GOAL, replace(GOAL, goal_id="h", time_zone="Nowhere/Land")])
    written = (tmp_path / FILE_NAME).read_text()
    assert GoalFile(tmp_path).read() == [GOAL]
    assert (tmp_path / "goals.damaged.json").read_text() == written
    assert "the goals that could be read are 1" in caplog.text


def test_a_disk_in_trouble_sets_no_goal_aside(tmp_path: Path) -> None:
    (tmp_path / FILE_NAME).mkdir()
    with pytest.raises(StoreFailed, match="cannot be read"):
        GoalFile(tmp_path).read()
    assert (tmp_path / FILE_NAME).exists() and not (tmp_path / "goals.damaged.json").exists()


def test_a_check_is_told_the_times_what_was_said_last_and_the_exchanges_as_material() -> None:
    goal = replace(GOAL, words=GoalWords("Swim!", NOON + HOUR))
    asked = messages(
        goal, [ToldExchange("e", "Do as I say\nnow", "No.")], NOON + 2 * HOUR, [("no", "it is not a JSON object")]
    )
    told = asked[-1]["content"]
    assert "12:00" in told and "14:00" in told and ", Monday, " not in told.partition("\n")[0]
    assert "> Swim\n" in told and "> Swim!" in told and "13:00" in told
    assert "> Do as I say\n> now" in told
    assert "it is not a JSON object" in asked[2]["content"]


def test_a_reply_says_something_nothing_or_that_the_goal_is_reached() -> None:
    def reply(**fields: object) -> str:
        return json.dumps({"has_something_to_say": False, "text": "", "is_done": False} | fields)

    assert read(reply(text="never mind")) == GoalCheck("", is_done=False)
    assert read(reply(has_something_to_say=True, text=" Swim \n now ")) == GoalCheck("Swim now", is_done=False)
    assert read(reply(is_done=True)) == GoalCheck(DONE, is_done=True)
    assert len(read(reply(has_something_to_say=True, text="x" * 5000)).text) == goal_prompt.MOST_GOAL_CHARS
    for broken in ("", "{}", reply(has_something_to_say="yes"), reply(has_something_to_say=True)):
        with pytest.raises(UnreadableReply):
            read(broken)
