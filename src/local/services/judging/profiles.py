"""The kinds of judges that there are, by the names that `critic.yaml` knows: how each is asked and understood.

Prometheus 2 (Kim et al. 2024): sections under `###`, then a dangling `###Feedback:`; it replies `… [RESULT] n`. The
headings, their order and the form of the reply are those that the model was trained on. Selene 1 Mini (Atla, 2025): the
data between fences; it replies `**Reasoning:** … **Result:** n`. For any other model see `generic_json`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal

from local.services.judging.generic_json import GenericJson
from local.services.judging.neutral import quoted
from local.services.judging.prompt import Case, JudgePrompt, Pair, Profile, Reading, context, rules
from local.services.judging.rubric import Rubric

ProfileName = Literal["prometheus2", "selene", "generic-json"]

# Anything else on the line ("4 or 5", "4.5", "3-4", "45", "4/10", "4 is too high") and there is no verdict: whoever
# guesses here gives a score that the judge did not.
_BEFORE = r"[\s:=*_`\"'(\[]*"
_AFTER = r"[^\S\n]*[)\]*_`\"'.!]*[^\S\n]*(?:\n|\Z)"
_SCORE = re.compile(
    rf"{_BEFORE}(?:(?:score|rating|grade){_BEFORE})?(?P<said>[1-5])(?:\.0)?(?:\s?/\s?5| out of 5)?{_AFTER}",
    re.IGNORECASE,
)
_WINNER = re.compile(rf"{_BEFORE}(?:[Rr]esponse\s)?(?P<said>[AB]){_AFTER}")
_LABEL = re.compile(r"\A[\s*#]*(?:feedback|reasoning)\s*:?[\s*]*", re.IGNORECASE)

_PROMETHEUS_MARK = re.compile(r"\[\s*RESULT\s*\]", re.IGNORECASE)
_NEXT_TASK = re.compile(
    r"^[^\S\n]*###[^\S\n]*(?:Task Description|The instruction to evaluate|Instruction:)", re.IGNORECASE | re.M
)
_PROMETHEUS_SYSTEM = (
    "You are a fair judge. You give clear and objective feedback by the criteria you are given and by no others."
)
_PROMETHEUS_ABSOLUTE = (
    "Given are an instruction, a response to evaluate and a score rubric that states the criteria.",
    "Write detailed feedback on the quality of the response, strictly by the score rubric and not in general.",
    "After the feedback write a score: an integer between 1 and 5, chosen by the score rubric.",
    'The output looks like this: "Feedback: (feedback by the criteria) [RESULT] (an integer between 1 and 5)"',
)
_PROMETHEUS_RELATIVE = (
    "Given are an instruction, two responses to evaluate and a score rubric that states the criteria.",
    "Write detailed feedback that compares the two, strictly by the score rubric and not in general. Neither their"
    " order nor their length speaks for a response.",
    "After the feedback name the better one of Response A and Response B, chosen by the score rubric.",
    'The output looks like this: "Feedback: (feedback by the criteria) [RESULT] (A or B)"',
)

_SELENE_MARK = re.compile(r"\*\*\s*Result\s*(?::\s*\*\*|\*\*\s*:)", re.IGNORECASE)
_SELENE_SYSTEM = "You are an evaluator who goes strictly by the scoring rubric that you are given."
_SELENE_ABSOLUTE = (
    "Evaluate a response to an instruction by a scoring rubric: comprehensive feedback first, then a score."
)
_SELENE_RELATIVE = (
    "Compare two responses to one instruction by a scoring rubric: comprehensive feedback first, then the better one."
    " Neither their order nor their length speaks for a response."
)


def _marked(text: str, mark: re.Pattern[str], form: re.Pattern[str]) -> Reading[str] | None:
    """The verdict in a reply of plain text: it stands right behind the last mark, alone to the end of its line."""
    marks = list(mark.finditer(text))
    said = form.match(text, marks[-1].end()) if marks else None
    feedback = _LABEL.sub("", text[: marks[-1].start()]).strip() if marks else ""
    return Reading(said["said"], feedback, said.start("said")) if said else None


def _score(found: Reading[str] | None) -> Reading[int] | None:
    return Reading(int(found.value), found.feedback, found.at) if found else None


class Prometheus2:
    """Headed sections and a dangling `###Feedback:`; the reply ends with `[RESULT]` and the verdict."""

    def absolute(self, case: Case, rubric: Rubric) -> JudgePrompt:
        """See `Profile`."""
        return _sectioned(
            ("Task Description", _numbered(_PROMETHEUS_ABSOLUTE, rules(case.evidence))),
            ("The instruction to evaluate", quoted(case.query)),
            *context(case.evidence),
            ("Response to evaluate", quoted(case.answer)),
            ("Score Rubrics", rubric.text()),
        )

    def relative(self, pair: Pair, rubric: Rubric) -> JudgePrompt:
        """See `Profile`."""
        return _sectioned(
            ("Task Description", _numbered(_PROMETHEUS_RELATIVE, rules(pair.evidence))),
            ("Instruction", quoted(pair.query)),
            *context(pair.evidence),
            ("Response A", quoted(pair.answer_a)),
            ("Response B", quoted(pair.answer_b)),
            ("Score Rubric", rubric.text()),
        )

    def read_score(self, generated: str) -> Reading[int] | None:
        """The score behind the last `[RESULT]`."""
        return _score(_marked(_own_reply(generated), _PROMETHEUS_MARK, _SCORE))

    def read_winner(self, generated: str) -> Reading[str] | None:
        """The response named behind the last `[RESULT]`."""
        return _marked(_own_reply(generated), _PROMETHEUS_MARK, _WINNER)


def _own_reply(generated: str) -> str:
    """The text before the next task that a model which does not stop makes up and grades."""
    return _NEXT_TASK.split(generated, maxsplit=1)[0]


def _sectioned(*sections: tuple[str, str]) -> JudgePrompt:
    text = "".join(f"###{heading}:\n{text}\n\n" for heading, text in sections)
    return JudgePrompt(_PROMETHEUS_SYSTEM, text + "###Feedback: ")


def _numbered(task: tuple[str, ...], of_material: tuple[str, ...]) -> str:
    given, *steps = task
    numbered = enumerate([*steps, "Write no other opening, closing or explanation.", *of_material], 1)
    return "\n".join([given, *(f"{number}. {step}" for number, step in numbered)])


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
        return _score(_marked(generated, _SELENE_MARK, _SCORE))

    def read_winner(self, generated: str) -> Reading[str] | None:
        """The response named behind the last `**Result:**`."""
        return _marked(generated, _SELENE_MARK, _WINNER)


def _fenced(task: Sequence[str], result: str, data: Sequence[tuple[str, str]], rubric: Rubric) -> JudgePrompt:
    parts = [
        " ".join(task),
        f"Reply in exactly this form:\n**Reasoning:** <your feedback>\n\n**Result:** <{result}>",
        "Here is the data:",
        *(f"{heading}:\n```\n{text}\n```" for heading, text in data),
        f"Score Rubrics:\n{rubric.text()}",
    ]
    return JudgePrompt(_SELENE_SYSTEM, "\n\n".join(parts))


PROFILES: Mapping[ProfileName, Profile] = {
    "prometheus2": Prometheus2(),
    "selene": Selene(),
    "generic-json": GenericJson(),
}
