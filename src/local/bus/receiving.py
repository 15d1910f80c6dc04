"""The incoming side of a bus: each frame is checked, counted and passed to its subscribers. Sequence numbers reveal
missing messages; losses are reported as messages.
"""

from __future__ import annotations

import json
import logging
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from local.bus.envelope import Envelope, decode, in_session_of_payload
from local.bus.message import covers, is_said_again
from local.bus.messages import SUPERVISOR, BusGap, BusProbe, ParticipantStatus, QueryReceived
from local.bus.security import SenderGuard
from local.core.errors import MalformedFrame

# Refused frames, sampled into one bounded file for a person to look at.

FILE_NAME = "rejected.jsonl"  # in the data directory
MAX_BYTES = 1024 * 1024
SAMPLE_BYTES = 200
FREE_SAMPLES = 20


class RejectLog:
    """A file of JSON lines with samples of refused frames: the first twenty, then one a second, until the file has 1
    MiB. Counting continues when the file is full or cannot be written.
    """

    def __init__(self, path: Path, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._next_sample = 0.0
        self.count = 0

    def add(self, participant: str, reason: str, data: bytes) -> None:
        """Count one refused frame and perhaps keep its first bytes."""
        self.count += 1
        now = self._clock()
        if self.count > FREE_SAMPLES and now < self._next_sample:
            return
        self._next_sample = now + 1.0
        line = {
            "at": time.time(),
            "participant": participant,
            "reason": reason[:300],
            "size": len(data),
            "head": data[:SAMPLE_BYTES].decode("latin-1"),
        }
        with suppress(OSError):
            if not self._path.exists() or self._path.stat().st_size < MAX_BYTES:
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(line) + "\n")

    def clear(self) -> None:
        """Remove the file, for all who write to it."""
        self._path.unlink(missing_ok=True)


log = logging.getLogger(__name__)

Receive = Callable[[Envelope], object]

MAX_SUBJECTS = 4096
MAX_STREAMS = 20_000
MAX_HOLES = 64
MAX_FAULTS = 256  # each reported once


class Dispatcher:
    """The incoming side of one bus. Counts `received`, `repeated`, `late_replies` and `malformed`, and what `Losses`
    counts; with a guard also `refused`: messages that their sender has not declared.

    Repeated messages are passed only to subscribers that asked for repeats.
    """

    def __init__(
        self,
        sender: str,
        instance: str,
        counters: Counter[str],
        rejects: RejectLog | None,
        settle: Callable[[str, Envelope], bool],
        probe_returned: Callable[[int], object],
        guard: SenderGuard | None = None,
    ) -> None:
        """`settle(request_id, reply)` accepts an answer, and returns False if its request is no longer open."""
        self._sender, self._instance, self._counters, self._rejects = sender, instance, counters, rejects
        self._settle, self._probe_returned, self._guard = settle, probe_returned, guard
        self._faults: set[str] = set()
        self.on_newcomer: list[Callable[[], object]] = []  # called at the first message of an unknown one
        self._routes = RoutingTable()
        self.heard = self._routes.wanted
        self.losses = Losses(sender, counters)

    def add(self, subject: str, receive: Receive, *, repeats: bool) -> Callable[[], bool]:
        """A subscription begins. Returns the function that ends it, which is true the first time."""
        self.forget(subject)
        return self._routes.add(subject, receive, repeats=repeats)

    def forget(self, subject: str) -> None:
        """Ignore the messages sent before a subscription; they are not losses."""
        self.losses.gaps.forget(lambda known: covers(subject, known))

    def on_frame(self, frame: bytes) -> None:
        """The transport has one."""
        try:
            envelope = decode(frame)
            if self._guard is not None and (fault := self._guard.fault(envelope)) is not None:
                self.refuse(fault, frame)
                return
            if envelope.subject == ParticipantStatus.subject:
                status = ParticipantStatus.decode(envelope.payload)
                if self._guard is not None and (whom := _other_in(status, envelope.sender)):
                    self.refuse(f"{envelope.sender[:80]} sends a status for {whom[:80]}", frame)
                    return
                last_seq = status.last_seq
                if not self.losses.gaps.beat(_process(envelope), last_seq, self._is_wanted):
                    for call in self.on_newcomer:
                        call()
        except MalformedFrame as error:
            self.reject(str(error), frame)
            return
        self._counters["received"] += 1
        if envelope.subject == QueryReceived.subject:
            envelope = in_session_of_payload(envelope)
        if envelope.subject.startswith(BusProbe.subject):
            if envelope.instance == self._instance:
                self._probe_returned(envelope.seq)
            return
        is_news = self.losses.observe(envelope)
        if not is_news:
            self._counters["repeated"] += 1
        if envelope.in_reply_to is not None and not self._settle(envelope.in_reply_to, envelope):
            self._counters["late_replies"] += 1
        routes = self._routes.find(envelope.subject)
        if not routes and not self._routes.was_wanted(envelope.subject):
            self.reject(f"unknown subject {envelope.subject}", frame)
        for receive in routes if is_news else self._routes.find_repeats(envelope.subject):
            try:
                if receive(envelope) is False:
                    self.losses.overflowed(envelope)
            except MalformedFrame as error:
                self.reject(str(error), frame)

    def reject(self, reason: str, data: bytes) -> None:
        """Count and sample a frame that violates the protocol."""
        self._counters["malformed"] += 1
        if self._rejects is not None:
            self._rejects.add(self._sender, reason, data)

    def refuse(self, fault: str, data: bytes) -> None:
        """Count and sample a message that its sender may not publish, and log each such fault once."""
        self._counters["refused"] += 1
        if fault not in self._faults and len(self._faults) < MAX_FAULTS:
            self._faults.add(fault)
            log.warning("refused: %s", fault)
        if self._rejects is not None:
            self._rejects.add(self._sender, fault, data)

    def _is_wanted(self, subject: str) -> bool:
        return bool(self._routes.find(subject))


def _other_in(status: ParticipantStatus, sender: str) -> str:
    """Return the participant for whom a status speaks, though another one sent it; empty for an own status. Only the
    supervisor speaks for others, its children.
    """
    if status.name != sender:
        return status.name
    return status.children[0].name if status.children and sender != SUPERVISOR else ""


class RoutingTable:
    """The subscriptions of one bus by subject or family. The receivers of each subject are cached."""

    def __init__(self) -> None:
        self._subscriptions: list[tuple[str, Receive, bool]] = []
        self._ended: set[str] = set()
        self._found: dict[str, tuple[Receive, ...]] = {}

    def add(self, subject: str, receive: Receive, *, repeats: bool = False) -> Callable[[], bool]:
        """Subscribe. Returns the function that undoes it, which is true the first time."""
        entry = (subject, receive, repeats)
        self._subscriptions.append(entry)
        self._found.clear()

        def end() -> bool:
            if entry not in self._subscriptions:
                return False
            self._subscriptions.remove(entry)
            self._ended.add(subject)
            self._found.clear()
            return True

        return end

    def find(self, subject: str) -> tuple[Receive, ...]:
        """Return all receivers of a subject."""
        found = self._found.get(subject)
        if found is None:
            if len(self._found) >= MAX_SUBJECTS:
                self._found.clear()
            found = tuple(receive for known, receive, _ in self._subscriptions if covers(known, subject))
            self._found[subject] = found
        return found

    def wanted(self) -> list[str]:
        """Return all subscribed subjects and families, without those of the bus itself, which receives all statuses."""
        counts = Counter(subject for subject, _, _ in self._subscriptions if not subject.startswith(BusProbe.subject))
        counts[ParticipantStatus.subject] -= 1
        return sorted(subject for subject, count in counts.items() if count > 0)

    def find_repeats(self, subject: str) -> list[Receive]:
        """Return the receivers that asked for repeated messages of a subject."""
        return [receive for known, receive, repeats in self._subscriptions if repeats and covers(known, subject)]

    def was_wanted(self, subject: str) -> bool:
        """Whether an ended subscription covered the subject: messages that were under way still arrive."""
        return any(covers(known, subject) for known in self._ended)


class Losses:
    """The losses of one bus that were not reported yet: gaps found by `gaps`, and messages for which a consumer had no
    room. Counts `missed` and `overflow`.
    """

    def __init__(self, observer: str, counters: Counter[str]) -> None:
        self.gaps = GapTracker(self._note)
        self._observer, self._counters = observer, counters
        self._unreported: Counter[tuple[Process, str]] = Counter()

    def observe(self, envelope: Envelope) -> bool:
        """Note an arrival; False for one that was seen already."""
        return self.gaps.observe(_process(envelope), envelope.subject, envelope.seq)

    def overflowed(self, envelope: Envelope) -> None:
        """A consumer had no room for an envelope."""
        self._counters["overflow"] += 1
        self._note(_process(envelope), envelope.subject, 1)

    def dropped(self, instance: str, missed: Mapping[str, int]) -> None:
        """Note that this bus itself has given up, by subject, so many recorded messages, which may be missing in the
        journal.
        """
        for subject, count in missed.items():
            self._note((self._observer, instance), subject, count)

    def take(self) -> list[BusGap]:
        """Return the losses noticed since the last call."""
        gaps = [
            BusGap(observer=self._observer, sender=sender, instance=instance, missed_subject=subject, missed=missed)
            for ((sender, instance), subject), missed in self._unreported.items()
        ]
        self._unreported.clear()
        return gaps

    def _note(self, process: Process, subject: str, missed: int) -> None:
        self._counters["missed"] += missed
        self._unreported[process, subject] += missed


Process = tuple[str, str]
"""A process that sends: its sender's name and its instance. The name is checked, the instance may be a forged one."""


def _process(envelope: Envelope) -> Process:
    return envelope.sender, envelope.instance


class GapTracker:
    """A counter of missing messages for each (process, subject).

    Sequence numbers count from 1. A listener that comes late starts at the first number it sees. A status beat carries
    the last number of each stream, so that a loss at the end of a stream is noticed, too.
    """

    def __init__(self, on_gap: Callable[[Process, str, int], None]) -> None:
        """`on_gap(process, subject, missed)` is called for each gap found."""
        self._on_gap = on_gap
        self._last: OrderedDict[tuple[Process, str], int] = OrderedDict()
        self._holes: OrderedDict[tuple[Process, str], list[range]] = OrderedDict()  # numbers missing below the last one
        self._beaten: OrderedDict[Process, None] = OrderedDict()  # processes whose status has arrived

    def observe(self, process: Process, subject: str, seq: int) -> bool:
        """Note one arrival; False if this number was seen already. One that was missed and is sent again is news."""
        key = (process, subject)
        last = self._last.get(key)
        if last is None:
            last = 0 if process in self._beaten and not is_said_again(subject) else seq - 1
            self._bound()
        elif seq <= last:
            return self._fills_a_hole(key, seq)
        self._last[key] = seq
        if seq > last + 1:
            self._miss(key, range(last + 1, seq))
        return True

    def beat(self, process: Process, last_seq: Mapping[str, int], wanted: Callable[[str], bool]) -> bool:
        """Compare the sequence numbers with those in the process's status beat, for each subject that is `wanted`
        here. Returns whether the process is known from an earlier beat.
        """
        known = process in self._beaten
        for subject, seq in last_seq.items():
            if not wanted(subject):
                continue
            key = (process, subject)
            last = self._last.get(key, 0 if known else seq)
            if seq > last:
                self._miss(key, range(last + 1, seq + 1))
            self._last[key] = max(seq, last)
            self._last.move_to_end(key)
        self._beaten[process] = None
        self._beaten.move_to_end(process)
        self._bound()
        return known

    def forget(self, wanted: Callable[[str], bool]) -> None:
        """Begin a new subscription: earlier messages on these subjects do not count as lost."""
        for key in [key for key in self._last if wanted(key[1])]:
            del self._last[key]
            self._holes.pop(key, None)
        self._beaten.clear()

    def _miss(self, key: tuple[Process, str], numbers: range) -> None:
        self._on_gap(*key, len(numbers))
        self._holes[key] = [*self._holes.get(key, ())[-MAX_HOLES + 1 :], numbers]
        if len(self._holes) > MAX_STREAMS:
            self._holes.popitem(last=False)

    def _fills_a_hole(self, key: tuple[Process, str], seq: int) -> bool:
        for index, hole in enumerate(holes := self._holes.get(key, [])):
            if seq in hole:
                holes[index : index + 1] = [
                    rest for rest in (range(hole.start, seq), range(seq + 1, hole.stop)) if rest
                ]
                return True
        return False

    def _bound(self) -> None:
        while len(self._last) >= MAX_STREAMS:
            (process, _), _ = self._last.popitem(last=False)
            self._beaten.pop(process, None)  # otherwise the forgotten stream would seem to start again, with a huge gap
        while len(self._beaten) >= MAX_STREAMS:
            self._beaten.popitem(last=False)
