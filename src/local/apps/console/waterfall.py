"""What the time of one query went into, drawn in text: `local2 trace` and `/why`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from local.apps.terminal import visible

Json = dict[str, Any]
COLUMNS = 28  # of the bars
_ON_PATH, _BESIDE, _GOES_ON = "█", "░", "…"


def waterfall(trace: Json) -> Iterator[str]:
    """A line for each span of what `GET /query/{id}/trace` gives, the earliest first, and what they come to. Bars are
    full where the answer had to wait."""
    spans = trace["spans"]
    if not spans:
        yield "nothing of it is on record any more"
        return
    start = spans[0]["started"]
    end = max([start, *(each["ended"] or each["started"] for each in spans)])
    answered = spans[0]["ended"]
    yield f"query {visible(trace['query_id'])}: {f'{answered - start:.3f} s' if answered else 'not ended'}"
    for attempt in trace["attempts"][1:]:
        why = visible(attempt["reason"] or "")
        yield f"{attempt['started'] - start:8.3f} s  attempt {attempt['attempt']} began: {why}"
    path = set(trace["critical_path"])
    inner = {each["id"] for each in spans if each["parent"] not in (None, spans[0]["id"])}
    for span in spans[1:]:
        yield _line(span, start, end - start, is_on_path=span["id"] in path, is_inner=span["id"] in inner)
    yield " · ".join(f"{kind} {seconds:.3f} s" for kind, seconds in _longest_first(trace["self_time"]))
    if not trace["complete"]:
        yield "some of it is not on record, or still to come"


def _line(span: Json, start: float, whole: float, *, is_on_path: bool, is_inner: bool) -> str:
    began, ended = span["started"] - start, (span["ended"] or start + whole) - start
    took = f"{ended - began:8.3f} s" if span["ended"] else "       … s"
    name = f"{'  ' if is_inner else ''}{span['kind']} {span['name']}"
    bar = _bar(began, ended, whole, is_on_path, span["ended"] is None)
    return visible(f"{began:8.3f} s {took}  {bar}  {name}{_detail(span)}")


def _bar(began: float, ended: float, whole: float, is_on_path: bool, goes_on: bool) -> str:
    if whole <= 0:
        return " " * COLUMNS
    first = min(COLUMNS - 1, int(began / whole * COLUMNS))
    last = min(COLUMNS, max(first + 1, round(ended / whole * COLUMNS)))
    drawn = (_ON_PATH if is_on_path else _BESIDE) * (last - first)
    return (" " * first + (drawn[:-1] + _GOES_ON if goes_on else drawn)).ljust(COLUMNS)


def _detail(span: Json) -> str:
    detail = span["detail"]
    told = []
    if detail.get("first_token"):
        told.append(f"first word after {detail['first_token'] - span['started']:.3f} s")
    if detail.get("prompt_tokens"):
        told.append(f"{detail['prompt_tokens']} → {detail['completion_tokens']} tokens")
    if detail.get("cut_off"):
        told.append("cut off")
    if detail.get("error"):
        told.append(f"failed: {detail['error']['message']}")
    if detail.get("score") is not None:
        told.append(f"score {detail['score']}")
    if span["attempt"] > 1:
        told.append(f"attempt {span['attempt']}")
    return f" ({', '.join(told)})" if told else ""


def _longest_first(seconds: dict[str, float]) -> list[tuple[str, float]]:
    return sorted(seconds.items(), key=lambda item: -item[1])
