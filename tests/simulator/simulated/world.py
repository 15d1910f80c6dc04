"""A virtual clock, a bus that loses things, and processes that die: everything happens in an order a seed decides."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable
from random import Random
from typing import Any

MAX_EVENTS = 50_000
BEAT = 0.25


class Violation(AssertionError):
    """A promise was broken; the text names the seed that does it again."""


class Process:
    """One life of a participant. What it keeps in `self` dies with it; `world.disks[role]` stays."""

    role = ""

    def __init__(self, world: World, instance: str) -> None:
        self.world, self.instance, self.alive = world, instance, True
        self.random = world.random
        self.disk: Any = world.disks[self.role]
        self._written = self._answered = 0.0  # when the last write will be done, and when this process will hear of it

    def later(self, delay: float, action: Callable[..., None], *args: object) -> None:
        """Do something in a while, if this process still lives then."""
        self.world.at(self.world.now + delay, self, action, args)

    def send(self, role: str, kind: str, *args: object) -> None:
        """A message on the bus: every living process of that role may hear it, once, twice or never."""
        self.world.carry(self, role, "on_" + kind, args)

    @property
    def owns_disk(self) -> bool:
        """Whether no newer process has opened it."""
        owner: str = self.disk.owner
        return owner == self.instance

    def write(
        self, work: Callable[..., None], *args: object, then: Callable[[], None], failed: Callable[[], None]
    ) -> None:
        """A transaction on the disk, in the order of the calls, and what follows it: between the two there is time to
        die. `failed` follows where there is no space; nothing once a newer process owns the disk."""
        self._written = max(self._written, self.world.now + self.random.random() * 0.02)
        self.world.at(self._written, self, self._commit, (work, args, then, failed))

    def _commit(
        self, work: Callable[..., None], args: tuple[object, ...], then: Callable[[], None], failed: Callable[[], None]
    ) -> None:
        if not self.owns_disk:
            return
        if self.world.is_full():
            failed()
        else:
            work(*args)
            self._answered = max(self._answered, self.world.now + self.random.random() * 0.05)
            self.world.at(self._answered, self, then, ())

    def start(self) -> None:
        """The first thing it does."""
        self.beat()

    def beat(self) -> None:
        """Now and then, as long as it lives."""
        self.later(BEAT, self.beat)


class World:
    """Runs processes of the given classes until `is_finished`, with faults for the first few seconds."""

    def __init__(self, seed: int, *kinds: type[Process], disks: dict[str, Any]) -> None:
        self.seed, self.random, self.now = seed, Random(seed), 0.0
        self.disks = disks
        self.living: dict[str, list[Process]] = {}
        self.lives: Counter[str] = Counter()  # by role, how many processes there have been
        self._kinds = {kind.role: kind for kind in kinds}
        self._events: list[tuple[float, int, Process | None, Callable[..., None], tuple[Any, ...]]] = []
        self._count = 0
        self._faults_until = self.random.uniform(1, 5)
        self._loss, self._doubling = self.random.choice((0, 0.05, 0.3)), self.random.choice((0, 0.1))
        self._slowest = self.random.choice((0.01, 0.1, 0.6))
        self._deadliness = self.random.choice((0, 0.02, 0.04, 0.06))
        self._fullness = self.random.choice((0, 0.4))
        self._keeps_order = self.random.random() < 0.5  # as a connection of ZeroMQ does, whatever it loses
        self._last_arrivals: dict[tuple[Process, str], float] = {}

    @property
    def is_healthy(self) -> bool:
        """Whether the faults are over."""
        return self.now > self._faults_until

    def is_full(self) -> bool:
        """Whether the disk has no space for the next write."""
        return self._fullness > 0 and not self.is_healthy and self.random.random() < self._fullness

    def at(self, time: float, process: Process | None, action: Callable[..., None], args: tuple[Any, ...]) -> None:
        """Plan an event; simultaneous ones happen in the order of their planning."""
        self._count += 1
        heapq.heappush(self._events, (time, self._count, process, action, args))

    def carry(self, sender: Process, role: str, handler: str, args: tuple[object, ...]) -> None:
        """Lose, double or delay a message, which also reorders it where the connections keep no order."""
        copies, slowest = 1, 0.01
        if not self.is_healthy:
            copies = (self.random.random() >= self._loss) * (1 + (self.random.random() < self._doubling))
            slowest = self._slowest
        for _ in range(copies):
            arrival = self.now + self.random.random() * slowest
            if self._keeps_order:
                arrival = max(arrival, self._last_arrivals.get((sender, role), 0))
                self._last_arrivals[sender, role] = arrival
            self.at(arrival, None, self._arrive, (role, handler, args))

    def start(self, role: str) -> None:
        """A new process takes the role; whatever had it before has been killed or is about to be."""
        self.lives[role] += 1
        process = self._kinds[role](self, f"{role}-{self.lives[role]}")
        self.living.setdefault(role, []).append(process)
        process.start()

    def kill(self, process: Process) -> None:
        """It does nothing more; where nobody else has its role, its successor starts soon."""
        if process.alive:
            process.alive = False
            self.living[process.role].remove(process)
            if not self.living[process.role]:
                self.at(self.now + self.random.uniform(0.01, 0.4), None, self._restart, (process.role,))

    def run(self, is_finished: Callable[[], bool]) -> None:
        """Let it all happen. Raises `Violation` if it does not come to an end."""
        for role in self._kinds:
            self.start(role)
        for count in range(MAX_EVENTS):
            self.now, _, process, action, args = heapq.heappop(self._events)
            if process is None or process.alive:
                action(*args)
            if not self.is_healthy:
                self._meddle()
            elif count % 16 == 0 and is_finished():
                return
        raise Violation(f"seed {self.seed}: it does not end")

    def _meddle(self) -> None:
        if self.random.random() >= self._deadliness:
            return
        role = self.random.choice(list(self._kinds))
        if self.living[role] and self.random.random() < 0.5:
            self.kill(self.random.choice(self.living[role]))
        elif role != "journal":  # its file has a lock; others may be replaced while they are frozen, and thaw
            frozen = self.living[role][:]
            self.start(role)
            for process in frozen:
                self.at(self.now + self.random.uniform(0, 3), None, self.kill, (process,))

    def _restart(self, role: str) -> None:
        if not self.living[role]:
            self.start(role)

    def _arrive(self, role: str, handler: str, args: tuple[object, ...]) -> None:
        for process in self.living[role][:]:
            getattr(process, handler)(*args)
