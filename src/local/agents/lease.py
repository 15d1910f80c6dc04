"""What an agent does about the line for a model: announces users' turns, and takes leases for background calls."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from local.bus.bus import Bus
from local.protocol.envelope import Envelope, new_id
from local.protocol.lease_messages import Lease, LeaseClaim, LeaseState

T = TypeVar("T")

BEAT_SECONDS = 0.5
ALONE_SECONDS = 3.0  # without a word from an arbiter, before a background call goes ahead by itself
LINGER_SECONDS = 0.1


@dataclass(slots=True)
class _Lease:
    id: str
    server: str
    asked_at: float
    granted: asyncio.Event = field(default_factory=asyncio.Event)
    call: asyncio.Task[Any] | None = None
    revoked: bool = False


class Leases:
    """All that one process wants of model servers. `server_of(model)` tells which server a model is on.

    The arbiter is told at each change and twice a second, so that a lost message does no harm, and a process that has
    died loses its leases. Until `are_open` is entered, everything goes ahead at once.
    """

    def __init__(self, server_of: Callable[[str], str] = lambda model: "default") -> None:
        self._server_of = server_of
        self._bus: Bus | None = None
        self._turns: Counter[str] = Counter()  # by server, as the next
        self._said_turns: Counter[str] = Counter()
        self._heard_at: dict[str, float] = {}
        self._leases: dict[str, _Lease] = {}  # by id

    @asynccontextmanager
    async def are_open(self, bus: Bus) -> AsyncIterator[None]:
        """Talk to the arbiter; to be left when nobody is in line any more. Raises `BusNotReady`."""
        end = bus.subscribe(LeaseState.subject, self._hear)
        await bus.ready()
        self._bus = bus
        beat = asyncio.create_task(self._beat(), name="leases")
        try:
            yield
        finally:
            self._bus = None
            beat.cancel()
            end()

    @contextmanager
    def users_turn(self, model: str) -> Iterator[None]:
        """A user waits for what is done inside: it asks nobody, and background calls make room.

        The place is kept a moment longer: where the next turn follows at once, nothing has to be said.
        """
        server = self._server_of(model)
        self._turns[server] += 1
        self._say_turns(server)
        try:
            yield
        finally:
            self._turns[server] -= 1
            asyncio.get_running_loop().call_later(LINGER_SECONDS, self._say_turns, server)

    async def in_background(self, model: str, purpose: str, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What `work()` returns or raises, when the model's server has a place for it.

        It is cancelled when a user's turn needs the place, and then called again as soon as there is one: whatever it
        does has to bear that. Where no arbiter is heard for three seconds, it goes ahead without. `purpose` is a word
        for those who watch the line.
        """
        if self._bus is None:
            return await work()
        lease = _Lease(f"{purpose}-{new_id()[:12]}", self._server_of(model), asyncio.get_running_loop().time())
        self._leases[lease.id] = lease
        self._say(lease.server)
        try:
            while True:
                while not lease.granted.is_set():  # it may be revoked before this task wakes up
                    await lease.granted.wait()
                call = asyncio.create_task(work(), name=lease.id)
                lease.call = call
                try:
                    return await call
                except asyncio.CancelledError:
                    if not lease.revoked or _is_cancelled():
                        raise
                self._wait_again(lease)
        finally:
            del self._leases[lease.id]
            self._say(lease.server)

    def _wait_again(self, lease: _Lease) -> None:
        lease.call, lease.revoked = None, False
        lease.granted.clear()
        self._say(lease.server)

    def _hear(self, envelope: Envelope) -> None:
        state = LeaseState.decode(envelope.payload)
        self._heard_at[state.server] = asyncio.get_running_loop().time()
        for lease in self._leases.values():
            if lease.id in state.granted:
                lease.granted.set()
            elif lease.id in state.revoked:
                self._revoke(lease)

    def _revoke(self, lease: _Lease) -> None:
        if lease.call is None:
            self._wait_again(lease)
        elif not lease.revoked:  # once: it may take a while to clean up
            lease.revoked = True
            lease.call.cancel()

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(BEAT_SECONDS)
            now = asyncio.get_running_loop().time()
            for lease in self._leases.values():
                if now - max(lease.asked_at, self._heard_at.get(lease.server, 0.0)) > ALONE_SECONDS:
                    lease.granted.set()
            for server in {lease.server for lease in self._leases.values()} | set(+self._turns):
                self._say(server)

    def _say_turns(self, server: str) -> None:
        if self._turns[server] != self._said_turns[server]:
            self._say(server)

    def _say(self, server: str) -> None:
        if self._bus is None:
            return
        self._said_turns[server] = self._turns[server]
        leases = tuple(
            Lease(id=lease.id, running=lease.granted.is_set())
            for lease in self._leases.values()
            if lease.server == server
        )
        self._bus.post(LeaseClaim(server=server, turns=self._turns[server], leases=leases))


def _is_cancelled() -> bool:
    """Whether somebody wants the task itself to end, and not only the call that it waits for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
