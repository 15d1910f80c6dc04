"""Prometheus 2 (Kim et al. 2024) as it was trained: its published templates without a reference answer, word for word.

The texts are those of `eval/prompts.py` and `docs/prompts.md` in github.com/prometheus-eval/prometheus-eval
(Apache-2.0), slips included. What is ours stands outside of them: judged text is quoted before it goes in, how to take
quotations stands in the system prompt, and what tools returned is the instruction's Input.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from local.services.judging.marked_reply import SCORE, WINNER, marked, score
from local.services.judging.neutral import quoted
from local.services.judging.prompt import Case, Evidence, JudgePrompt, Pair, Reading, returned, rules
from local.services.judging.rubric import Rubric

ABSOLUTE_SYSTEM = (
    "You are a fair judge assistant tasked with providing clear, objective feedback based on specific criteria,"
    " ensuring each assessment reflects the absolute standards set for performance."
)
RELATIVE_SYSTEM = (
    "You are a fair judge assistant assigned to deliver insightful feedback that compares individual performances,"
    " highlighting how each stands relative to others within the same cohort."
)
ABSOLUTE = (
    "###Task Description:\n"
    "An instruction (might include an Input inside it), a response to evaluate, and a score rubric representing a"
    " evaluation criteria are given.\n"
    "1. Write a detailed feedback that assess the quality of the response strictly based on the given score rubric,"
    " not evaluating in general.\n"
    "2. After writing a feedback, write a score that is an integer between 1 and 5. You should refer to the score"
    " rubric.\n"
    '3. The output format should look as follows: "Feedback: (write a feedback for criteria) [RESULT] (an integer'
    ' number between 1 and 5)"\n'
    "4. Please do not generate any other opening, closing, and explanations.\n\n"
    "###The instruction to evaluate:\n{instruction}\n\n"
    "###Response to evaluate:\n{response}\n\n"
    "###Score Rubrics:\n{rubric}\n\n"
    "###Feedback: "
)
RELATIVE = (
    "###Task Description:\n"
    "An instruction (might include an Input inside it), a response to evaluate, and a score rubric representing a"
    " evaluation criteria are given.\n"
    "1. Write a detailed feedback that assess the quality of two responses strictly based on the given score rubric,"
    " not evaluating in general.\n"
    "2. After writing a feedback, choose a better response between Response A and Response B. You should refer to the"
    " score rubric.\n"
    '3. The output format should look as follows: "Feedback: (write a feedback for criteria) [RESULT] (A or B)"\n'
    "4. Please do not generate any other opening, closing, and explanations.\n\n"
    "###Instruction:\n{instruction}\n\n"
    "###Response A:\n{response_A}\n\n"
    "###Response B:\n{response_B}\n\n"
    "###Score Rubric:\n{rubric}\n\n"
    "###Feedback: "
)
_MARK = re.compile(r"\[\s*RESULT\s*(?:\\?\]|:|(?=[1-5AB]\s*\]))", re.IGNORECASE)
_NEXT_TASK = re.compile(
    r"^[^\S\n]*###[^\S\n]*(?:Task Description|The instruction to evaluate|Instruction:)", re.IGNORECASE | re.M
)


class Prometheus2:
    """Headed sections and a dangling `###Feedback:`; the reply ends with `[RESULT]` and the verdict."""

    def absolute(self, case: Case, rubric: Rubric) -> JudgePrompt:
        """See `Profile`."""
        instruction = _with_input(case.query, case.evidence)
        user = ABSOLUTE.format(instruction=instruction, response=quoted(case.answer), rubric=rubric.text())
        return JudgePrompt(_system(ABSOLUTE_SYSTEM, case.evidence), user)

    def relative(self, pair: Pair, rubric: Rubric) -> JudgePrompt:
        """See `Profile`. Of a rubric the criteria alone are for comparisons."""
        user = RELATIVE.format(
            instruction=_with_input(pair.query, pair.evidence),
            response_A=quoted(pair.answer_a),
            response_B=quoted(pair.answer_b),
            rubric=f"[{rubric.criteria}]",
        )
        return JudgePrompt(_system(RELATIVE_SYSTEM, pair.evidence), user)

    def read_score(self, generated: str) -> Reading[int] | None:
        """The score behind `[RESULT]`."""
        return score(marked(_own_reply(generated), _MARK, SCORE))

    def read_winner(self, generated: str) -> Reading[str] | None:
        """The response named behind `[RESULT]`."""
        return marked(_own_reply(generated), _MARK, WINNER)


def _with_input(query: str, evidence: Sequence[Evidence]) -> str:
    return f"{quoted(query)}\n\nInput:\n{returned(evidence)}" if evidence else quoted(query)


def _system(published: str, evidence: Sequence[Evidence]) -> str:
    return "\n\n".join([published, *rules(evidence)])


def _own_reply(generated: str) -> str:
    """The text before the next task that a model which does not stop makes up and grades."""
    return _NEXT_TASK.split(generated, maxsplit=1)[0]
