"""`local2 journal list` and `show`: sessions and queries, as the journal alone tells of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from local.apps.journal.journal_record import JournalRecord
from local.apps.journal.journal_source import JournalSource
from local.apps.journal.turns import REMOVED, Call, Outcome, Turn, rebuild
from local.apps.terminal import cut, date_and_time, visible
from local.journal.store.view import SessionSpan
from local.protocol.subjects import QUERY_RECEIVED

MAX_OUTCOME = 1000  # characters of a tool's result


def list_sessions(source: JournalSource, width: int | None) -> Iterator[str]:
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


def show_messages(records: Iterable[JournalRecord]) -> Iterator[str]:
    """A line for each message: number, time, subject, sender."""
    for record in records:
        time, removed = date_and_time(record.committed_at), f"  {REMOVED}" if record.redacted else ""
        yield visible(f"{record.number:>8}  {time}  {record.envelope.subject:<32}  {record.envelope.sender}{removed}")


def show_conversation(source: JournalSource, records: Iterable[JournalRecord]) -> Iterator[str]:
    """What was asked, thought, called and answered."""
    for turn in rebuild(records, source.blobs):
        yield from map(visible, _turn(turn))


def _turn(turn: Turn) -> Iterator[str]:
    yield f"{date_and_time(turn.asked_at)}  query {turn.query_id}"
    yield from _indented(turn.query)
    for call in turn.calls.values():
        yield from _call(call)
    for outcome in turn.outcomes:
        yield from _outcome(outcome)
    if not turn.outcomes:
        yield "no outcome on record"
    yield ""


def _call(call: Call) -> Iterator[str]:
    args = REMOVED if call.args is None else json.dumps(call.args, ensure_ascii=False)
    yield f"{call.tool} {args}"
    cut = f" … ({len(call.outcome)} characters)" if len(call.outcome) > MAX_OUTCOME else ""
    yield from _indented(call.outcome[:MAX_OUTCOME] + cut if call.outcome else "no result on record")


def _outcome(outcome: Outcome) -> Iterator[str]:
    if outcome.thinking:
        yield "thinking"
        yield from _indented(outcome.thinking)
    yield outcome.status if outcome.respondent_id == "A" else f"{outcome.status} by {outcome.respondent_id}"
    yield from _indented(outcome.answer)


def _indented(text: str) -> Iterator[str]:
    return (f"    {line}" for line in text.splitlines())


def _first_query(source: JournalSource, span: SessionSpan) -> str:
    for stored in source.journal.read(limit=1, session_id=span.session_id, subjects=[QUERY_RECEIVED]):
        content = JournalRecord.of(stored).content(source.blobs)
        return str(content.get("query", "")) if isinstance(content, dict) else REMOVED
    return ""
