"""The bus as the desktop window reads it.

Problem: the window must stay usable whatever passes on the bus, and must not miss messages without saying so.

Idea: a thread with an event loop of its own reads the bus into a bounded ring. The window takes what it can show, a few
times a second. If the ring is full, the oldest message in it is dropped and counted. Payloads stay unparsed here.

Invariants: `heard` is the number of messages that arrived; each of them was taken, waits in the ring, or is counted in
`dropped`. Callbacks run in the window's thread, inside `settle`. A message that is published is sent under the same id
until the journal has stored it, whatever becomes of connections, so it counts once.

Rejected: a Qt signal for each message, because they queue without a bound; a shared loop of Qt and asyncio, because a
dialog or a slow paint then stops the reading.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from local.bus.blobs import BlobStore
from local.bus.bus import Bus
from local.bus.by_hand import client_bus, envelope_of, say
from local.bus.envelope import Envelope, Trace, decode, is_packed, new_id
from local.bus.message import Message, covers
from local.bus.messages import (
    BusGap,
    BusProbe,
    ParticipantRequest,
    ParticipantStatus,
    QueryCancel,
    QueryReceived,
)
from local.bus.security import Declaration, Declarations, SenderGuard, with_keys
from local.bus.zeromq import open_transport
from local.core.bus_address import BusAddress
from local.core.data_dir import RunDirectory
from local.core.errors import BusClosed, LocalError, MalformedFrame, NotConfirmed, PublishTimeout
from local.critic.messages import UserFeedback
from local.journal.client import JournalClient, entries_on_record
from local.journal.messages import JournalRead
from local.memory.messages import MemoryRequest
from local.permissions.messages import PermissionRequest
from local.queries.record import read_recorded, trace_of

SENDER = "desktop"
BY_HAND = "desktop_pub"  # the sender of what a person publishes
RING = 10_000  # messages that wait for the window
BEAT_SECONDS = 5.0
LOOK_SECONDS = 0.25
READY_SECONDS = 2.0
ANSWER_SECONDS = 5.0

SAYS = Declaration(
    frozenset(
        {
            ParticipantStatus.subject,
            BusGap.subject,
            BusProbe.subject,
            QueryReceived.subject,
            QueryCancel.subject,
            UserFeedback.subject,
            MemoryRequest.subject,
            ParticipantRequest.subject,
            PermissionRequest.subject,
            JournalRead.subject,
        }
    )
)

T = TypeVar("T")
M = TypeVar("M", bound=Message)


class Link(NamedTuple):
    """The state of the connection: whether messages arrive, since when (seconds since 1970), and if not, why."""

    is_live: bool
    since: float
    why: str = ""


class FeedView(Protocol):
    """A part of the window that shows messages."""

    def receive(self, batch: Sequence[Envelope]) -> None:
        """Take the next messages, in the order of arrival. It is called in the window's thread, at every tick that has
        some; all views together may use 16 ms of that thread's time at a tick.
        """


class BusFeed:
    """One window's connection to the bus of the system on `data_dir`, which may come and go. Use `start`, then `take`
    and `settle` from the window's thread, and `close`.
    """

    def __init__(
        self, data_dir: Path, *, find: Callable[[], BusAddress] | None = None, ring: int = RING, sender: str = SENDER
    ) -> None:
        """`find` returns the address of the running system's bus, and raises `LocalError` if there is none."""
        self.data_dir, self.blobs, self.sender = data_dir, BlobStore(data_dir / "blobs"), sender
        self.heard = self.dropped = self.missed = 0  # messages: arrived, without room, lost on their way
        self.connections = 0
        self.link = Link(False, time.time(), "connecting")
        self._find = find or RunDirectory(data_dir).running_bus
        self._ring, self._most = deque[Envelope](), ring
        self._done = deque[Callable[[], object]]()
        self.loop = asyncio.new_event_loop()
        self.bus: Bus | None = None
        self._ready = asyncio.Event()
        self._stop = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self._thread = threading.Thread(target=self._run, name="bus feed", daemon=True)

    # The window's side

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def close(self, seconds: float = 3.0) -> None:
        """Stop reading, and wait for at most so many seconds until unconfirmed messages are stored."""
        if self._thread.is_alive():
            with suppress(RuntimeError):  # it has just ended
                self.loop.call_soon_threadsafe(self._stop.set)
            self._thread.join(seconds)

    @property
    def waiting(self) -> int:
        """The number of messages that were heard and not yet taken."""
        return len(self._ring)

    def take(self, most: int) -> list[Envelope]:
        """Return the next messages, at most so many."""
        taken: list[Envelope] = []
        with suppress(IndexError):  # the ring is empty
            while len(taken) < most:
                taken.append(self._ring.popleft())
        return taken

    def settle(self, most: int = 20) -> None:
        """Call back for what was finished since the last call, at most so many times."""
        for _ in range(min(most, len(self._done))):
            self._done.popleft()()

    def publish(
        self,
        message: Message,
        trace: Trace | None = None,
        then: Callable[[LocalError | None], object] = lambda error: None,
        *,
        envelope_id: str | None = None,
    ) -> str:
        """Publish a message, again until it is stored; returns the id of its envelope. `then` receives the reason if
        it is refused.
        """
        envelope_id = envelope_id or new_id()
        self._submit(self._send(message, trace, envelope_id), lambda result: then(_error_in(result)))
        return envelope_id

    def request(
        self,
        message: Message,
        reply: type[M],
        then: Callable[[M | LocalError], object],
        trace: Trace | None = None,
        seconds: float = ANSWER_SECONDS,
    ) -> None:
        """Send a request, and pass its answer, or the reason why there is none, to `then`."""
        self._submit(self._ask(lambda bus: bus.request(message, reply, seconds, trace), seconds), then)

    def read(
        self,
        request: JournalRead,
        then: Callable[[list[Envelope] | LocalError], object],
        *,
        most: int = 10_000,
        seconds: float = ANSWER_SECONDS,
    ) -> None:
        """Read at most so many recorded messages, and pass them to `then` in the order of the request. Removed ones are
        left out.
        """
        self._submit(self._ask(lambda bus: _recorded(bus, request, most, seconds), seconds), then)

    def trace(self, query_id: str, then: Callable[[dict[str, Any] | LocalError], object]) -> None:
        """Read what is on record of a query, and pass its timeline to `then`, in the form of the API."""

        async def work(bus: Bus) -> dict[str, Any]:
            recorded = await read_recorded(bus, query_id, ANSWER_SECONDS)
            timeline = await trace_of(bus, query_id, recorded)
            envelopes = [message.as_json() for message in recorded]
            spans = [span._asdict() for span in timeline.spans()]
            return {"query_id": query_id, "envelopes": envelopes, "spans": spans}

        self._submit(self._ask(work, ANSWER_SECONDS), then)

    def publish_by_hand(
        self, subject: str, payload: bytes, query: str | None, session: str | None,
        then: Callable[[str | LocalError], object],
    ) -> None:  # fmt: skip
        """Publish a message that a person wrote, as `desktop_pub`, once; `then` receives its id, or why it was not
        sent.
        """

        async def work() -> str | LocalError:
            try:
                bus = client_bus(self._find(), BY_HAND, Declaration(frozenset({subject})))
                envelope = envelope_of(bus, subject, payload, query, session)
                await say(bus, envelope, self.blobs)
            except LocalError as error:
                return error
            return envelope.id

        self._submit(work(), then)

    def aside(self, work: Callable[[], T], then: Callable[[T | LocalError], object]) -> None:
        """Call a function that blocks, in another thread, and pass its result, or its `LocalError`, to `then`."""

        async def run() -> T | LocalError:
            try:
                return await asyncio.to_thread(work)
            except LocalError as error:
                return error

        self._submit(run(), then)

    def _submit(self, work: Awaitable[T | LocalError], then: Callable[[Any], object]) -> None:
        async def run() -> None:
            result = await work
            self._done.append(partial(then, result))

        def begin() -> None:
            task = self.loop.create_task(run())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

        self.loop.call_soon_threadsafe(begin)

    # The thread's side

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_until_complete(self._serve())
        finally:
            for task in self._tasks:
                task.cancel()
            self.loop.run_until_complete(asyncio.gather(*self._tasks, return_exceptions=True))
            self.loop.run_until_complete(self.loop.shutdown_default_executor())
            self.loop.close()

    async def _serve(self) -> None:
        while not self._stop.is_set():
            try:
                await self._listen(self._find())
            except LocalError as error:
                self._set_link(False, str(error))
                await self._pause(2 * LOOK_SECONDS)

    async def _listen(self, address: BusAddress) -> None:
        """Read one bus until the window closes, or the system is at another address. Raises `LocalError`."""
        async with self._open(address) as bus:
            bus.subscribe("", self._hear)
            bus.on_reconnect.append(self._introduce)
            await bus.ready(READY_SECONDS)
            self.bus = bus
            self._introduce()
            beat_at = time.monotonic() + BEAT_SECONDS
            try:
                while not self._stop.is_set() and self._look(bus, address):
                    if time.monotonic() >= beat_at:
                        beat_at += BEAT_SECONDS
                        bus.post(self._status("ready"))
                    await self._pause(LOOK_SECONDS)
            finally:
                if bus.is_ready:
                    bus.post(self._status("stopping"))
                self.bus = None
                self._ready.clear()

    def _open(self, address: BusAddress) -> Bus:
        guard = None
        if address.senders is not None:
            declarations = Declarations(address.senders)
            declarations.write(self.sender, SAYS)
            guard = SenderGuard(declarations.read)
        transport = open_transport(with_keys(address, self.sender))
        return Bus(self.sender, transport, blobs=self.blobs, durability=JournalClient(), guard=guard)

    def _introduce(self) -> None:
        """Have the participants publish their status: a newcomer's own status asks for theirs."""
        self.connections += 1
        if self.bus is not None:
            self.bus.post(self._status("starting"))
            self.bus.post(self._status("ready"))

    def _status(self, state: Literal["starting", "ready", "stopping"]) -> ParticipantStatus:
        assert self.bus is not None
        return ParticipantStatus(
            name=self.sender, kind="frontend", pid=os.getpid(), instance=self.bus.instance, state=state,
            last_seq=self.bus.last_seq,
        )  # fmt: skip

    def _look(self, bus: Bus, address: BusAddress) -> bool:
        """Update the state of the connection; returns False if the system has another bus now."""
        self.missed += sum(gap.missed for gap in bus.take_gaps())
        try:
            found = self._find()
        except LocalError as error:
            self._set_link(False, str(error))
            return True
        if bus.is_ready:
            self._set_link(True)
            self._ready.set()
        else:
            self._set_link(False, "the bus does not answer")
            self._ready.clear()
        return (found.publish_to, found.subscribe_to) == (address.publish_to, address.subscribe_to)

    def _set_link(self, is_live: bool, why: str = "") -> None:
        if is_live != self.link.is_live or (why != self.link.why and not is_live):
            since = time.time() if is_live != self.link.is_live else self.link.since
            self.link = Link(is_live, since, why)

    def _hear(self, envelope: Envelope) -> None:
        if len(self._ring) >= self._most:
            with suppress(IndexError):  # the window has just taken all
                self._ring.popleft()
                self.dropped += 1
        self._ring.append(envelope)
        self.heard += 1

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stop.wait(), seconds)

    async def _send(self, message: Message, trace: Trace | None, envelope_id: str) -> LocalError | None:
        while True:
            await self._ready.wait()
            bus = self.bus
            try:
                if bus is not None:
                    await bus.publish(message, trace, envelope_id=envelope_id)
                    return None
            except (NotConfirmed, PublishTimeout, BusClosed):
                await asyncio.sleep(LOOK_SECONDS)
            except LocalError as error:
                return error

    async def _ask(self, work: Callable[[Bus], Awaitable[T]], seconds: float) -> T | LocalError:
        try:
            async with asyncio.timeout(seconds):
                await self._ready.wait()
            bus = self.bus
            if bus is None:
                return BusClosed("the bus was closed")
            return await work(bus)
        except TimeoutError:
            return BusClosed(f"no system answers: {self.link.why}")
        except LocalError as error:
            return error


async def _recorded(bus: Bus, request: JournalRead, most: int, seconds: float) -> list[Envelope]:
    found: list[Envelope] = []
    async for entry in entries_on_record(bus, request, seconds):
        if not entry.redacted:
            found.append(decode(entry.frame.encode()))
        if len(found) >= most:
            break
    return found


def _error_in(result: object) -> LocalError | None:
    return result if isinstance(result, LocalError) else None


def message_of(kind: type[M], envelope: Envelope, blobs: BlobStore | None = None) -> M | None:
    """Return the message of that class in an envelope, with its large fields; None for another subject, or if it cannot
    be read.
    """
    if not covers(kind.subject, envelope.subject):
        return None
    try:
        if blobs is not None and is_packed(envelope.payload):
            return kind.decode(blobs.unpack(envelope.payload))
        return kind.decode(envelope.payload)
    except MalformedFrame:
        return None
