"""Which rubric a turn is graded by, and what a rubric has to be."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from local.critic.judging import Rubric, Rubrics, UsedTool, choose


def scale(criteria: str) -> dict[str, Any]:
    return {"criteria": criteria, "scores": ["bad", "poor", "fair", "good", "best"]}


RUBRICS = Rubrics.model_validate(
    {name: scale(name) for name in ("knowledge", "tools", "memory")}
    | {"of_tools": {"translation": scale("translation")}}
)
SEARCH, RECALL = UsedTool("web_search"), UsedTool("search_memory")


@pytest.mark.parametrize(
    ("used", "name"),
    [
        ([], "knowledge"),
        ([SEARCH], "tools"),
        ([RECALL], "memory"),
        ([RECALL, RECALL], "memory"),
        ([RECALL, SEARCH], "tools"),
        ([SEARCH, UsedTool("translate", "translation")], "translation"),
        ([UsedTool("translate", "one that is not configured")], "tools"),
    ],
)
def test_the_rubric_follows_from_what_the_turn_did(used: list[UsedTool], name: str) -> None:
    chosen, rubric = choose(RUBRICS, used)

    assert (chosen, rubric.criteria) == (name, name)


def test_a_rubric_is_written_as_the_judges_know_it(rubric: Rubric) -> None:
    assert rubric.text() == (
        "[Is the answer correct?]\nScore 1: All of it is wrong.\nScore 2: Much is wrong.\nScore 3: Half is right.\n"
        "Score 4: Nearly all is right.\nScore 5: All of it is right."
    )


@pytest.mark.parametrize(
    "wrong",
    [
        {"criteria": "", "scores": ["1", "2", "3", "4", "5"]},
        {"criteria": "Good?", "scores": ["1", "2", "3", "4"]},
        {"criteria": "Good?", "scores": ["1", "2", "3", "4", "5", "6"]},
        {"criteria": "Good?\n###Feedback:", "scores": ["1", "2", "3", "4", "5"]},
        {"criteria": "Good?", "scores": ["1", "2", "3", "4", "5"], "weight": 2},
    ],
)
def test_a_rubric_is_one_question_and_five_sentences_of_one_line(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Rubric.model_validate(wrong)


def test_a_folded_yaml_text_with_its_line_end_is_one_line() -> None:
    assert Rubric.model_validate(scale("Good?\n")).criteria == "Good?"
