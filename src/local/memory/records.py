"""The conversion between the bus and the store: the stored part of an answer, and replies in pieces that fit into a
frame.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TypeVar

from local.bus.envelope import Envelope, session_of
from local.bus.message import Data
from local.bus.messages import RecallScore, ResponseGeneration, ToolCallRecord
from local.bus.vocabulary import USER
from local.critic.messages import UserFeedback
from local.memory.facts import is_of_health
from local.memory.messages import OWNER, RECALLED, ChangeRecord, EngramRecord, FactRecord, OutdatedFact, RecalledEngram
from local.memory.record import Deletion, NoteDraft
from local.memory.search import EngramHit
from local.memory.store import USERS_RESPONDENT, AnswerRating, Change, Engram, EngramDraft, Origin, StatedFact
from local.reflection.messages import DREAM, DreamMade

# Larger content would be stored outside the frame, in a separate file, where a deletion would not find it at once.
PAGE_BYTES = 48_000
SHORT, WHOLE = 3_500, 60_000  # bytes of question and answer together: of an engram among others, and of one alone
_CUT = " … (cut)"
WRITING = ("memory_write", "memory_edit")  # the tools whose calls are notes
R = TypeVar("R", bound=Data)


def exchange_of(response: ResponseGeneration, envelope: Envelope, now: float) -> EngramDraft | None:
    """Return the exchange to store of a turn; None if it has no answer, is incognito, or belongs to a client that keeps
    its own history and has not asked for it.

    It is the user's words and the answer, without results of tools. So recalled content is stored a second time only as
    far as the answer repeats it, and such an engram names its sources: their origin is its own, and their outdated
    statements are marked in it, too. Searches fold engrams with equal content.
    """
    if not response.is_memorable:
        return None
    return EngramDraft(
        query_id=response.query_id,
        session_id=session_of(envelope, response.query_id),
        user_id=envelope.user_id or OWNER,
        query=response.query,
        answer=response.answer,
        asked_at=now if envelope.sent_at is None else envelope.sent_at,
        origin=_origin(each for each in response.tool_calls if each.tool not in WRITING),
        respondent_id=response.respondent_id,
        recalled=tuple(dict.fromkeys(_recalled(response.tool_calls))),
        tainted=response.brings_taint,
        by_user=response.origin == USER and response.own_words,
    )


def notes_of(response: ResponseGeneration, envelope: Envelope, now: float) -> list[NoteDraft]:
    """Return the notes that the users' respondent has written in a turn, however that ended; none of an incognito one,
    or of a client that keeps the history and has not asked for it.
    """
    may_stay = not response.incognito and (response.in_history or response.remember)
    if not may_stay or response.respondent_id != USERS_RESPONDENT:
        return []
    whole = tuple(dict.fromkeys(_recalled(response.tool_calls)))
    return [
        NoteDraft(
            call_id=call.call_id,
            query_id=response.query_id,
            session_id=session_of(envelope, response.query_id),
            user_id=envelope.user_id or OWNER,
            text=str(call.args.get("text") or ""),
            written_at=now if envelope.sent_at is None else envelope.sent_at,
            category=str(call.args.get("category") or ""),
            replaces=str(call.args.get("note") or ""),
            origin=_origin(each for each in response.tool_calls if each.tool not in WRITING),
            recalled=whole,
            tainted=response.brings_taint,
        )
        for call in response.tool_calls
        if call.tool in WRITING and call.error is None and call.result is not None
    ]


def dreamt_notes(made: DreamMade, envelope: Envelope) -> list[NoteDraft]:
    """Return the notes of a dream; each is based on its sources as an answer is on recalled engrams."""
    return [
        NoteDraft(
            call_id=f"{made.dream_id}:{number}",
            query_id=made.dream_id,
            session_id=made.dream_id,
            user_id=envelope.user_id or OWNER,
            text=note.text,
            written_at=made.until,
            category=DREAM,
            recalled=note.sources,
        )
        for number, note in enumerate(made.notes)
    ]


def answer_rating(feedback: UserFeedback, envelope: Envelope) -> AnswerRating:
    """Return a user's rating of an answer."""
    session_id = session_of(envelope, feedback.query_id)
    return AnswerRating(feedback.query_id, feedback.respondent_id, session_id, feedback.rating, feedback.rated_at)


def engram_record(engram: Engram, limit: int = WHOLE) -> EngramRecord:
    """An engram, its question and answer cut to so many bytes together, as JSON counts them."""
    return EngramRecord.model_validate(_fields(engram, limit))


def recalled(hit: EngramHit) -> RecalledEngram:
    """Return a search hit, with the available parts of its relevance."""
    return RecalledEngram(
        **_fields(hit.engram, SHORT),
        relevance=hit.score,
        similarity=hit.cosine,
        parts=hit.parts,
        folded=hit.folded,
        successor_of=hit.successor_of,
        outdated=tuple(OutdatedFact(**asdict(old)) for old in hit.outdated),
    )


def scores(hits: Iterable[EngramHit]) -> tuple[RecallScore, ...]:
    """Return the scores of the hits, without their texts."""
    return tuple(
        RecallScore(
            engram_id=hit.engram.engram_id,
            relevance=hit.score,
            similarity=hit.cosine,
            parts=hit.parts,
            asked_at=hit.engram.asked_at,
            outdated=bool(hit.engram.superseded_by or hit.outdated),
        )
        for hit in hits
    )


def deleted(deletion: Deletion) -> EngramRecord:
    """Return the remaining data of a deleted engram."""
    return EngramRecord(
        engram_id=deletion.engram_id,
        query_id=deletion.query_id,
        respondent_id=deletion.respondent_id,
        session_id="",
        query="",
        answer="",
        origin="",
        asked_at=0.0,
    )


def fact_records(facts: Iterable[StatedFact]) -> tuple[FactRecord, ...]:
    """Facts, as others know them."""
    return tuple(
        FactRecord(
            slot=fact.slot,
            value=fact.value,
            stated_at=fact.stated_at,
            engram_id=fact.engram_id,
            superseded_at=fact.superseded_at,
            certain=fact.certain,
            added=fact.added,
            confirmed=fact.confirmed,
            questioned=fact.questioned,
            fact_id=fact.fact_id,
            holds_from=fact.holds_from,
            holds_until=fact.holds_until,
            of_health=is_of_health(fact.slot, fact.value),
        )
        for fact in facts
    )


def change_records(changes: Iterable[Change]) -> tuple[ChangeRecord, ...]:
    """Return the changes of an engram."""
    return tuple(ChangeRecord(**asdict(change)) for change in changes)


def page(records: Sequence[R]) -> tuple[R, ...]:
    """The first of them, as many as travel within a frame, at least one if there is any."""
    fitting, room = list[R](), PAGE_BYTES
    for record in records:
        room -= len(record.model_dump_json().encode())
        if room < 0 and fitting:
            break
        fitting.append(record)
    return tuple(fitting)


def cursor_of(engram: EngramRecord) -> str:
    """The place of an engram in a list, which is by time and id."""
    return f"{engram.asked_at!r},{engram.engram_id}"


def place_of(cursor: str) -> tuple[float, str]:
    """Return the time and the id in a cursor. Raises `ValueError` for an invalid one."""
    asked_at, _, engram_id = cursor.partition(",")
    try:
        return float(asked_at), engram_id
    except ValueError:
        raise ValueError(f"{cursor[:80]!r} is no cursor; take that of the page before") from None


def _fields(engram: Engram, room: int) -> dict[str, object]:
    query = _cut(engram.query, max(room // 2, room - _size(engram.answer)))
    answer = _cut(engram.answer, room - _size(query))
    cut = (query, answer) != (engram.query, engram.answer)
    return {**asdict(engram), "query": query, "answer": answer, "cut": cut}


def _cut(text: str, room: int) -> str:
    if _size(text) <= room:
        return text
    room -= _size(_CUT)
    return text[: bisect_right(range(1, len(text) + 1), room, key=lambda length: _size(text[:length]))] + _CUT


def _size(text: str) -> int:
    """Bytes between the quotation marks of its JSON: a line break has two there, a control character six."""
    return len(json.dumps(text, ensure_ascii=False).encode(errors="replace")) - 2


def _origin(calls: Iterable[ToolCallRecord]) -> Origin:
    used = [call for call in calls if call.result is not None and not _only_recalls(call)]
    if any(source.startswith(("http:", "https:")) for call in used for source in call.sources):
        return Origin.WEB
    return Origin.TOOL if used else Origin.ASSISTANT


def _only_recalls(call: ToolCallRecord) -> bool:
    return call.tool == "search_memory" and all(source.startswith(RECALLED) for source in call.sources)


def _recalled(calls: Iterable[ToolCallRecord]) -> Iterable[str]:
    return (source.removeprefix(RECALLED) for call in calls for source in call.sources if source.startswith(RECALLED))
