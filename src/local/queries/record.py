"""Queries on record: for whoever missed them on the live bus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from local.bus.bus import Bus
from local.errors import MalformedFrame, RecordUnreadable
from local.journal.client.record import read_on_record
from local.protocol.envelope import Envelope
from local.protocol.message import MAIN_RESPONDENT
from local.protocol.messages import (
    ContextProvided,
    ConversationRequest,
    ConversationResult,
    Message,
    QueryFailed,
    QueryReceived,
    ResponseGeneration,
)
from local.queries.errors import QueryDeleted, QueryRefused
from local.queries.query_events import JUDGEMENTS, Judgement, Judgements, kind_of
from local.queries.query_view import QueryView

Json = dict[str, Any]
Told = list[tuple[Message, Envelope]]

_OUTCOMES: dict[str, type[QueryFailed] | type[ResponseGeneration]] = {
    kind.subject: kind for kind in (QueryFailed, ResponseGeneration)
}
_TOLD = (ContextProvided.subject, *_OUTCOMES)
_JUDGEMENTS = [kind.subject for kind in JUDGEMENTS]


async def read_query(bus: Bus, query_id: str, seconds: float) -> Told:
    """What asked a query, what its model was told of the user unasked, and how respondents ended it, oldest first;
    nothing if it is not on record.

    The journal loses the answers that rest on a deleted memory, and the generator only what they have recalled of it.
    So these are the generator's to tell. Raises `QueryDeleted`, `RequestTimeout` while one of the two is away, and
    `RecordUnreadable`.
    """
    told: Told = []
    removed: Envelope | None = None
    async for envelope, is_redacted in read_on_record(bus, query_id, (QueryReceived.subject, *_TOLD), seconds):
        if not is_redacted:
            told += await _decoded(bus, envelope)
        elif envelope.subject == ContextProvided.subject:
            continue
        elif envelope.subject == QueryReceived.subject:
            raise QueryDeleted(query_id, envelope.user_id)
        else:
            removed = envelope
    if not any(isinstance(message, QueryReceived) for message, _ in told):
        return []
    if removed is not None and not any(map(_is_main_outcome, told)):
        told += await _as_the_generator_has_it(bus, query_id, removed, seconds)
    return told


async def read_judgements(bus: Bus, query_id: str, seconds: float) -> Told:
    """What was said of the answers to a query, oldest first. Raises `RequestTimeout` and `RecordUnreadable`."""
    return [
        each
        async for envelope, is_redacted in read_on_record(bus, query_id, _JUDGEMENTS, seconds)
        if not is_redacted
        for each in await _decoded(bus, envelope)
    ]


async def judgements_of(bus: Bus, query_ids: Sequence[str], seconds: float) -> dict[str, Judgements]:
    """What was said of the answers to at most 100 queries. Raises `RequestTimeout` and `RecordUnreadable`."""
    found = {query_id: Judgements() for query_id in query_ids}
    if not found:
        return found
    async for envelope, is_redacted in read_on_record(bus, list(found), _JUDGEMENTS, seconds):
        for message, _ in () if is_redacted else await _decoded(bus, envelope):
            is_main = getattr(message, "respondent_id", MAIN_RESPONDENT) == MAIN_RESPONDENT
            if isinstance(message, Judgement) and is_main:
                found[envelope.correlation_id].hear(message, envelope.id)
    return found


async def look_up(bus: Bus, verb: str, key: str, seconds: float, **fields: Any) -> Json:
    """The generator's record. Raises `RequestTimeout`, and `QueryRefused` with the generator's reason."""
    request = ConversationRequest.model_validate({"verb": verb, "key": key, **fields})
    result = await bus.request(request, ConversationResult, seconds)
    if result.error is not None:
        raise QueryRefused(result.error.kind, result.error.message)
    return result.value or {}


def view_of(record: Json) -> QueryView:
    """A query as the generator has it in its record."""
    view = QueryView(record["query_id"], record["query"], record["session_id"], user_id=record.get("user_id"))
    outcome = _outcome_in(record)
    if outcome is not None:
        envelope = Envelope(
            outcome.subject, "", "", "", 1, view.query_id, b"", session_id=view.session_id, user_id=view.user_id
        )
        view.receive(outcome, envelope)
    return view


async def _decoded(bus: Bus, envelope: Envelope) -> Told:
    kind = kind_of(envelope.subject)
    try:
        return [] if kind is None else [(await bus.decode(kind, envelope), envelope)]
    except MalformedFrame as error:
        bus.reject(str(error), envelope.payload)
        return []


def _is_main_outcome(told: tuple[Message, Envelope]) -> bool:
    message, _ = told
    return isinstance(message, QueryFailed | ResponseGeneration) and message.respondent_id == MAIN_RESPONDENT


async def _as_the_generator_has_it(bus: Bus, query_id: str, removed: Envelope, seconds: float) -> Told:
    """The outcome that has left the journal; nothing if the query is open: what has left was another respondent's."""
    try:
        outcome = _outcome_in(await look_up(bus, "query", query_id, seconds))
    except QueryRefused as error:
        if error.kind == "not_found":
            raise QueryDeleted(query_id, removed.user_id) from None
        raise RecordUnreadable(str(error)) from None
    return [] if outcome is None else [(outcome, removed)]


def _outcome_in(record: Json) -> QueryFailed | ResponseGeneration | None:
    outcome = record.get("outcome")
    return None if outcome is None else _OUTCOMES[record["outcome_subject"]].model_validate(outcome)
