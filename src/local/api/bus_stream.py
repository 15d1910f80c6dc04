"""The bus as server-sent events, for clients that watch everything."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import starmap

from pydantic_core import from_json, to_json

from local.api.http import KEEP_ALIVE, Chunks, RequestRefused, ServerEvent, sse, ticking
from local.bus.bus import Bus
from local.bus.envelope import Envelope
from local.bus.message import is_family, is_subject
from local.memory.messages import OWNER

MAX_FILTERS = 32
MAX_WAITING = 2_000
MAX_WAITING_BYTES = 8 * 1024 * 1024
CHUNK_BYTES = 64 * 1024


def is_filter(text: str) -> bool:
    """Whether `text` is a subject, a family ("tool.result.") or everything ("")."""
    return text == "" or is_subject(text.removesuffix("."))


def checked_filters(filters: Sequence[str], param: str) -> Sequence[str]:
    """Return the filters unchanged. Raises `RequestRefused` (invalid) for an invalid one, and for too many."""
    if len(filters) > MAX_FILTERS:
        raise RequestRefused("invalid", f"{param}: at most {MAX_FILTERS} can be given", param)
    for one in filters:
        if not is_filter(one):
            text = f"{param}: {one[:200]!r} is neither a subject nor a family, which ends in a dot"
            raise RequestRefused("invalid", text, param)
    return filters


def without_overlap(filters: Iterable[str]) -> list[str]:
    """Return the filters that no other one covers, so that no message is received twice."""
    unique = sorted(set(filters))
    families = [one for one in unique if is_family(one)]
    return [one for one in unique if not any(one.startswith(wider) for wider in families if wider != one)]


class BusWatch:
    """The events that one client of the bus has not been sent yet. The queue is bounded: a slow client loses the events
    that find no room, and an event `lost` has their number in their place. With `user_id` only that user's messages are
    included; without payloads only headers and sizes. `changed` is set when there are events.
    """

    def __init__(
        self, user_id: str | None = None, *, with_payload: bool = True, changed: asyncio.Event | None = None
    ) -> None:
        self._user_id, self._with_payload = user_id, with_payload
        self.changed = changed or asyncio.Event()
        self.ended = False
        self._waiting: deque[ServerEvent] = deque()
        self._bytes = self._lost = 0

    def receive(self, envelope: Envelope) -> None:
        """Receive one envelope. One without a user belongs to the owner."""
        if self._user_id not in (None, envelope.user_id or OWNER):
            return
        if len(self._waiting) >= MAX_WAITING or self._bytes >= MAX_WAITING_BYTES:
            self._lost += 1
            return
        self._report_loss()
        self._append(as_event(envelope, with_payload=self._with_payload))
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
        self, filters: Iterable[str], user_id: str | None, may_hear: Callable[[], bool], *, with_payload: bool = True
    ) -> Chunks:
        """Yield the events on the filtered subjects from the first chunk on, of all users or of one, until `stop`, or
        until the client's permission ends.
        """
        watch = BusWatch(user_id, with_payload=with_payload)
        ends = [self._bus.subscribe(subject, watch.receive) for subject in without_overlap(filters)]
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


def as_event(envelope: Envelope, *, with_payload: bool = True) -> ServerEvent:
    """Return an envelope as an event of the default kind, numbered by its id: its header, the size of its payload, and
    the payload as JSON or, if it is none, as text.
    """
    told = {**envelope.header(), "size": len(envelope.payload)}
    if with_payload:
        try:
            told["payload"] = from_json(envelope.payload, allow_inf_nan=False)
        except ValueError:
            told["payload"] = envelope.payload.decode("utf-8", "replace")
    return ServerEvent("message", to_json(told, inf_nan_mode="null"), envelope.id)
