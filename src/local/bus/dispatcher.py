"""What becomes of a frame that arrives: counted, checked, and given to whoever subscribed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from local.bus.losses import Losses
from local.bus.reject_log import RejectLog
from local.errors import MalformedFrame
from local.protocol.bus_messages import BusProbe
from local.protocol.envelope import Envelope, decode
from local.protocol.messages import ParticipantStatus
from local.protocol.subjects import covers

Receive = Callable[[Envelope], object]

MAX_SUBJECTS = 4096


class Dispatcher:
    """One bus's incoming side. Counts `received`, `repeated`, `late_replies` and `malformed`, and what `Losses` counts.

    What is sent again and has arrived before goes to those only who asked for repeats.
    """

    def __init__(
        self,
        sender: str,
        instance: str,
        counters: Counter[str],
        rejects: RejectLog | None,
        settle: Callable[[str, Envelope], bool],
        probe_returned: Callable[[int], object],
    ) -> None:
        """`settle(request_id, reply)` takes an answer, and is false where nobody waits for it any more."""
        self._sender, self._instance, self._counters, self._rejects = sender, instance, counters, rejects
        self._settle, self._probe_returned = settle, probe_returned
        self.on_newcomer: list[Callable[[], object]] = []  # called when somebody is heard who was not known
        self._routes = RoutingTable()
        self.losses = Losses(sender, counters)

    def add(self, subject: str, receive: Receive, *, repeats: bool) -> Callable[[], bool]:
        """A subscription begins. Returns the function that ends it, which is true the first time."""
        self.forget(subject)
        return self._routes.add(subject, receive, repeats=repeats)

    def forget(self, subject: str) -> None:
        """What went by before a subscription is not our loss."""
        self.losses.gaps.forget(lambda known: covers(subject, known))

    def on_frame(self, frame: bytes) -> None:
        """The transport has one."""
        try:
            envelope = decode(frame)
            if envelope.subject == ParticipantStatus.subject:
                last_seq = ParticipantStatus.decode(envelope.payload).last_seq
                if not self.losses.gaps.beat(envelope.instance, last_seq, self._is_wanted):
                    for call in self.on_newcomer:
                        call()
        except MalformedFrame as error:
            self.reject(str(error), frame)
            return
        self._counters["received"] += 1
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
            self.reject(f"subject {envelope.subject} is not known here", frame)
        for receive in routes if is_news else self._routes.find_repeats(envelope.subject):
            try:
                if receive(envelope) is False:
                    self.losses.overflowed(envelope)
            except MalformedFrame as error:
                self.reject(str(error), frame)

    def reject(self, reason: str, data: bytes) -> None:
        """Count and sample something that is not what the protocol says."""
        self._counters["malformed"] += 1
        if self._rejects is not None:
            self._rejects.add(self._sender, reason, data)

    def _is_wanted(self, subject: str) -> bool:
        return bool(self._routes.find(subject))


class RoutingTable:
    """Who gets what: subscriptions by subject or family; the receivers of each subject seen are remembered."""

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
        """Everybody who wants a subject."""
        found = self._found.get(subject)
        if found is None:
            if len(self._found) >= MAX_SUBJECTS:
                self._found.clear()
            found = tuple(receive for known, receive, _ in self._subscriptions if covers(known, subject))
            self._found[subject] = found
        return found

    def find_repeats(self, subject: str) -> list[Receive]:
        """Everybody who wants to have a subject's messages even if they have arrived before."""
        return [receive for known, receive, repeats in self._subscriptions if repeats and covers(known, subject)]

    def was_wanted(self, subject: str) -> bool:
        """Whether a subscription that has ended covered it: what was on its way then still arrives."""
        return any(covers(known, subject) for known in self._ended)
