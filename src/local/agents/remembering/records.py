"""From what the memory keeps to what it says on the bus, in pieces that travel within a frame."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TypeVar

from local.protocol.memory_messages import ChangeRecord, EngramRecord, FactRecord, OutdatedFact, RecalledEngram
from local.protocol.message import Data
from local.services.engrams.deletion import Deletion
from local.services.engrams.engram import Change, Engram, Fact
from local.services.engrams.ranking import Hit

# What is larger would lie outside the frame, in a file of its own, where no deletion would find it at once.
PAGE_BYTES = 48_000
SHORT, WHOLE = 2_000, 20_000  # bytes of a text among others, and alone
R = TypeVar("R", bound=Data)


def engram_record(engram: Engram, limit: int = WHOLE) -> EngramRecord:
    """An engram, query and answer cut to so many bytes each."""
    return EngramRecord.model_validate(_fields(engram, limit))


def recalled(hit: Hit) -> RecalledEngram:
    """What a search has found, with the parts of its relevance that there are."""
    parts = {
        "fused": hit.fused,
        "lexical_rank": hit.lexical_rank,
        "dense_rank": hit.dense_rank,
        "coverage": hit.coverage,
        "bm25": hit.bm25,
        "cosine": hit.cosine,
        **asdict(hit.factors),
    }
    return RecalledEngram(
        **_fields(hit.engram, SHORT),
        relevance=hit.score,
        similarity=hit.cosine,
        parts={name: round(value, 6) for name, value in parts.items() if value is not None},
        folded=hit.folded,
        successor_of=hit.successor_of,
        outdated=tuple(OutdatedFact(**asdict(old)) for old in hit.outdated),
    )


def deleted(deletion: Deletion) -> EngramRecord:
    """What is still known of an engram that is gone."""
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


def fact_records(facts: Iterable[Fact]) -> tuple[FactRecord, ...]:
    """Facts, as others know them."""
    return tuple(
        FactRecord(
            slot=fact.slot,
            value=fact.value,
            stated_at=fact.stated_at,
            engram_id=fact.engram_id,
            superseded_at=fact.superseded_at,
        )
        for fact in facts
    )


def change_records(changes: Iterable[Change]) -> tuple[ChangeRecord, ...]:
    """What was said about an engram."""
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


def _fields(engram: Engram, limit: int) -> dict[str, object]:
    return {**asdict(engram), "query": _cut(engram.query, limit), "answer": _cut(engram.answer, limit)}


def _cut(text: str, limit: int) -> str:
    data = text.encode(errors="replace")
    return text if len(data) <= limit else data[:limit].decode(errors="ignore") + " … (cut)"
