"""What is asked of the supervisor: to start, stop or restart a participant. All of it is ephemeral: what came of it
stands in the supervisor's status."""

from __future__ import annotations

from typing import Literal

from local.protocol.message import Delivery, ErrorInfo, Message
from local.protocol.messages import ChildStatus

GONE = "gone"  # the state of one that takes part no longer
ControlVerb = Literal["start", "stop", "restart"]


class ParticipantRequest(Message):
    """A door that wants a participant to be started, stopped, or restarted; `name` is what the supervisor calls it,
    or the settings call one that is new there."""

    subject = "participant.request."
    delivery = Delivery.EPHEMERAL
    family_key = "verb"
    is_request = True
    answered_by = "supervisor"
    verb: ControlVerb
    name: str


class ParticipantResult(Message):
    """The supervisor's answer to that, when it is done: how the `child` is then, or `error`, why it was not done. It is
    given before a restart of the API, which it would not reach after."""

    subject = "participant.result."
    delivery = Delivery.EPHEMERAL
    family_key = "verb"
    verb: str
    child: ChildStatus | None = None
    error: ErrorInfo | None = None
