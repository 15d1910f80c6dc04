"""One span of a query's time, and what spans tell together. Decided without I/O or a clock."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Literal, NamedTuple

Kind = Literal["line", "model", "tool", "memory", "critic", "store", "other"]
FIRST_COUNTS: tuple[Kind, ...] = ("model", "tool", "memory", "line", "store", "critic")
WHOLE = "query"  # the id of the span that all others are in


class TraceSpan(NamedTuple):
    """From `started` to `ended`, in seconds since 1970; None while it lasts, or if its end is not known. `attempt` is
    the one at the turn in which it began."""

    id: str
    parent: str | None
    kind: Kind
    name: str
    started: float
    ended: float | None
    attempt: int
    detail: Mapping[str, Any]


def critical_path(spans: Sequence[TraceSpan], end: float) -> list[str]:
    """The ids of the spans that an answer at `end` had to wait for: each is the one that ended last before the next one
    began."""
    left = [span for span in _parts(spans) if span.started < end]
    path: list[str] = []
    at = end
    while fitting := [span for span in left if _end_of(span, end) <= at]:
        latest = max(fitting, key=lambda span: (_end_of(span, end), span.started))
        path.append(latest.id)
        at = latest.started
        left = [span for span in left if span.started < at]
    return path[::-1]


def self_time(spans: Sequence[TraceSpan], start: float, end: float) -> dict[str, float]:
    """Seconds by kind from `start` to the answer at `end`, each moment counted once: first comes the model, then tools;
    in what is `other` nothing of that was done."""
    parts = [span for span in _parts(spans) if span.started < end]
    edges = {start, end, *(span.started for span in parts), *(_end_of(span, end) for span in parts)}
    seconds: dict[str, float] = {}
    for began, ended in pairwise(sorted(edges)):
        kinds = {span.kind for span in parts if span.started <= began and _end_of(span, end) >= ended}
        kind = next((each for each in FIRST_COUNTS if each in kinds), "other")
        seconds[kind] = seconds.get(kind, 0.0) + ended - began
    return {kind: round(value, 6) for kind, value in seconds.items()}


def _parts(spans: Sequence[TraceSpan]) -> list[TraceSpan]:
    """What the main respondent's answer is made of: nothing of another one, which nobody waits for."""
    return [span for span in spans if span.parent == WHOLE and span.kind != "other"]


def _end_of(span: TraceSpan, end: float) -> float:
    return end if span.ended is None else min(span.ended, end)
