"""Any model that can follow a JSON Schema: it replies `{"feedback": …, "score": n}`, the feedback first."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from local.services.judging.marked_reply import SCORE, WINNER, plain
from local.services.judging.neutral import quoted
from local.services.judging.prompt import Case, JudgePrompt, Pair, Reading, context, rules
from local.services.judging.rubric import Rubric

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
    """Any model that can follow a JSON Schema."""

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
    """What the object of a reply says of a key, None if nothing or different things, and where."""
    reply = plain(generated)
    verdict = _verdict(reply, key)
    *_, at = (None, *(found.start("said") for found in _SAID[key].finditer(reply)))
    return Reading(verdict.get(key), str(verdict.get("feedback", "")).strip(), at)


def _verdict(text: str, key: str) -> Mapping[str, Any]:
    """The last object of a reply; an empty one if another one says something else of the key."""
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
        except (ValueError, RecursionError):  # half an object might hold another one whose score means something else
            return []
        found.append(read)
        start = text.find("{", end)
    return found


def _flat(pairs: Sequence[tuple[str, Any]]) -> Mapping[str, Any]:
    """An object of plain values, each key once; `ValueError` for any other, which leaves open what was meant."""
    found = {name.lower(): value for name, value in pairs}
    if len(found) != len(pairs) or any(isinstance(value, (dict, list)) for value in found.values()):
        raise ValueError("a key that stands twice, or an object within an object")
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
