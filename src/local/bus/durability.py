"""What a bus needs of whoever makes messages durable: our journal does it, and NATS JetStream could."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from local.protocol.envelope import Envelope
from local.protocol.message import Message


class Delivered(NamedTuple):
    """A message from the record: its number there, and how often it has been given to this consumer."""

    number: int
    attempt: int
    envelope: Envelope


class Consumer(Protocol):
    """One process's hold on a named durable consumer.

    It is given what its consumer has not acknowledged, in order within a session; what it is silent about for too long
    it is given again. What it holds is kept alive until `acknowledge` or `release`.
    """

    def start(self) -> None:
        """Ready to be given messages; the subscriptions made by `consume` have to be in place by then."""

    def acknowledge(self, number: int) -> None:
        """Done with it, for good."""

    async def caught_up(self, seconds: float) -> bool:
        """Whether all that was for it when this was called has been given, and has ended well or ill, within so many
        seconds."""

    def release(self, number: int) -> None:
        """Not done: give it again, after a while, to whoever serves the consumer then."""

    def fail(self, number: int, reason: str) -> None:
        """The handler raised: give it again after a pause that grows, at last tell of it as a dead letter."""

    async def close(self) -> None:
        """Take nothing more and hand back what is held."""


class Carrier(Protocol):
    """What a bus does for whoever makes its messages durable."""

    instance: str

    def subscribe(self, subject: str, receive: Callable[[Envelope], object]) -> Callable[[], None]:
        """Call `receive` for every envelope on a subject or family; returns the function that ends that."""

    def unpack_now(self, payload: bytes) -> bytes:
        """A payload with the large fields that travel outside it. Raises `MalformedFrame`."""

    def resend(self, frame: bytes) -> object:
        """Send a frame once more, if that is possible now."""

    def post(self, message: Message) -> object:
        """Publish without waiting."""

    def dropped(self, gaps: Mapping[str, int]) -> None:
        """So many recorded messages, by subject, had to be given up and may be on no record."""


class Durability(Protocol):
    """Publisher confirms and durable consumers, for one bus."""

    def open(self, carrier: Carrier) -> None:
        """The bus begins: subscribe to what is needed."""

    async def close(self) -> None:
        """The bus ends: what is recorded has a moment to get onto the disk; then whoever waits gets `BusClosed`."""

    def reconnected(self) -> None:
        """There is a connection again: what is not confirmed goes again at once."""

    def confirm(self, envelope: Envelope, frame: bytes, seconds: float) -> asyncio.Future[None]:
        """A confirmed message has been handed over, or could not be yet: it is resent until it is on disk.

        The future raises `NotConfirmed` after `seconds`, and `JournalFull` where the disk has no room for new work.
        """

    def record(self, envelope: Envelope, frame: bytes) -> None:
        """A recorded message has been handed over: it is kept here and resent until it is on disk."""

    def consume(
        self,
        name: str,
        subjects: Sequence[str],
        receive: Callable[[Delivered], object],
        replaced: Callable[[], object],
        *,
        max_in_flight: int,
        lane_width: int,
        linger_ms: int,
    ) -> Consumer:
        """Serve the durable consumer `name`, which gets `subjects`, whole ones and families.

        At most `max_in_flight` messages at a time, of one session at most `lane_width`. Deliveries and
        acknowledgements may wait `linger_ms` for others to travel with them. `receive` is called inside the reader and
        must neither block nor raise; `replaced` when another process has taken the place of this one.
        """
