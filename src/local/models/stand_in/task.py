"""What a chat request is for: talk, or one of the chores that agents give a model in the background."""

from __future__ import annotations

import re
from enum import StrEnum
from typing import Any

Json = dict[str, Any]

_PROMETHEUS = re.compile(r"^###Feedback:\s*\Z", re.M)
_SELENE = re.compile(r"^Reply in exactly this form:\n\*\*Reasoning:\*\*.*\n\n\*\*Result:\*\*", re.M)
_VERDICTS = ({"feedback", "score"}, {"feedback", "winner"})


class Task(StrEnum):
    """The chores are known by the JSON Schema of the reply or, for judges, by the form of the prompt."""

    TALK = "talk"
    CLASSIFICATION = "classification"  # facts and intent are asked for
    JUDGEMENT = "judgement"  # a score of one answer, or the better one of two
    JSON = "json"  # any other reply with a schema


def task_of(wanted: Json | str | None, question: str) -> Task:
    """The task of a request whose `format` is `wanted` and whose last user message is `question`."""
    asked = set(wanted.get("properties") or {}) if isinstance(wanted, dict) else set()
    if asked >= {"facts", "intent"}:
        return Task.CLASSIFICATION
    if any(asked >= verdict for verdict in _VERDICTS) or (wanted is None and _is_judge_prompt(question)):
        return Task.JUDGEMENT
    return Task.TALK if wanted is None else Task.JSON


def _is_judge_prompt(question: str) -> bool:
    return bool(_PROMETHEUS.search(question) or _SELENE.search(question))
