"""How a query ended: stored, and on the bus the first time and again for whoever missed it."""

from __future__ import annotations

import logging
import uuid

from local.bus.bus import Bus
from local.errors import LocalError
from local.protocol.envelope import Trace
from local.protocol.messages import AnswerDialog, QueryFailed, ResponseGeneration
from local.services.conversation import ConversationService, StoredTurn

log = logging.getLogger(__name__)

Outcome = ResponseGeneration | QueryFailed
_NAMESPACE = uuid.UUID("5f4f3c1e-6a60-4bb4-9a0c-3d2a8d0f3b51")


def response_id(query_id: str, respondent_id: str, subject: str = ResponseGeneration.subject) -> str:
    """The id of the envelope that ends a query: always the same, so that publishing it twice is one answer."""
    return uuid.uuid5(_NAMESPACE, f"{query_id}\n{respondent_id}\n{subject}").hex


def trace_of(stored: StoredTurn) -> Trace:
    """What everything belongs to that a stored query causes."""
    return Trace(stored.query_id, stored.envelope_id, stored.session_id, stored.user_id)


def stored_outcome(stored: StoredTurn) -> Outcome | None:
    """The message that ended a stored turn; None while it is open."""
    if stored.outcome is None:
        return None
    kind = ResponseGeneration if stored.outcome_subject == ResponseGeneration.subject else QueryFailed
    return kind.decode(stored.outcome.encode())


async def publish_outcome(bus: Bus, conversation: ConversationService, outcome: Outcome, trace: Trace) -> None:
    """Publish how a query ended and note that it is out; what cannot leave now is left for the next reconnection."""
    query_id, respondent_id = outcome.query_id, outcome.respondent_id
    try:
        await bus.publish(outcome, trace, envelope_id=response_id(query_id, respondent_id))
        if isinstance(outcome, ResponseGeneration) and outcome.status == "answered" and respondent_id == "A":
            dialog = AnswerDialog(query_id=query_id, query=outcome.query, answer=outcome.answer)
            dialog_id = response_id(query_id, respondent_id, dialog.subject)
            await bus.publish(dialog, trace, envelope_id=dialog_id)
        conversation.published(query_id)
    except LocalError as error:
        log.error("the outcome is stored and waits for the bus: %s", error)
