"""A turn as it stands in the record, with everything that a page shows of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from pydantic_core import to_json

from local.models.chat import Json
from local.protocol.messages import ResponseGeneration
from local.services.conversation import StoredTurn

PAGE_BYTES = 48_000  # of turns in one answer: more would travel as a file of its own
_OF_ANSWER = ("thinking", "tool_calls", "model", "usage", "degraded", "cut_off", "tainted")


def turn_view(turn: StoredTurn, context: str | None = None) -> Json:
    """The turn as JSON. `attachments` are ids; what only an answer has is empty before there is one. `context` is what
    the model was told from the memory, as JSON."""
    outcome = {} if turn.outcome is None else json.loads(turn.outcome)
    answer = outcome if turn.outcome_subject == ResponseGeneration.subject else {}
    shown = {
        "query_id": turn.query_id,
        "session_id": turn.session_id,
        "copy_of": turn.copy_of,
        "query": turn.query,
        "attachments": json.loads(turn.body).get("attachments", []),
        "status": turn.status,
        "attempt": turn.attempt,
        "answer": turn.answer,
        "error": outcome.get("error"),
        "context": None if context is None else json.loads(context),
        "created_at": turn.created_at,
        "finished_at": turn.finished_at,
    }
    empty: Json = {"thinking": "", "tool_calls": [], "model": "", "usage": None, "degraded": []}
    shown |= {**empty, "cut_off": False, "tainted": False}
    shown |= {name: answer[name] for name in _OF_ANSWER if name in answer}
    for call in shown["tool_calls"]:
        call.pop("made_by", None)  # the main respondent makes its calls itself
    return shown


def fitting_views(turns: Sequence[StoredTurn], contexts: Mapping[str, str]) -> list[Json]:
    """The first of these turns, as many as travel in one message, at least one if there is any."""
    fitting, room = list[Json](), PAGE_BYTES
    for turn in turns:
        view = turn_view(turn, contexts.get(turn.query_id))
        room -= len(to_json(view))
        if room < 0 and fitting:
            break
        fitting.append({**view, "position": turn.position})
    return fitting
