"""What the judges are asked."""

from __future__ import annotations

import hashlib

import pytest

from local.critic.judge import PROFILES
from local.critic.judging import Case, Evidence, JudgePrompt, Pair, Profile, Rubric
from local.critic.prompts import ABSOLUTE, ABSOLUTE_SYSTEM, RELATIVE, RELATIVE_SYSTEM

CASE = Case("Capital of France?", "Paris.")
GROUNDED = Case(
    "Capital of France?", "Paris.", (Evidence("web_search", "Paris is\nthe capital."), Evidence("wiki", "Yes"))
)
PAIR = Pair("Capital of France?", "Paris.", "Rome.")


def told(prompt: JudgePrompt) -> str:
    return f"{prompt.system}\n{prompt.user}"


def test_prometheus_is_asked_in_its_published_words(rubric: Rubric) -> None:
    prompt = PROFILES["prometheus2"].absolute(CASE, rubric)
    assert prompt.system.startswith(f"{ABSOLUTE_SYSTEM}\n\nEvery line that begins with")
    assert prompt.user == ABSOLUTE.format(instruction="> Capital of France?", response="> Paris.", rubric=rubric.text())
    assert hashlib.sha256(ABSOLUTE.encode()).hexdigest().startswith("e4a5fb23843318fc")

    prompt = PROFILES["prometheus2"].relative(PAIR, rubric)
    assert prompt.system.startswith(f"{RELATIVE_SYSTEM}\n\nEvery line that begins with")
    assert prompt.user == RELATIVE.format(
        instruction="> Capital of France?",
        response_A="> Paris.",
        response_B="> Rome.",
        rubric="[Is the answer correct?]",
    )
    assert hashlib.sha256(RELATIVE.encode()).hexdigest().startswith("397f5f7496f2d420")


def test_every_judge_is_told_what_evidence_is_for_only_where_there_is_some(profile: Profile, rubric: Rubric) -> None:
    assert "does not support" in told(profile.absolute(GROUNDED, rubric))
    assert "does not support" not in told(profile.absolute(CASE, rubric))


def test_every_judge_gets_question_answer_and_rubric(profile: Profile, rubric: Rubric) -> None:
    user = profile.absolute(CASE, rubric).user

    assert "\n> Capital of France?\n" in user
    assert "\n> Paris.\n" in user
    assert rubric.text() in user
    assert "quoted material" in told(profile.absolute(CASE, rubric))


@pytest.mark.parametrize("text", ["{query} {0} %s \\1", "}}{{"])
def test_braces_and_escapes_in_judged_text_are_only_text(text: str, profile: Profile, rubric: Rubric) -> None:
    assert f"> {text}\n" in profile.absolute(Case("Why?", text), rubric).user
