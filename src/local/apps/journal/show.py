"""`local2 journal show`: a session or a query, as the journal alone tells it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

from local.apps.journal.listing import date_and_time
from local.apps.journal.record import Record
from local.apps.journal.source import Source
from local.apps.journal.turns import REMOVED, Call, Outcome, Turn, rebuild
from local.apps.terminal import visible
from local.errors import NotOnRecord

MAX_OUTCOME = 1000  # characters of a tool's result


def find(source: Source, key: str) -> Iterator[Record]:
    """The messages of the session, or of the query, with this id, in order. Raises `NotOnRecord`."""
    if source.journal.read(limit=1, session_id=key):
        found = source.journal.read_all(session_id=key)
    elif source.journal.read(limit=1, correlation_id=key):
        found = source.journal.read_all(correlation_id=key)
    else:
        raise NotOnRecord(f"no session or query {key!a} is on record; `local2 journal list` shows the sessions")
    return map(Record.of, found)


def show_messages(records: Iterable[Record]) -> Iterator[str]:
    """A line for each message: number, time, subject, sender."""
    for record in records:
        time, removed = date_and_time(record.committed_at), f"  {REMOVED}" if record.redacted else ""
        yield visible(f"{record.number:>8}  {time}  {record.envelope.subject:<32}  {record.envelope.sender}{removed}")


def show_conversation(source: Source, records: Iterable[Record]) -> Iterator[str]:
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
