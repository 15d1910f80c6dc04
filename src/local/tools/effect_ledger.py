"""Calls that must not take effect twice: which call a request is, and what its record says. Decisions only."""

from __future__ import annotations

import hashlib
import json

from local.errors import ToolError
from local.protocol.messages import ErrorInfo, ToolRequest, ToolResult
from local.services.effect_store import FORGOTTEN, StoredEffect

NOT_REPEATED = "it may or may not have happened; it is not repeated"
DELETED = ToolError("this call was made before; how it ended was deleted, and it is not repeated", kind="deleted")


def key_of(request: ToolRequest) -> str:
    """The same for every request of one call, whoever repeats it; two respondents count their calls alike."""
    return f"{request.respondent_id} {request.call_id}"


def asked_of(request: ToolRequest) -> str:
    """The same for requests that ask for the same; a digest, so that the record holds no arguments."""
    asked = json.dumps([request.tool, request.args], sort_keys=True)
    return hashlib.sha256(asked.encode()).hexdigest()


def on_record(request: ToolRequest, known: StoredEffect) -> ToolResult:
    """The result of a call that has begun before and is not in hand: as it was recorded, or that nobody knows.

    Raises `ToolError` (conflict) if another call was made under its id.
    """
    if known.asked != asked_of(request):
        text = f"{request.tool}: call {request.call_id} was made with other arguments before; nothing was done"
        raise ToolError(text, kind="conflict")
    if known.outcome:
        return ToolResult.decode(known.outcome.encode())
    error = DELETED if known.outcome == FORGOTTEN else outcome_unknown(f"{request.tool} was interrupted in this call")
    return ToolResult(
        query_id=request.query_id,
        respondent_id=request.respondent_id,
        call_id=request.call_id,
        tool=request.tool,
        error=ErrorInfo(kind=error.kind, message=str(error)),
    )


def outcome_unknown(why: str) -> ToolError:
    """What the model reads of a call that was cut off."""
    return ToolError(f"{why}: {NOT_REPEATED}", kind="outcome_unknown")
