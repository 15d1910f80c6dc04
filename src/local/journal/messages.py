"""The messages between the journal and its clients. All are ephemeral: lost ones are sent again."""

from __future__ import annotations

from pydantic import Field

from local.bus.message import Data, Delivery, ErrorInfo, Message


class JournalOpened(Message):
    """Published by the journal when it starts to serve and after each reconnection: every process then sends
    unconfirmed messages again and attaches.
    """

    subject = "journal.opened"
    delivery = Delivery.EPHEMERAL


class JournalConfirmed(Message):
    """Sent by the journal to one publisher's instance: its messages with these ids are on the disk. `refused` are ids
    that it cannot accept, for the reason in `error`.
    """

    subject = "journal.confirmed."
    delivery = Delivery.EPHEMERAL
    family_key = "instance"
    instance: str
    ids: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    error: ErrorInfo | None = None


class ConsumerClaim(Data):
    """A durable consumer that a process serves. `subjects` are whole ones and families. With `linger_ms` a delivery may
    be held back so long, to travel with others."""

    name: str = Field(pattern=r"^[A-Za-z0-9_-]{1,100}$")  # a word of a subject
    subjects: tuple[str, ...] = Field(min_length=1)
    max_in_flight: int = Field(256, ge=1)
    lane_width: int = Field(1, ge=1)  # how many of one session may be in flight at a time
    linger_ms: int = Field(0, ge=0, le=500)


class JournalAttach(Message):
    """Sent by a process that serves durable consumers: when they are ready, every few seconds, and when the journal
    has opened. The journal then delivers the unacknowledged messages to this instance.
    """

    subject = "journal.attach"
    delivery = Delivery.EPHEMERAL
    consumers: tuple[ConsumerClaim, ...] = Field(min_length=1, max_length=100)


class JournalDetach(Message):
    """Sent by a process that serves a durable consumer when it ends in order: the journal takes back the deliveries in
    flight.
    """

    subject = "journal.detach"
    delivery = Delivery.EPHEMERAL
    consumer: str


class JournalFenced(Message):
    """Sent by the journal to an instance that another one has replaced: it gets no more deliveries and should end."""

    subject = "journal.fenced."
    delivery = Delivery.EPHEMERAL
    family_key = "consumer"
    consumer: str
    instance: str


class JournalDeliver(Message):
    """Sent by the journal to the instance that serves a durable consumer: entry `number` for the `attempt`th time.
    `frame` is the envelope as it was sent; `after` is the entry of the same session that must begin first, 0 for none.
    """

    subject = "journal.deliver."
    delivery = Delivery.EPHEMERAL
    family_key = "consumer"
    consumer: str
    instance: str
    number: int
    attempt: int
    after: int = 0
    frame: str


class JournalFlush(Message):
    """Sent by a process that serves a durable consumer while a requester waits for its work: the journal delivers
    immediately what has arrived so far. `mark` is the sender's, to tell the answers apart.
    """

    subject = "journal.hurry"
    delivery = Delivery.EPHEMERAL
    consumer: str
    mark: int


class JournalFlushed(Message):
    """The journal's answer to `JournalFlush`: the messages that arrived for the consumer before that `mark` were
    delivered, up to the number it takes at a time.
    """

    subject = "journal.given."
    delivery = Delivery.EPHEMERAL
    family_key = "consumer"
    consumer: str
    instance: str
    mark: int


class JournalAck(Message):
    """Sent by a durable consumer that has finished with these messages."""

    subject = "journal.ack"
    delivery = Delivery.EPHEMERAL
    consumer: str
    numbers: tuple[int, ...]


class JournalFailed(Message):
    """Sent by a process that serves a durable consumer when a handler has raised: entry `number` is to be delivered
    again after a while, or to become a dead letter with this `reason`.
    """

    subject = "journal.failed"
    delivery = Delivery.EPHEMERAL
    consumer: str
    number: int
    attempt: int
    reason: str


class JournalRedeliver(Message):
    """A client's request, after the cause of dead letters was repaired, to deliver those with these numbers, or all,
    again to one consumer or to every consumer that gave them up.
    """

    subject = "journal.redeliver"
    delivery = Delivery.EPHEMERAL
    is_request = True
    answered_by = "journal"
    consumer: str | None = None
    numbers: tuple[int, ...] = ()  # none is all


class JournalRedelivered(Message):
    """The journal's answer to `JournalRedeliver`: by consumer, which messages will be delivered again, or why none
    will.
    """

    subject = "journal.redelivered"
    delivery = Delivery.EPHEMERAL
    numbers: dict[str, tuple[int, ...]] = Field(default_factory=dict)
    error: ErrorInfo | None = None


class JournalDeadRead(Message):
    """A client's request for the dead letters: the messages that a consumer does not receive any more."""

    subject = "journal.dead"
    delivery = Delivery.EPHEMERAL
    is_request = True
    answered_by = "journal"


class DeadLetterEntry(Data):
    """One dead letter: the message's number and subject, the consumer that was given up with it, and the reason."""

    number: int
    committed_at: float  # seconds since 1970
    consumer: str
    dead_subject: str
    query_id: str
    reason: str


class JournalDeadLetters(Message):
    """The journal's answer to `JournalDeadRead`: the latest dead letters, the newest first, and how many there are."""

    subject = "journal.dead_letters"
    delivery = Delivery.EPHEMERAL
    dead_letters: tuple[DeadLetterEntry, ...] = ()
    count: int = 0
    error: ErrorInfo | None = None


class JournalWorking(Message):
    """Sent by a process that serves durable consumers, four times a second while it works: by consumer and number, the
    attempts in flight.
    """

    subject = "journal.working"
    delivery = Delivery.EPHEMERAL
    attempts: dict[str, dict[int, int]]


# Messages from processes that serve durable consumers to the journal
ConsumerMessage = JournalAttach | JournalDetach | JournalAck | JournalFailed | JournalFlush | JournalWorking


class JournalRead(Message):
    """A participant's request for recorded messages: entries above `after`, and below `before` if that is given, that
    match all conditions; oldest first, or with `before` alone latest first.
    """

    subject = "journal.read"
    delivery = Delivery.EPHEMERAL
    is_request = True
    answered_by = "journal"
    subjects: tuple[str, ...] = ()  # whole ones and families; none is everything
    correlation_id: str | None = None
    correlation_ids: tuple[str, ...] = Field((), max_length=100)  # any of these; none is everything
    session_id: str | None = None
    after: int = 0
    before: int | None = None
    limit: int = Field(100, ge=1, le=1000)

    @property
    def is_backwards(self) -> bool:
        """Whether the latest entry comes first."""
        return self.before is not None and not self.after


class JournalEntry(Data):
    """One recorded message. If it is redacted, the payload is missing at the end of its frame."""

    number: int
    committed_at: float  # seconds since 1970
    redacted: bool
    frame: str


class JournalEntries(Message):
    """The journal's answer to `JournalRead`. There may be more entries if there are `limit` of them, or if `more` is
    set.
    """

    subject = "journal.entries"
    delivery = Delivery.EPHEMERAL
    entries: tuple[JournalEntry, ...] = ()
    more: bool = False
    error: ErrorInfo | None = None


class JournalRedact(Message):
    """A participant's request to remove payloads from the journal: those of a session, of everything one query caused,
    and those that mention a text, whichever are given.
    """

    subject = "journal.redact"
    delivery = Delivery.EPHEMERAL
    is_request = True
    answered_by = "journal"
    session_id: str | None = None
    query_id: str | None = None
    mentioned: str | None = Field(None, min_length=16)


class JournalRedacted(Message):
    """The journal's answer to `JournalRedact`: how many payloads it has removed, or why it could not."""

    subject = "journal.redacted"
    delivery = Delivery.EPHEMERAL
    count: int = 0
    error: ErrorInfo | None = None
