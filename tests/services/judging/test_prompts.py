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


def headings(text: str) -> list[str]:
    return [line for line in text.split("\n") if line.startswith("###")]


def test_prometheus_gets_its_sections_in_order_and_a_dangling_feedback(rubric: Rubric) -> None:
    user = PROFILES["prometheus2"].absolute(CASE, rubric).user

    assert headings(user) == [
        "###Task Description:",
        "###The instruction to evaluate:",
        "###Response to evaluate:",
        "###Score Rubrics:",
        "###Feedback: ",
    ]
    assert user.endswith("\n\n###Feedback: ")
    assert "[Is the answer correct?]\nScore 1: All of it is wrong.\nScore 2: " in user


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


def test_prometheus_gets_what_the_tools_returned_as_the_input_of_the_instruction(rubric: Rubric) -> None:
    prompt = PROFILES["prometheus2"].absolute(GROUNDED, rubric)
    tools = "> web_search returned:\n> Paris is\n> the capital.\n>\n> wiki returned:\n> Yes"
    instruction = f"> Capital of France?\n\nInput:\n{tools}"
    assert prompt.user == ABSOLUTE.format(instruction=instruction, response="> Paris.", rubric=rubric.text())


def test_every_judge_is_told_what_evidence_is_for_only_where_there_is_some(profile: Profile, rubric: Rubric) -> None:
    assert "does not support" in told(profile.absolute(GROUNDED, rubric))
    assert "does not support" not in told(profile.absolute(CASE, rubric))


def test_every_judge_gets_question_answer_and_rubric(profile: Profile, rubric: Rubric) -> None:
    user = profile.absolute(CASE, rubric).user

    assert "\n> Capital of France?\n" in user
    assert "\n> Paris.\n" in user
    assert rubric.text() in user
    assert "quoted material" in told(profile.absolute(CASE, rubric))


def test_every_judge_gets_the_two_answers_in_the_order_of_the_pair(profile: Profile, rubric: Rubric) -> None:
    forward, backward = profile.relative(PAIR, rubric).user, profile.relative(PAIR.swapped(), rubric).user

    assert forward.index("> Paris.") < forward.index("> Rome.")
    assert backward.index("> Rome.") < backward.index("> Paris.")
    assert rubric.criteria in forward


def test_only_the_generic_judge_is_held_to_a_schema(rubric: Rubric) -> None:
    schemas = {name: profile.absolute(CASE, rubric).schema for name, profile in PROFILES.items()}

    assert [name for name, schema in schemas.items() if schema is not None] == ["generic-json"]
    assert schemas["generic-json"] == {
        "type": "object",
        "properties": {"feedback": {"type": "string"}, "score": {"type": "integer", "enum": [1, 2, 3, 4, 5]}},
        "required": ["feedback", "score"],
        "additionalProperties": False,
    }


def test_a_prompt_travels_as_a_system_and_a_user_message(profile: Profile, rubric: Rubric) -> None:
    prompt = profile.absolute(CASE, rubric)

    assert prompt.messages() == [
        {"role": "system", "content": prompt.system},
        {"role": "user", "content": prompt.user},
    ]


@pytest.mark.parametrize("text", ["{query} {0} %s \\1", "}}{{"])
def test_braces_and_escapes_in_judged_text_are_only_text(text: str, profile: Profile, rubric: Rubric) -> None:
    assert f"> {text}\n" in profile.absolute(Case("Why?", text), rubric).user
