"""Who did what, with whose leave: one message on record as a line of the audit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from local.protocol.envelope import Envelope

# Subjects, exact or a family, and what each is called there.
KINDS: Final[Mapping[str, str]] = {
    "query.received": "query",
    "tool.request.": "call",
    "approval.decision": "approval",
    "effect.undone": "undo",
    "cron.job.changed": "job",
    "cron.run": "run",
    "goal.changed": "goal",
    "session.deleted": "deletion",
    "memory.deleted": "deletion",
}
SHOWN = 300  # characters of a text


def subjects_of(kinds: frozenset[str]) -> tuple[str, ...]:
    """The subjects on which activity of these kinds stands; of all kinds without any."""
    return tuple(subject for subject, kind in KINDS.items() if not kinds or kind in kinds)


def activity_of(envelope: Envelope, payload: Mapping[str, Any] | None, at: float) -> dict[str, Any]:
    """The line; `payload` is None where it was removed. `by` is who: for a call that had leave the call's decision has
    it, under the same call_id."""
    kind = next(kind for subject, kind in KINDS.items() if envelope.subject.startswith(subject))
    line = {
        "at": at, "kind": kind, "user_id": envelope.user_id, "session_id": envelope.session_id,
        "query_id": envelope.correlation_id, "by": envelope.sender,
    }  # fmt: skip
    return {**line, **(_TELLING[kind](payload) if payload is not None else {"removed": True})}


def _query(payload: Mapping[str, Any]) -> dict[str, Any]:
    return {"what": _cut(payload.get("query")), "origin": payload.get("origin", "user")}


def _call(payload: Mapping[str, Any]) -> dict[str, Any]:
    has_leave = payload.get("grant") is not None
    told = {"call_id": payload.get("call_id"), "what": payload.get("tool"), "args": _short(payload.get("args") or {})}
    return {**told, "leave": has_leave, "tainted": bool(payload.get("tainted"))}


def _approval(payload: Mapping[str, Any]) -> dict[str, Any]:
    told = {"call_id": payload.get("call_id"), "what": payload.get("tool")}
    return {**told, "decision": payload.get("decision"), "by": payload.get("by")}


def _undo(payload: Mapping[str, Any]) -> dict[str, Any]:
    return {"what": payload.get("paths"), "call_ids": payload.get("call_ids")}


def _job(payload: Mapping[str, Any]) -> dict[str, Any]:
    job = payload.get("job") or {}
    told = {"what": job.get("name"), "job_id": job.get("job_id"), "state": payload.get("what")}
    return {**told, "schedule": job.get("schedule"), "mode": job.get("mode"), "made_by": job.get("created_by")}


def _run(payload: Mapping[str, Any]) -> dict[str, Any]:
    run = payload.get("run") or {}
    return {"what": payload.get("name"), **{name: run.get(name) for name in ("job_id", "run_id", "state", "detail")}}


def _goal(payload: Mapping[str, Any]) -> dict[str, Any]:
    return {"what": _cut(payload.get("text")), **{name: payload.get(name) for name in ("goal_id", "state", "by")}}


def _deletion(payload: Mapping[str, Any]) -> dict[str, Any]:
    return {"what": payload.get("deleted_session_id") or payload.get("engram_id")}


def _short(args: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _cut(value) for name, value in args.items()}


def _cut(value: Any) -> Any:
    return f"{value[:SHOWN]} …" if isinstance(value, str) and len(value) > SHOWN else value


_TELLING: Final[Mapping[str, Any]] = {
    "query": _query,
    "call": _call,
    "approval": _approval,
    "undo": _undo,
    "job": _job,
    "run": _run,
    "goal": _goal,
    "deletion": _deletion,
}
