"""A judge is tested on known pairs, once for each model, when nobody uses the system; no grade waits for that."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from local.bus.messages import ModelUsed
from local.core.self_test_file import FOLDER, SelfTestFile
from local.critic.messages import PairwiseResult
from local.critic.self_test import ITEMS, ItemResult, is_decided, result_of
from local.models import arbiter


def will_be_tested(model: Any, right: int = 5, wrong: int = 1, items: int = len(ITEMS)) -> int:
    """The judge grades right and wrong answers so, and prefers the right one if its grade is better."""
    replies = []
    for item in ITEMS[:items]:
        if item.compared:
            letters = "BA" if item.wrong_first is (right > wrong) else "AB"
            replies += [{"feedback": "", "winner": letter} for letter in letters]
        else:
            replies += [{"feedback": "", "score": score} for score in (right, wrong)]
    for reply in replies:
        model.will_say(json.dumps(reply))
    return len(replies)


SECONDS = 90.0
GRADE = json.dumps({"feedback": "Right.", "score": 5})


async def test_no_grade_waits_for_the_test_which_runs_once_when_nobody_asks_anything(
    critics: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    critics.model.will_say(GRADE)
    served = await critics.serve("generic-json", tmp_path)
    await critics.answered()
    assert (await critics.critique()).score == 5
    assert len(critics.model.asked) == 1 and "self_test" not in served.participant.details()
    calls = await is_tested(critics, served, monkeypatch)
    assert {asked.options["temperature"] for asked in critics.model.asked} == {0.0}
    assert served.participant.details()["self_test"].startswith("passed: 20 of 20 right")
    assert "grading_off" not in served.participant.details()
    await served.kill()
    critics.model.will_say(GRADE)
    await critics.serve("generic-json", tmp_path)
    await critics.answered(query_id="next")
    assert (await critics.critique("next")).score == 5
    assert len(critics.model.asked) == calls + 2


async def test_the_grades_of_a_judge_that_fails_are_not_asked_for(
    critics: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    critics.model.will_say(GRADE)
    served = await critics.serve("generic-json", tmp_path)
    await critics.answered(query_id="first")
    await critics.critique("first")
    await is_tested(critics, served, monkeypatch, 4, 4, items=5)
    await critics.answered()
    told = await critics.critique()
    assert (told.score, told.expected, told.status, told.judge) == (None, None, "judge_unfit", "judge")
    assert "0 of 5 right" in told.feedback  # it cannot pass any more
    asked = len(critics.model.asked)
    await critics.answered(query_id="B", respondent_id="A")
    await critics.answered(query_id="B", respondent_id="B")
    compared = await critics.frontend.hears(PairwiseResult, query_id="B")
    assert (compared.winner, compared.status) == (None, "judge_unfit")
    assert len(critics.model.asked) == asked
    assert served.participant.metrics()["judgements_without_fit_judge"] == 4
    assert served.participant.details()["grading_off"].startswith("judge failed")


async def is_tested(
    critics: Any, served: Any, monkeypatch: pytest.MonkeyPatch, *grades: int, items: int = len(ITEMS)
) -> int:
    """The idle minute comes, and the judge is tested; returns the number of calls."""
    calls = will_be_tested(critics.model, *grades, items=items)
    monkeypatch.setattr(arbiter, "IDLE_SECONDS", 0.0)
    await critics.frontend.hears(ModelUsed, calls, purpose="judge_test")
    await asyncio.wait_for(served.participant._fitness.checked(), SECONDS)
    return calls


@pytest.mark.parametrize("damage", ["", "[]", '{"key": [], "result": {}}', "\x00"])
def test_a_damaged_result_is_none(tmp_path: Path, damage: str) -> None:
    file = SelfTestFile(tmp_path, "judge", ("gemma", "GenericJson", "digest"))
    file.write({"passed": 1})
    assert file.read() == {"passed": 1}
    assert SelfTestFile(tmp_path, "judge", ("gemma", "GenericJson", "another test")).read() is None
    (path,) = (tmp_path / FOLDER).iterdir()
    path.write_text(damage, "utf-8")
    assert file.read() is None


def graded(right: float | None, wrong: float | None) -> list[ItemResult]:
    return [ItemResult(item, right, wrong, picked=True if item.compared else None) for item in ITEMS]


def test_a_judge_has_to_tell_four_fifths_apart_and_by_a_whole_grade() -> None:
    assert result_of(graded(4, 3)).is_fit
    assert not result_of(graded(4, 3.5)).is_fit
    assert not result_of(graded(None, None)).is_fit
    assert not result_of(graded(3, 4)).is_fit
    mixed = [ItemResult(item, 5, 5 if number < 5 else 1, True) for number, item in enumerate(ITEMS)]
    assert is_decided(mixed) and result_of(mixed).passed == 16 and result_of(mixed).is_fit
    assert is_decided([ItemResult(item, 3, 3, False) for item in ITEMS[:5]])
    assert not is_decided([ItemResult(item, 3, 3, False) for item in ITEMS[:4]])
