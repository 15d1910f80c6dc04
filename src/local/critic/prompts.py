"""The prompts of each kind of judge, and the readers of its replies."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from local.core.text import quoted
from local.critic.judging import Case, Evidence, JudgePrompt, Pair, Reading, Rubric, context, returned, rules

# The verdict in a reply of plain text: the text after the judge's mark, alone to the end of its line.

# With anything else on the line ("4 or 5", "4.5", "3-4", "45", "4/10", "4 is too high") there is no verdict: a guess
# would be a score that the judge has not stated. Only a unit, a word for the score or a reason may follow, as in
# "4 points", "4 (good)" and "4 because …", without another number.
_BEFORE = r"[\s:=*_`\"'(\[]*"
_NO_WIDTH = r"\u00ad\u200b-\u200d\u2060\ufeff"  # invisible characters
_UNSEEN = f"[{_NO_WIDTH}]*"
_AFTER = rf"(?:[^\S\n]|[)\]*_`\"'.!{_NO_WIDTH}])*(?:\n|\Z)"
_POINTS = r"(?:[^\S\n]?points?\b)"
_WORD = r"(?:[^\S\n]*\((?:(?:very|mostly|fairly)[^\S\n])?[^\W\d_]+\))"
_REASON = r"(?:(?:[^\S\n]*[,;:–—-])?[^\S\n]*\(?(?:because|since|as)\b[^\n\d]*)"
_MORE = rf"{_POINTS}?{_WORD}?{_REASON}?"
_SCORE = rf"{_BEFORE}(?:(?:score|rating|grade){_BEFORE})?(?P<said>[1-5])(?:\.0)?(?:\s?/\s?5| out of 5)?{_UNSEEN}"
_WINNER = rf"{_BEFORE}(?:response\s)?(?P<said>[AB]){_UNSEEN}"
SCORE: Final = re.compile(rf"{_SCORE}{_MORE}{_AFTER}", re.IGNORECASE)
WINNER: Final = re.compile(rf"{_WINNER}{_AFTER}", re.IGNORECASE)
_BEGUN: Final = {  # the same, whatever comes behind on the line
    SCORE: re.compile(rf"{_SCORE}(?!\w)", re.IGNORECASE),
    WINNER: re.compile(rf"{_WINNER}(?!\w| or B)", re.IGNORECASE),
}
# A verdict of a judge that does not keep to its form: a line "Score: 4", "Result: 4" or "[SCORE] 4", or a whole reply
# "4 because …", "4 points" or "4 (good)".
_BARE_MARK = re.compile(
    r"\[\s*(?:score|rating|grade)\s*\]|^[^\w\n]*(?:(?:final|overall)[^\S\n]+)?(?:score|rating|grade|result)[^\w\n]*?[:=]",
    re.IGNORECASE | re.MULTILINE,
)
_REASONED = re.compile(
    rf"\A[\s*_]*(?P<said>[1-5])(?:\s?/\s?5)?[*_]*+{_UNSEEN}(?=\W*[^\W\d]){_MORE}[.!*_]*\Z", re.IGNORECASE
)
_OTHER_MARK = re.compile(r"[\[*]\s*result|\{", re.IGNORECASE)
_LABEL = re.compile(r"\A[\s*#]*(?:feedback|reasoning)\s*:?[\s*]*", re.IGNORECASE)
_END_OF_TEXT = re.compile(
    r"</s>|<\|(?:im_end|end_of_text|endoftext|eot_id|eot|end)\|>|<(?:eos|end_of_turn|pad)>|\[/?END\]"
    r"|\[/(?:INST|RESULT|SCORE)\]",
    re.IGNORECASE,
)
_THOUGHT_ENDS = re.compile(r"</think(?:ing)?>|\[/THINK\]|<\|channel\|>final<\|message\|>", re.IGNORECASE)
_THOUGHT_BEGINS = re.compile(r"<think(?:ing)?>|\[THINK\]|<\|channel\|>analysis", re.IGNORECASE)
_FULL_WIDTH = str.maketrans(
    "０１２３４５６７８９ＡＢａｂ．。：／（）［］【】！", "0123456789ABab..:/()[][]!"
)  # one for one


def plain(text: str) -> str:
    """Return the reply without thinking and without text after the end, in full width or not; no position in the text
    moves.
    """
    begin = spoken(text)
    said = _END_OF_TEXT.split(_THOUGHT_BEGINS.split(text[begin:], maxsplit=1)[0], maxsplit=1)[0]
    return " " * begin + said.translate(_FULL_WIDTH)


def spoken(text: str) -> int:
    """Return where a reply begins after its thinking: earlier marks do not count."""
    return max((thought.end() for thought in _THOUGHT_ENDS.finditer(text)), default=0)


def marked(text: str, mark: re.Pattern[str], form: re.Pattern[str]) -> Reading[str] | None:
    """Return the text after the last mark; None if it cannot be read, or another mark contradicts it."""
    reply = plain(text)
    marks = list(mark.finditer(reply))
    said = form.match(reply, marks[-1].end()) if marks else None
    begun = [_BEGUN[form].match(reply, each.end()) for each in marks]
    if said is None or len({each["said"].upper() for each in begun if each}) > 1:
        return None
    return Reading(
        said["said"].upper(), _LABEL.sub("", text[spoken(text) : marks[-1].start()]).strip(), said.start("said")
    )


def bare_score(text: str, shown: str) -> Reading[int] | None:
    """Return the score of a reply without a judge's mark: "Score: 4", "[SCORE] 4" or "4 points", if that is its only
    score. None if the judge's prompt (`shown`) has such a line: the reply may repeat it.
    """
    reply = plain(text)
    if _OTHER_MARK.search(reply):
        return None
    if whole := _REASONED.match(reply.rstrip()):
        return Reading(int(whole["said"]), text[whole.end("said") :].strip(), whole.start("said"))
    if any(_BARE_MARK.search(line.lstrip("> ")) for line in shown.splitlines() if line.startswith(">")):
        return None
    return score(marked(text, _BARE_MARK, SCORE))


def score(found: Reading[str] | None) -> Reading[int] | None:
    """A reading with the score as a number."""
    return Reading(int(found.value), found.feedback, found.at) if found else None


_SYSTEM = "You are an impartial judge. You reply with one JSON object and nothing else."
_ABSOLUTE = (
    "Judge the answer by the rubric alone: first your reasons, then the score whose description fits best.\n"
    'Reply with {"feedback": "your reasons", "score": an integer from 1 to 5}.'
)
_RELATIVE = (
    "Judge by the rubric alone which of two answers is better; neither their order nor their length counts.\n"
    'Reply with {"feedback": "your reasons", "winner": "A" or "B"}.'
)
_SCORES = (1, 2, 3, 4, 5)
_WINNERS = ("A", "B")
_SAID = {
    "score": re.compile(r'"score"\s*:\s*"?(?P<said>[1-5])', re.IGNORECASE),
    "winner": re.compile(r'"winner"\s*:\s*"(?:response\s)?(?P<said>[AB])', re.IGNORECASE),
}
_COMMA_AT_THE_END = re.compile(r",(?=\s*\})")


class GenericJson:
    """A profile for any model that can follow a JSON Schema."""

    def absolute(self, case: Case, rubric: Rubric) -> JudgePrompt:
        """See `Profile`."""
        data = (("Question", quoted(case.query)), *context(case.evidence), ("Answer", quoted(case.answer)))
        schema = _schema("score", {"type": "integer", "enum": list(_SCORES)})
        return _prompt((_ABSOLUTE, *rules(case.evidence)), data, rubric, schema)

    def relative(self, pair: Pair, rubric: Rubric) -> JudgePrompt:
        """See `Profile`."""
        answers = (("Answer A", quoted(pair.answer_a)), ("Answer B", quoted(pair.answer_b)))
        data = (("Question", quoted(pair.query)), *context(pair.evidence), *answers)
        schema = _schema("winner", {"type": "string", "enum": list(_WINNERS)})
        return _prompt((_RELATIVE, *rules(pair.evidence)), data, rubric, schema)

    def read_score(self, generated: str) -> Reading[int] | None:
        """The score in the object of the reply: a whole number from 1 to 5, or a string that is one."""
        said = _said(generated, "score")
        if isinstance(said.value, str):
            form = SCORE.fullmatch(plain(said.value))
            return Reading(int(form["said"]), said.feedback, said.at) if form else None
        meant = [score for score in _SCORES if said.value == score and said.value is not True]
        return Reading(meant[0], said.feedback, said.at) if meant else None

    def read_winner(self, generated: str) -> Reading[str] | None:
        """The winner, `A` or `B`, in the object of the reply."""
        said = _said(generated, "winner")
        form = WINNER.fullmatch(plain(said.value)) if isinstance(said.value, str) else None
        return Reading(form["said"].upper(), said.feedback, said.at) if form else None


def _said(generated: str, key: str) -> Reading[Any]:
    """Return the value of a key in a reply and its position; None if it is missing or contradictory."""
    reply = plain(generated)
    verdict = _verdict(reply, key)
    *_, at = (None, *(found.start("said") for found in _SAID[key].finditer(reply)))
    return Reading(verdict.get(key), str(verdict.get("feedback", "")).strip(), at)


def _verdict(text: str, key: str) -> Mapping[str, Any]:
    """Return the last object of a reply; an empty one if another object contradicts it in the key."""
    objects = _objects(text) or _objects(_COMMA_AT_THE_END.sub(" ", text))
    different = {repr(each[key]) for each in objects if key in each}
    return objects[-1] if objects and len(different) == 1 else {}


def _objects(text: str) -> list[Mapping[str, Any]]:
    """The JSON objects that do not lie within another; none if anything in braces is not JSON."""
    found = list[Mapping[str, Any]]()
    decoder = json.JSONDecoder(object_pairs_hook=_flat, strict=False)
    start = text.find("{")
    while start >= 0:
        try:
            read, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):  # half an object might contain another with a different score
            return []
        found.append(read)
        start = text.find("{", end)
    return found


def _flat(pairs: Sequence[tuple[str, Any]]) -> Mapping[str, Any]:
    """Return an object of plain values, each key once; `ValueError` for any other, whose meaning is unclear."""
    found = {name.lower(): value for name, value in pairs}
    if len(found) != len(pairs) or any(isinstance(value, (dict, list)) for value in found.values()):
        raise ValueError("a repeated key, or an object within an object")
    return found


def _prompt(
    task: Sequence[str], data: Sequence[tuple[str, str]], rubric: Rubric, schema: Mapping[str, Any]
) -> JudgePrompt:
    sections = (f"## {heading}\n{text}" for heading, text in (*data, ("Rubric", rubric.text())))
    return JudgePrompt(_SYSTEM, "\n\n".join(["\n".join(task), *sections]), schema)


def _schema(key: str, value: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "type": "object",
        "properties": {"feedback": {"type": "string"}, key: value},
        "required": ["feedback", key],
        "additionalProperties": False,
    }


# Prometheus 2 (Kim et al. 2024) as it was trained: its published templates without a reference answer, word for
# word.

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
    """The profile of Prometheus 2 (Kim et al. 2024), with its published templates: headed sections and a final
    `###Feedback:`; the reply ends with `[RESULT]` and the verdict.
    """

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


# Selene 1 Mini (Atla, 2025): the data between fences; it replies `**Reasoning:** … **Result:** n`.

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
    """The profile of Selene 1 Mini (Atla, 2025): fenced data; the reply ends with `**Result:**` and the verdict."""

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
