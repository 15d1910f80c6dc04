"""Selene 1 Mini (Atla, 2025): the data between fences; it replies `**Reasoning:** … **Result:** n`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from local.services.judging import marked
from local.services.judging.neutral import quoted
from local.services.judging.prompt import Case, JudgePrompt, Pair, Reading, context, rules
from local.services.judging.rubric import Rubric

_MARK = re.compile(r"\*\*\s*Result\s*(?::\s*\*\*|\*\*\s*:)", re.IGNORECASE)

_SYSTEM = "You are an evaluator who goes strictly by the scoring rubric that you are given."
_ABSOLUTE = "Evaluate a response to an instruction by a scoring rubric: comprehensive feedback first, then a score."
_RELATIVE = (
    "Compare two responses to one instruction by a scoring rubric: comprehensive feedback first, then the better one."
    " Neither their order nor their length speaks for a response."
)


def absolute(case: Case, rubric: Rubric) -> JudgePrompt:
    """Ask for a score of one answer."""
    data = (("Instruction", quoted(case.query)), *context(case.evidence), ("Response", quoted(case.answer)))
    return _prompt((_ABSOLUTE, *rules(case.evidence)), "an integer between 1 and 5", data, rubric)


def relative(pair: Pair, rubric: Rubric) -> JudgePrompt:
    """Ask which of two answers is better."""
    answers = (("Response A", quoted(pair.answer_a)), ("Response B", quoted(pair.answer_b)))
    data = (("Instruction", quoted(pair.query)), *context(pair.evidence), *answers)
    return _prompt((_RELATIVE, *rules(pair.evidence)), "A or B", data, rubric)


def read_score(generated: str) -> Reading[int] | None:
    """The score behind the last `**Result:**`."""
    return marked.read_score(generated, _MARK)


def read_winner(generated: str) -> Reading[str] | None:
    """The response named behind the last `**Result:**`."""
    return marked.read_winner(generated, _MARK)


def _prompt(task: Sequence[str], result: str, data: Sequence[tuple[str, str]], rubric: Rubric) -> JudgePrompt:
    return JudgePrompt(
        _SYSTEM,
        "\n\n".join(
            [
                " ".join(task),
                f"Reply in exactly this form:\n**Reasoning:** <your feedback>\n\n**Result:** <{result}>",
                "Here is the data:",
                *(f"{heading}:\n```\n{text}\n```" for heading, text in data),
                f"Score Rubrics:\n{rubric.text()}",
            ]
        ),
    )
