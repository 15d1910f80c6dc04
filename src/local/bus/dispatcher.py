"""What becomes of a frame that arrives: counted, checked, and given to whoever subscribed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from local.bus.losses import Losses
from local.bus.rejects import RejectLog
from local.bus.routes import Receive, Routes
from local.errors import MalformedFrame
from local.protocol.envelope import Envelope, decode
from local.protocol.messages import ParticipantStatus
from local.protocol.subjects import BUS_PROBE, PARTICIPANT_STATUS, covers


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
        self._routes = Routes()
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
            if envelope.subject == PARTICIPANT_STATUS:
                last_seq = ParticipantStatus.decode(envelope.payload).last_seq
                self.losses.gaps.beat(envelope.instance, last_seq, self._is_wanted)
        except MalformedFrame as error:
            self.reject(str(error), frame)
            return
        self._counters["received"] += 1
        if envelope.subject.startswith(BUS_PROBE):
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
