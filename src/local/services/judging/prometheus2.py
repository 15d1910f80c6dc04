"""Prometheus 2 (Kim et al. 2024): sections under `###`, then a dangling `###Feedback:`; it replies `… [RESULT] n`.

The headings, their order and the form of the reply are those that the model was trained on.
"""

from __future__ import annotations

import re

from local.services.judging import marked
from local.services.judging.neutral import quoted
from local.services.judging.prompt import Case, JudgePrompt, Pair, Reading, context, rules
from local.services.judging.rubric import Rubric

_MARK = re.compile(r"\[\s*RESULT\s*\]", re.IGNORECASE)
_NEXT_TASK = re.compile(
    r"^[^\S\n]*###[^\S\n]*(?:Task Description|The instruction to evaluate|Instruction:)", re.IGNORECASE | re.M
)

_SYSTEM = "You are a fair judge. You give clear and objective feedback by the criteria you are given and by no others."
_ABSOLUTE = (
    "Given are an instruction, a response to evaluate and a score rubric that states the criteria.",
    "Write detailed feedback on the quality of the response, strictly by the score rubric and not in general.",
    "After the feedback write a score: an integer between 1 and 5, chosen by the score rubric.",
    'The output looks like this: "Feedback: (feedback by the criteria) [RESULT] (an integer between 1 and 5)"',
)
_RELATIVE = (
    "Given are an instruction, two responses to evaluate and a score rubric that states the criteria.",
    "Write detailed feedback that compares the two, strictly by the score rubric and not in general. Neither their"
    " order nor their length speaks for a response.",
    "After the feedback name the better one of Response A and Response B, chosen by the score rubric.",
    'The output looks like this: "Feedback: (feedback by the criteria) [RESULT] (A or B)"',
)


def absolute(case: Case, rubric: Rubric) -> JudgePrompt:
    """Ask for a score of one answer."""
    return _prompt(
        ("Task Description", _task(_ABSOLUTE, rules(case.evidence))),
        ("The instruction to evaluate", quoted(case.query)),
        *context(case.evidence),
        ("Response to evaluate", quoted(case.answer)),
        ("Score Rubrics", rubric.text()),
    )


def relative(pair: Pair, rubric: Rubric) -> JudgePrompt:
    """Ask which of two answers is better."""
    return _prompt(
        ("Task Description", _task(_RELATIVE, rules(pair.evidence))),
        ("Instruction", quoted(pair.query)),
        *context(pair.evidence),
        ("Response A", quoted(pair.answer_a)),
        ("Response B", quoted(pair.answer_b)),
        ("Score Rubric", rubric.text()),
    )


def read_score(generated: str) -> Reading[int] | None:
    """The score behind the last `[RESULT]`."""
    return marked.read_score(_own_reply(generated), _MARK)


def read_winner(generated: str) -> Reading[str] | None:
    """The response named behind the last `[RESULT]`."""
    return marked.read_winner(_own_reply(generated), _MARK)


def _own_reply(generated: str) -> str:
    """The text before the next task that a model which does not stop makes up and grades."""
    return _NEXT_TASK.split(generated, maxsplit=1)[0]


def _prompt(*sections: tuple[str, str]) -> JudgePrompt:
    return JudgePrompt(_SYSTEM, "".join(f"###{heading}:\n{text}\n\n" for heading, text in sections) + "###Feedback: ")


def _task(task: tuple[str, ...], of_material: tuple[str, ...]) -> str:
    given, *steps = task
    numbered = enumerate([*steps, "Write no other opening, closing or explanation.", *of_material], 1)
    return "\n".join([given, *(f"{number}. {step}" for number, step in numbered)])
