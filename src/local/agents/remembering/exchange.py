"""What of an answer is remembered, and where its content comes from."""

from __future__ import annotations

from collections.abc import Iterable

from local.protocol.envelope import Envelope, session_of
from local.protocol.memory_messages import OWNER, RECALLED
from local.protocol.messages import ResponseGeneration, ToolCallRecord
from local.services.engrams.engram import EngramDraft, Origin


def exchange_of(response: ResponseGeneration, envelope: Envelope, now: float) -> EngramDraft | None:
    """What to remember of a turn; None if it has no answer, is incognito, or belongs to a client that keeps its own
    history.

    That is the user's words and the answer: what tools returned is not kept. So what was recalled is stored a second
    time only as far as the answer repeats it, and such an engram names those that it has it from: their origin is its
    own, and what they say that holds no more is told of it, too. Searches fold those that say the same.
    """
    if response.status != "answered" or response.incognito or not response.in_history:
        return None
    return EngramDraft(
        query_id=response.query_id,
        session_id=session_of(envelope, response.query_id),
        user_id=envelope.user_id or OWNER,
        query=response.query,
        answer=response.answer,
        asked_at=now if envelope.sent_at is None else envelope.sent_at,
        origin=_origin(response.tool_calls),
        respondent_id=response.respondent_id,
        recalled=tuple(dict.fromkeys(_recalled(response.tool_calls))),
    )


def _origin(calls: Iterable[ToolCallRecord]) -> Origin:
    used = [call for call in calls if call.result is not None and not _only_recalls(call)]
    if any(source.startswith(("http:", "https:")) for call in used for source in call.sources):
        return Origin.WEB
    return Origin.TOOL if used else Origin.ASSISTANT


def _only_recalls(call: ToolCallRecord) -> bool:
    return call.tool == "search_memory" and all(source.startswith(RECALLED) for source in call.sources)


def _recalled(calls: Iterable[ToolCallRecord]) -> Iterable[str]:
    return (source.removeprefix(RECALLED) for call in calls for source in call.sources if source.startswith(RECALLED))
