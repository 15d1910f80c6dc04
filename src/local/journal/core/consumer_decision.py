"""What is decided about a durable consumer, to be carried out in that order."""

from __future__ import annotations

from dataclasses import dataclass

from local.journal.core.consumer_state import Deaths


@dataclass(frozen=True, slots=True)
class Deliver:
    """Give message `number` to `instance`. `working` has to name the attempt.

    `after` is the message of the same lane that has to begin before it, 0 if none has to: on the way to the consumer
    that one may be lost, and this one not.
    """

    consumer: str
    number: int
    attempt: int
    instance: str
    after: int = 0
    linger: float = 0.0  # seconds that it may wait for others to travel with it


@dataclass(frozen=True, slots=True)
class Settled:
    """To be stored: the consumer is done with message `number`."""

    consumer: str
    number: int


@dataclass(frozen=True, slots=True)
class Died:
    """To be stored: what message `number` has lived through."""

    consumer: str
    number: int
    deaths: Deaths


@dataclass(frozen=True, slots=True)
class Serving:
    """To be stored: `instance` serves the consumer from now on, None if nobody does; all before it are fenced."""

    consumer: str
    instance: str | None


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """Give message `number` to nobody any more. To be stored together with the dead letter that says so."""

    consumer: str
    number: int
    reason: str


@dataclass(frozen=True, slots=True)
class Fenced:
    """Tell `instance` that another one has taken its place: it is given nothing and should end."""

    consumer: str
    instance: str


ConsumerDecision = Deliver | Settled | Died | Serving | DeadLetter | Fenced
