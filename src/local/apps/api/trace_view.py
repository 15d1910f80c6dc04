"""How a query went, as JSON: its messages, the spans of its time, and what each respondent made of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from local.protocol.delivery_classes import delivery_of
from local.protocol.message import Delivery
from local.queries.query_events import LogLine
from local.queries.query_trace import QueryTrace
from local.queries.query_view import QueryView
from local.queries.recorded_query import RecordedMessage

Json = dict[str, Any]
_OF_EVENTS = ("events", "event_log")


def trace_view(recorded: Sequence[RecordedMessage], trace: QueryTrace, log: Sequence[LogLine]) -> Json:
    """`log` are the subjects that were heard live, if any were: of what is not on record they are all there is."""
    envelopes = [message.as_json() for message in recorded]
    if log and trace.asked_at is not None:
        envelopes = sorted([*envelopes, *_unrecorded(log, trace)], key=lambda each: float(str(each["sent_at"])))
    return {
        "query_id": trace.query_id,
        "complete": trace.is_complete and trace.has_ended and trace.asked_at is not None,
        "envelopes": envelopes,
        "spans": [span._asdict() for span in trace.spans()],
        "attempts": [attempt._asdict() for attempt in trace.attempts()],
        "critical_path": trace.critical_path(),
        "self_time": trace.self_time(),
    }


def respondent_view(view: QueryView) -> Json:
    """What one respondent makes of a query."""
    shown = {name: value for name, value in view.as_json().items() if name not in _OF_EVENTS}
    return {"respondent_id": view.respondent_id, **shown}


def _unrecorded(log: Sequence[LogLine], trace: QueryTrace) -> Iterator[Json]:
    """Equal ones in a row are one line, which says how many they were."""
    for line in log:
        if delivery_of(line.subject) is Delivery.EPHEMERAL:
            at = (trace.asked_at or 0.0) + line.t
            yield {
                "id": None, "subject": line.subject, "sent_at": at, "correlation_id": trace.query_id, "seq": None,
                "recorded": False, "redacted": False, "count": line.count, "summary": None,
            }  # fmt: skip
