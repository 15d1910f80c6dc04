"""Selene 1 Mini (Atla, 2025): the data between fences; it replies `**Reasoning:** … **Result:** n`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from local.services.judging.marked_reply import SCORE, WINNER, marked, score
from local.services.judging.neutral import quoted
from local.services.judging.prompt import Case, JudgePrompt, Pair, Reading, context, rules
from local.services.judging.rubric import Rubric

_SELENE_MARK = re.compile(r"\*\*\s*Result\s*(?::\s*\*\*|\*\*\s*:)", re.IGNORECASE)
_SELENE_SYSTEM = "You are an evaluator who goes strictly by the scoring rubric that you are given."
_SELENE_ABSOLUTE = (
    "Evaluate a response to an instruction by a scoring rubric: comprehensive feedback first, then a score."
)
_SELENE_RELATIVE = (
    "Compare two responses to one instruction by a scoring rubric: comprehensive feedback first, then the better one."
    " Neither their order nor their length speaks for a response."
)


class Selene:
    """Fenced data; the reply ends with `**Result:**` and the verdict."""

    def absolute(self, case: Case, rubric: Rubric) -> JudgePrompt:
        """See `Profile`."""
        data = (("Instruction", quoted(case.query)), *context(case.evidence), ("Response", quoted(case.answer)))
        return _fenced((_SELENE_ABSOLUTE, *rules(case.evidence)), "an integer between 1 and 5", data, rubric)

    def relative(self, pair: Pair, rubric: Rubric) -> JudgePrompt:
        """See `Profile`."""
        answers = (("Response A", quoted(pair.answer_a)), ("Response B", quoted(pair.answer_b)))
        data = (("Instruction", quoted(pair.query)), *context(pair.evidence), *answers)
        return _fenced((_SELENE_RELATIVE, *rules(pair.evidence)), "A or B", data, rubric)

    def read_score(self, generated: str) -> Reading[int] | None:
        """The score behind the last `**Result:**`."""
        return score(marked(generated, _SELENE_MARK, SCORE))

    def read_winner(self, generated: str) -> Reading[str] | None:
        """The response named behind the last `**Result:**`."""
        return marked(generated, _SELENE_MARK, WINNER)


def _fenced(task: Sequence[str], result: str, data: Sequence[tuple[str, str]], rubric: Rubric) -> JudgePrompt:
    parts = [
        " ".join(task),
        f"Reply in exactly this form:\n**Reasoning:** <your feedback>\n\n**Result:** <{result}>",
        "Here is the data:",
        *(f"{heading}:\n```\n{text}\n```" for heading, text in data),
        f"Score Rubrics:\n{rubric.text()}",
    ]
    return JudgePrompt(_SELENE_SYSTEM, "\n\n".join(parts))
