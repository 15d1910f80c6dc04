"""`local2 journal list`: the sessions on record."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from local.apps.journal.record import Record
from local.apps.journal.source import Source
from local.apps.journal.turns import REMOVED
from local.apps.terminal import cut, visible
from local.journal.store.view import SessionSpan
from local.protocol.subjects import QUERY_RECEIVED


def list_sessions(source: Source, width: int | None) -> Iterator[str]:
    """A line for each session, cut to `width`, and one for all."""
    form = "{:<32}  {:>8}  {:<19}  {:<19}  {}"
    yield cut(form.format("session", "messages", "first", "last", "first query"), width)
    for span in source.journal.sessions():
        first, last = date_and_time(span.first_at), date_and_time(span.last_at)
        line = form.format(span.session_id, span.messages, first, last, _first_query(source, span))
        yield cut(visible(line), width)
    entries, first_number, last_number, size = source.journal.count()
    numbers = f"numbers {first_number} to {last_number}, " if entries else ""
    yield f"{entries} messages in all, {numbers}{size} bytes"


def date_and_time(seconds: float) -> str:
    """Seconds since 1970 as local date and time."""
    return datetime.fromtimestamp(seconds).strftime("%Y-%m-%d %H:%M:%S")


def _first_query(source: Source, span: SessionSpan) -> str:
    for stored in source.journal.read(limit=1, session_id=span.session_id, subjects=[QUERY_RECEIVED]):
        content = Record.of(stored).content(source.blobs)
        return str(content.get("query", "")) if isinstance(content, dict) else REMOVED
    return ""
