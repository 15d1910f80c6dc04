"""Grades answers by counting words, and says so: for the prompts of `services/judging`, in the form that each asks for.

Judged text is known by its margin: only lines that begin with ">" are read, under the last heading without one.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from local.models.stand_in.tool_choice import words

Json = dict[str, Any]

_HEADING = re.compile(
    r"^(?:###|## )?(?:the )?(?P<name>instruction|question|response|answer|retrieved context|input)(?: to evaluate)?"
    r"(?: (?P<side>[AB]))?:?$",
    re.I,
)
_NOTHING = "(nothing)"  # how a judge's prompt quotes an empty text
_GIVES_UP = re.compile(r"\b(?:cannot answer|do not know|don't know|could not help|am unable|have not answered)\b", re.I)
_LONG = 200  # words
_SAYS_WHO = "A rule of the stand-in that counts words has judged this, not a language model"


@dataclass(frozen=True, slots=True)
class _Points:
    """What speaks for an answer, best if all of it is true."""

    says_something: bool
    takes_up_the_question: bool
    does_not_give_up: bool
    is_supported: bool

    @property
    def score(self) -> int:
        if not self.says_something:
            return 1
        return 2 + self.takes_up_the_question + self.does_not_give_up + self.is_supported


def judge(prompt: str, wanted: Json | str | None) -> str:
    """The reply to a judge's prompt; `wanted` is the schema of the reply, None for text."""
    said = _sections(prompt)
    verdict: int | str
    if "answer a" in said:
        key, (feedback, verdict) = "winner", _compare(said)
    else:
        key, (feedback, verdict) = "score", _grade(said)
    if wanted is not None:
        return json.dumps({"feedback": feedback, key: verdict}, ensure_ascii=False)
    if "**Result:**" in prompt:
        return f"**Reasoning:** {feedback}\n\n**Result:** {verdict}"
    return f"{feedback} [RESULT] {verdict}"


def _grade(said: Mapping[str, str]) -> tuple[str, int]:
    points = _points(said, said["answer"])
    return f"{_SAYS_WHO}: {_worded(points, bool(said['evidence']))}.", points.score


def _compare(said: Mapping[str, str]) -> tuple[str, str]:
    """The same text wins in either order; of two that are as good the shorter one, of equal ones the first."""
    ranks = {side: _rank(said, said[f"answer {side.lower()}"]) for side in "AB"}
    winner = "A" if ranks["A"] <= ranks["B"] else "B"
    scores = {side: -rank[0] for side, rank in ranks.items()}
    return f"{_SAYS_WHO}: A has {scores['A']} and B has {scores['B']} of 5 points, and shorter is better.", winner


def _rank(said: Mapping[str, str], answer: str) -> tuple[int, int, str]:
    return -_points(said, answer).score, len(answer), answer


def _points(said: Mapping[str, str], answer: str) -> _Points:
    asked, used, known = words(said["question"]), words(answer), words(said["evidence"])
    return _Points(
        says_something=bool(answer.strip()),
        takes_up_the_question=2 * len(asked & used) >= len(asked),
        does_not_give_up=not _GIVES_UP.search(answer),
        is_supported=2 * len(used & known) >= len(used) if known else len(answer.split()) <= _LONG,
    )


def _worded(points: _Points, has_evidence: bool) -> str:
    if not points.says_something:
        return "the answer says nothing"
    supported = "uses mostly words of the retrieved context" if has_evidence else f"has at most {_LONG} words"
    parts = {
        "takes up at least half of the question's words": points.takes_up_the_question,
        "does not say that it has no answer": points.does_not_give_up,
        supported: points.is_supported,
    }
    return "; ".join(f"{'yes' if true else 'no'}: the answer {what}" for what, true in parts.items())


def _sections(prompt: str) -> defaultdict[str, str]:
    """Question, answer (or answer a and answer b) and evidence, without their margins; empty where there is none."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    section: list[str] = []
    for line in prompt.splitlines():
        if line.startswith(">"):
            section.append(line[1:].strip())
        elif heading := _HEADING.match(line.strip()):
            section = found[_section(heading)]
        elif line.startswith("#") or line.rstrip().endswith(":"):
            section = []
    texts = {name: "\n".join(lines).strip() for name, lines in found.items()}
    return defaultdict(str, {name: "" if text == _NOTHING else text for name, text in texts.items()})


def _section(heading: re.Match[str]) -> str:
    match heading["name"].lower():
        case "retrieved context" | "input":
            return "evidence"
        case "instruction" | "question":
            return "question"
    return f"answer {heading['side'].lower()}" if heading["side"] else "answer"
