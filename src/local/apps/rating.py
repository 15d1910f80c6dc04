"""Which answer a user's rating is of."""

from __future__ import annotations

from local.apps.door_errors import AnswerOnItsWay
from local.apps.exchange import QueryRefused
from local.apps.judgements import MAIN_RESPONDENT
from local.apps.record import read_query
from local.bus.bus import Bus
from local.protocol.envelope import Trace
from local.protocol.messages import ConversationRequest, ConversationResult


async def trace_of_answer(bus: Bus, query_id: str, respondent_id: str, seconds: float) -> Trace:
    """For what follows from an answer on record.

    Raises `QueryRefused` (not_found; conflict where there is no such answer), `AnswerOnItsWay`, and as `read_query`.
    """
    recorded = await read_query(bus, query_id, seconds)
    if recorded is None:
        raise QueryRefused("not_found", f"there is no query {query_id}")
    if respondent_id in recorded.answers:
        return recorded.answers[respondent_id].trace()
    if respondent_id == MAIN_RESPONDENT and recorded.outcome is None and await _is_answered(bus, query_id, seconds):
        raise AnswerOnItsWay(query_id)
    raise QueryRefused("conflict", f"query {query_id} has no answer of {respondent_id} that could be rated")


async def _is_answered(bus: Bus, query_id: str, seconds: float) -> bool:
    """Whether the generator has an answer in its own record, which it keeps before anybody hears of it."""
    request = ConversationRequest(verb="query", key=query_id)
    result = await bus.request(request, ConversationResult, seconds)
    return result.value is not None and result.value["status"] == "answered"
