"""A query's time, drawn in text."""

from __future__ import annotations

from typing import Any

from local.cli.render import COLUMNS, waterfall


def span(span_id: str, started: float, ended: float | None, **fields: Any) -> dict[str, Any]:
    kind, _, _ = span_id.partition("-")
    known = {"id": span_id, "parent": "query", "kind": kind, "name": kind, "attempt": 1, "detail": {}}
    return {**known, "started": 100.0 + started, "ended": None if ended is None else 100.0 + ended, **fields}


def trace(*spans: dict[str, Any], **fields: Any) -> dict[str, Any]:
    known = {"query_id": "q", "complete": True, "critical_path": [], "attempts": [], "self_time": {"model": 1.0}}
    return {**known, "spans": list(spans), **fields}


WHOLE = span("query", 0, 4, parent=None)


def test_each_span_has_a_bar_in_its_place_full_where_the_answer_had_to_wait() -> None:
    tokens = {"first_token": 101.5, "prompt_tokens": 9, "completion_tokens": 2}
    drawn = list(waterfall(trace(
        WHOLE, span("model-1", 1, 2, detail=tokens), span("tool-1", 2, 4, detail={"error": {"message": "la\x1bte"}}),
        critical_path=["model-1"], self_time={"model": 1.0, "tool": 2.0},
    )))  # fmt: skip
    quarter = COLUMNS // 4
    assert drawn == [
        "query q: 4.000 s",
        f"   1.000 s    1.000 s  {' ' * quarter}{'█' * quarter}{' ' * 2 * quarter}  model model"
        " (first word after 0.500 s, 9 → 2 tokens)",
        f"   2.000 s    2.000 s  {' ' * 2 * quarter}{'░' * 2 * quarter}  tool tool (failed: la\\x1bte)",
        "tool 2.000 s · model 1.000 s",
    ]


def test_what_goes_on_and_what_began_again_is_told() -> None:
    attempts = [{"attempt": n, "started": 100.0 + n, "ended": None, "reason": "died"} for n in (1, 2)]
    drawn = list(waterfall(trace(
        {**WHOLE, "ended": None}, span("tool-1", 1, 2), span("model-1", 3, None, attempt=2), attempts=attempts,
        complete=False,
    )))  # fmt: skip
    assert drawn[0] == "query q: not ended"
    assert drawn[1] == "   2.000 s  attempt 2 began: died"
    assert "…" in drawn[3] and drawn[3].endswith("model model (attempt 2)")
    assert drawn[-1] == "some messages are missing, or still to come"


def test_of_nothing_on_record_that_is_told() -> None:
    assert list(waterfall(trace())) == ["no messages of it are in the journal any more"]
