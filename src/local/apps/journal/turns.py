"""Conversations put together again from the messages on record. Plain code."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from local.apps.journal.journal_record import JournalRecord
from local.bus.blobs import BlobStore
from local.protocol.subjects import QUERY_FAILED, QUERY_RECEIVED, RESPONSE_GENERATION, TOOL_REQUEST, TOOL_RESULT

REMOVED = "(removed)"  # stands for what was redacted


@dataclass(slots=True)
class Call:
    """A tool call; without an outcome on record `outcome` is empty."""

    tool: str
    args: dict[str, Any] | None = None
    outcome: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a turn ended for one respondent: answered, cancelled or failed. Without an answer, `answer` is the reason."""

    respondent_id: str
    status: str
    answer: str
    thinking: str = ""


@dataclass(slots=True)
class Turn:
    """All that one query caused. `asked_at` is in seconds since 1970."""

    query_id: str
    asked_at: float
    query: str = REMOVED
    calls: dict[str, Call] = field(default_factory=dict)  # by call_id
    outcomes: list[Outcome] = field(default_factory=list)


def rebuild(records: Iterable[JournalRecord], blobs: BlobStore | None) -> list[Turn]:
    """The turns that messages tell of, in the order of their first one."""
    turns: dict[str, Turn] = {}
    for record in records:
        content = record.content(blobs)
        said = content if isinstance(content, dict) else {}
        query_id, subject = record.envelope.correlation_id, record.envelope.subject
        if subject in (QUERY_RECEIVED, QUERY_FAILED, RESPONSE_GENERATION):
            turn = turns.setdefault(query_id, Turn(query_id, record.committed_at))
            if subject == QUERY_RECEIVED:
                turn.query = str(said.get("query", REMOVED))
            else:
                turn.outcomes.append(_outcome(said))
        elif subject.startswith((TOOL_REQUEST, TOOL_RESULT)):
            turn = turns.setdefault(query_id, Turn(query_id, record.committed_at))
            _tell_of_call(turn.calls, record, said)
    return list(turns.values())


def _outcome(said: dict[str, Any]) -> Outcome:
    if not said:
        return Outcome("A", REMOVED, REMOVED)
    respondent, status = str(said.get("respondent_id", "A")), str(said.get("status", "failed"))
    return Outcome(respondent, status, said.get("answer") or _error(said), said.get("thinking", ""))


def _tell_of_call(calls: dict[str, Call], record: JournalRecord, said: dict[str, Any]) -> None:
    """The call_id is gone with the payload; the headers say then what answers what."""
    envelope = record.envelope
    key = str(said.get("call_id") or envelope.in_reply_to or envelope.id)
    call = calls.setdefault(key, Call(envelope.subject.removeprefix(TOOL_REQUEST).removeprefix(TOOL_RESULT)))
    if envelope.subject.startswith(TOOL_REQUEST):
        call.args = said.get("args")
    else:
        call.outcome = str(said.get("result") or _error(said)) if said else REMOVED


def _error(said: dict[str, Any]) -> str:
    error = said.get("error") or {}
    return f"{error['kind']}: {error['message']}" if {"kind", "message"} <= error.keys() else ""
