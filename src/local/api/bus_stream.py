"""The bus as server-sent events, for clients that watch everything."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import starmap

from pydantic_core import from_json, to_json

from local.api.http import KEEP_ALIVE, Chunks, RequestRefused, ServerEvent, sse, ticking
from local.bus.bus import Bus
from local.bus.envelope import Envelope
from local.bus.filter import BadFilter, Filter
from local.memory.messages import OWNER

EVERYTHING = Filter("subject:*")
MAX_SUBJECTS = 32
MAX_MARKS = 16
MAX_WAITING = 2_000
MAX_WAITING_BYTES = 8 * 1024 * 1024
CHUNK_BYTES = 64 * 1024
NO_MARKS: Mapping[str, Filter] = {}


def read_filter(
    text: str | None, subjects: Sequence[str] | None = None, *, param: str = "filter", subject_param: str = "subject"
) -> Filter:
    """Return the filter of a request: its text, and subjects of which any will do; without either, everything. Raises
    `RequestRefused` (invalid) that names the parameter.
    """
    try:
        wanted = EVERYTHING if text is None else Filter(text)
    except BadFilter as error:
        raise RequestRefused("invalid", f"{param}: {error}", param) from None
    if not subjects:
        return wanted
    if len(subjects) > MAX_SUBJECTS:
        raise RequestRefused("invalid", f"{subject_param}: at most {MAX_SUBJECTS} can be given", subject_param)
    try:
        return wanted & Filter.of("subject", subjects)
    except BadFilter as error:
        raise RequestRefused("invalid", f"{subject_param}: {error}", subject_param) from None


class BusWatch:
    """The events of messages that match a filter which one client has not been sent yet. The queue is bounded: a slow
    client loses the events that find no room, and an event `lost` has their number in their place. With `user_id` only
    that user's messages are included; without payloads only headers and sizes. Each event names those of the `marks`
    that match it. `changed` is set when there are events.
    """

    def __init__(
        self,
        wanted: Filter = EVERYTHING,
        user_id: str | None = None,
        *,
        with_payload: bool = True,
        marks: Mapping[str, Filter] = NO_MARKS,
        changed: asyncio.Event | None = None,
    ) -> None:
        self._wanted, self._user_id, self._with_payload, self._marks = wanted, user_id, with_payload, marks
        self.changed = changed or asyncio.Event()
        self.ended = False
        self._waiting: deque[ServerEvent] = deque()
        self._bytes = self._lost = 0

    def receive(self, envelope: Envelope) -> None:
        """Receive one envelope. One without a user belongs to the owner."""
        if self._user_id not in (None, envelope.user_id or OWNER) or not self._wanted.matches(envelope):
            return
        if len(self._waiting) >= MAX_WAITING or self._bytes >= MAX_WAITING_BYTES:
            self._lost += 1
            return
        self._report_loss()
        marks = [text for text, mark in self._marks.items() if mark.matches(envelope)]
        self._append(as_event(envelope, with_payload=self._with_payload, marks=marks))
        self.changed.set()

    def take(self) -> list[ServerEvent]:
        """The next events, about 64 kB of them."""
        taken: list[ServerEvent] = []
        size = 0
        while self._waiting and size < CHUNK_BYTES:
            event = self._waiting.popleft()
            size += len(event.data)
            taken.append(event)
        self._bytes -= size
        if not self._waiting:
            self._report_loss()
        return taken

    def end(self) -> None:
        """Note that no more events follow."""
        self.ended = True
        self.changed.set()

    def _report_loss(self) -> None:
        if self._lost:
            self._append(ServerEvent("lost", to_json({"what": "bus", "lost": self._lost})))
            self._lost = 0

    def _append(self, event: ServerEvent) -> None:
        self._waiting.append(event)
        self._bytes += len(event.data)


class BusStreams:
    """All open streams of the bus. `keep_alive_seconds` is the time between two comments on an idle stream."""

    def __init__(self, bus: Bus, keep_alive_seconds: float) -> None:
        self._bus, self._keep_alive_seconds = bus, keep_alive_seconds
        self._watches: set[BusWatch] = set()

    async def chunks(
        self, wanted: Filter, user_id: str | None, may_hear: Callable[[], bool], *, with_payload: bool = True
    ) -> Chunks:
        """Yield the events of messages that match from the first chunk on, of all users or of one, until `stop`, or
        until the client's permission ends.
        """
        watch = BusWatch(wanted, user_id, with_payload=with_payload)
        ends = [self._bus.subscribe(subject, watch.receive) for subject in wanted.subscriptions()]
        self._watches.add(watch)
        try:
            await self._bus.ready()
            yield b": subscribed\n\n"
            with ticking(self._keep_alive_seconds, watch.changed.set):
                while not watch.ended:
                    await watch.changed.wait()
                    watch.changed.clear()
                    if not may_hear():
                        return
                    events = watch.take()
                    yield b"".join(starmap(sse, events)) or KEEP_ALIVE
                    while events := watch.take():
                        yield b"".join(starmap(sse, events))
        finally:
            self._watches.discard(watch)
            for end in ends:
                end()

    def stop(self) -> None:
        """End every stream."""
        for watch in self._watches:
            watch.end()


def as_event(envelope: Envelope, *, with_payload: bool = True, marks: Sequence[str] = ()) -> ServerEvent:
    """Return an envelope as an event of the default kind, numbered by its id: its header, the size of its payload, the
    marks, and the payload as JSON or, if it is none, as text.
    """
    told = {**envelope.header(), "size": len(envelope.payload), **({"matches": marks} if marks else {})}
    if with_payload:
        try:
            told["payload"] = from_json(envelope.payload, allow_inf_nan=False)
        except ValueError:
            told["payload"] = envelope.payload.decode("utf-8", "replace")
    return ServerEvent("message", to_json(told, inf_nan_mode="null"), envelope.id)
