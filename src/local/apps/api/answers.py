"""A query's state and answer as HTTP shows them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from local.apps.exchange import Exchange, LogLine
from local.apps.judgements import Judgements
from local.errors import LocalError
from local.protocol.messages import ErrorInfo, ResponseGeneration

Json = dict[str, Any]


def answer_of(exchange: Exchange, response: ResponseGeneration) -> Json:
    """The whole answer, with what was said of it so far and the log of what belonged to it on the bus."""
    return _answer(exchange.session_id, response, exchange.judgements, exchange.log)


def cancelled_unbegun(exchange: Exchange, why: LocalError) -> Json:
    """The answer to a query that was cancelled while it waited in line: an empty one, cancelled like any other."""
    error = ErrorInfo(kind=why.kind, message=str(why))
    response = ResponseGeneration(
        query_id=exchange.query_id, status="cancelled", query=exchange.query, answer="", error=error
    )
    return _answer(exchange.session_id, response, exchange.judgements, exchange.log)


def state_of(exchange: Exchange) -> Json:
    """A query that has not ended: what was said so far."""
    return {"status": "open", "query": exchange.query, **exchange.said_so_far()}


def recorded(record: Json, judgements: Judgements) -> Json:
    """A query as it is on record; what happened on the bus is not part of that."""
    outcome = record["outcome"]
    if record["outcome_subject"] == ResponseGeneration.subject:
        return _answer(record["session_id"], ResponseGeneration.model_validate(outcome), judgements, ())
    fields = {key: record[key] for key in ("query_id", "session_id", "query", "status")}
    return fields if outcome is None else {**fields, "error": outcome["error"]}


def _answer(session_id: str, response: ResponseGeneration, judgements: Judgements, log: Sequence[LogLine]) -> Json:
    return {
        "query_id": response.query_id,
        "session_id": session_id,
        "status": response.status,
        "answer": response.answer,
        "thinking": response.thinking,
        # The main respondent makes its calls itself.
        "tool_calls": [call.model_dump(mode="json", exclude={"made_by"}) for call in response.tool_calls],
        "model": response.model,
        "usage": response.usage,
        "degraded": response.degraded,
        "error": response.error,
        "scores": judgements.as_json(),
        "events": list(dict.fromkeys(line.subject for line in log)),
        "event_log": log,
    }
