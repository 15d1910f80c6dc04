"""`local2 journal list` and `show`: sessions and queries, as the journal alone tells of them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from pydantic import ValidationError

from local.apps.journal.journal_record import JournalRecord
from local.apps.journal.journal_source import JournalSource
from local.apps.terminal import cut, date_and_time, visible
from local.bus.blobs import BlobStore
from local.journal.store.view import SessionSpan
from local.protocol.message import MAIN_RESPONDENT
from local.protocol.messages import Message, QueryFailed, QueryReceived, ResponseGeneration, ToolRequest, ToolResult
from local.protocol.subjects import QUERY_RECEIVED
from local.queries.query_events import kind_of
from local.queries.query_view import QueryView

REMOVED = "(removed)"  # stands for what was redacted
MAX_OUTCOME = 1000  # characters of a tool's result
SHOWN = (QueryReceived, QueryFailed, ResponseGeneration, ToolRequest, ToolResult)
LEAST_LISTED = 120  # columns, of which the first query has 34

Turn = tuple[float, dict[str, QueryView]]  # when it was asked, in seconds since 1970, and each respondent's view


def list_sessions(source: JournalSource, width: int | None) -> Iterator[str]:
    """A line for each session, cut to `width` unless nothing were left of its query, and one for all."""
    form = "{:<32}  {:>8}  {:<19}  {:<19}  {}"
    width = width and max(width, LEAST_LISTED)
    yield cut(form.format("session", "messages", "first", "last", "first query"), width)
    for span in source.journal.sessions():
        first, last = date_and_time(span.first_at), date_and_time(span.last_at)
        line = form.format(span.session_id, span.messages, first, last, _first_query(source, span))
        yield cut(visible(line), width)
    entries, first_number, last_number, size = source.journal.count()
    numbers = f"numbers {first_number} to {last_number}, " if entries else ""
    yield f"{entries} messages in all, {numbers}{size} bytes"


def list_dead_letters(source: JournalSource) -> Iterator[str]:
    """A whole line for each message that a consumer was given up with, below a heading; none where there is none."""
    form = "{:>8}  {:<19}  {:<16}  {:<24}  {:<32}  {}"
    for index, dead in enumerate(source.journal.dead_letters()):
        if not index:
            yield form.format("number", "time", "consumer", "subject", "query", "why")
        time = date_and_time(dead.committed_at)
        yield visible(form.format(dead.number, time, dead.consumer, dead.subject, dead.query_id, dead.reason))


def show_messages(records: Iterable[JournalRecord]) -> Iterator[str]:
    """A line for each message: number, time, subject, sender."""
    for record in records:
        time, removed = date_and_time(record.committed_at), f"  {REMOVED}" if record.redacted else ""
        yield visible(f"{record.number:>8}  {time}  {record.envelope.subject:<32}  {record.envelope.sender}{removed}")


def show_conversation(source: JournalSource, records: Iterable[JournalRecord]) -> Iterator[str]:
    """What was asked, thought, called and answered."""
    for asked_at, views in turns(records, source.blobs):
        yield from map(visible, _turn(asked_at, views))


def turns(records: Iterable[JournalRecord], blobs: BlobStore | None) -> Collection[Turn]:
    """The turns that messages tell of, in the order of their first one."""
    found: dict[str, Turn] = {}
    for record in records:
        kind, query_id = kind_of(record.envelope.subject), record.envelope.correlation_id
        if kind not in SHOWN:
            continue
        _, views = found.setdefault(query_id, (record.committed_at, {MAIN_RESPONDENT: QueryView(query_id)}))
        message = _read(kind, record.content(blobs))
        respondent_id = getattr(message, "respondent_id", MAIN_RESPONDENT)
        view = views.setdefault(respondent_id, QueryView(query_id, respondent_id=respondent_id))
        view.receive(message, record.envelope)
    return found.values()


def _read(kind: type[Message], content: dict[str, Any] | str | None) -> Message | None:
    """A message on record; what cannot be read is as good as removed."""
    try:
        return kind.model_validate(content)
    except ValidationError:
        return None


def _turn(asked_at: float, views: Mapping[str, QueryView]) -> Iterator[str]:
    asked = views[MAIN_RESPONDENT]
    yield f"{date_and_time(asked_at)}  query {asked.query_id}"
    yield from _indented(REMOVED if asked.query is None else asked.query)
    for view in views.values():
        for call in view.calls:
            yield from _call(call, REMOVED if view.calls.is_removed(call) else _result(call))
    ended = [view for view in views.values() if view.ended or view.is_outcome_removed]
    for view in ended:
        yield from _outcome(view)
    if not ended:
        yield "no outcome on record"
    yield ""


def _call(call: Mapping[str, Any], result: str) -> Iterator[str]:
    args = json.dumps(call["args"], ensure_ascii=False) if "args" in call else REMOVED
    yield f"{call['tool']} {args}"
    cut = f" … ({len(result)} characters)" if len(result) > MAX_OUTCOME else ""
    yield from _indented(result[:MAX_OUTCOME] + cut if result else "no result on record")


def _result(call: Mapping[str, Any]) -> str:
    error = call.get("error")
    return f"{error['kind']}: {error['message']}" if error else call.get("result") or ""


def _outcome(view: QueryView) -> Iterator[str]:
    if view.thinking:
        yield "thinking"
        yield from _indented(view.thinking)
    status = view.status if view.ended else REMOVED
    yield status if view.respondent_id == MAIN_RESPONDENT else f"{status} by {view.respondent_id}"
    yield from _indented((view.answer or _failure(view)) if view.ended else REMOVED)


def _failure(view: QueryView) -> str:
    error = view.failure if view.response is None else view.response.error
    return "" if error is None else f"{error.kind}: {getattr(error, 'message', error)}"


def _indented(text: str) -> Iterator[str]:
    return (f"    {line}" for line in text.splitlines())


def _first_query(source: JournalSource, span: SessionSpan) -> str:
    for stored in source.journal.read(limit=1, session_id=span.session_id, subjects=[QUERY_RECEIVED]):
        content = JournalRecord.of(stored).content(source.blobs)
        return str(content.get("query", "")) if isinstance(content, dict) else REMOVED
    return ""
