"""What a bus says of itself: that it is ready, and what it has missed."""

from __future__ import annotations

from local.protocol.message import Delivery, Message


class BusProbe(Message):
    """A bus to itself, until it hears it: proof that its subscriptions are in place. `heard_as` is the instance, and
    how often it has begun to listen."""

    subject = "bus.probe."
    delivery = Delivery.EPHEMERAL
    family_key = "heard_as"
    heard_as: str
    instance: str
    attempt: int


class BusGap(Message):
    """Whoever notices that messages did not arrive: whose, on which subject, how many."""

    subject = "bus.gap"
    observer: str
    sender: str
    instance: str
    missed_subject: str
    missed: int
