"""What of an export may be said again on a living bus, and in whose name. Plain code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from local.apps.journal.record import Record
from local.apps.tap.selection import Selection
from local.protocol.envelope import Envelope, new_id

SENDER = "player"
# Said again, these would have the system work: ask its model, run its tools, stop a turn, change what it remembers.
WORK = Selection(("query.received", "query.cancel", "*.request.*", "user.feedback", "config.changed"))
# Said again, these would tell something untrue of the running system itself: who lives, what there is, what is safe.
MACHINERY = Selection(("journal.", "bus.", "participant.status", "tool.schema", "tool.schema.request"))


class Casting:
    """Chooses what to play; `left_out` counts what is not, by the reason."""

    def __init__(self, selection: Selection, *, include_queries: bool) -> None:
        self._selection, self._include_queries = selection, include_queries
        self.left_out: Counter[str] = Counter()

    def choose(self, records: Iterable[Record]) -> Iterator[Record]:
        """Those that are selected, still have their payload, and are harmless or asked for."""
        for record in records:
            if not self._selection.wants(record.envelope):
                continue
            if reason := self._objection(record):
                self.left_out[reason] += 1
            else:
                yield record

    def _objection(self, record: Record) -> str:
        subject = record.envelope.subject
        if record.redacted:
            return "whose payload was removed"
        if not isinstance(record.content(None), dict):
            return "whose payload is no JSON object"
        if MACHINERY.wants_subject(subject):
            return "about the machinery of the system they come from"
        if WORK.wants_subject(subject) and not self._include_queries:
            return "that would make the system work; --include-queries plays them, too"
        return ""


class Recaster:
    """Puts the player in the sender's place. Envelope ids are fresh unless `keeps_ids`; links between them stay.

    A reply to what is not played answers nobody: a request with that id could still be waiting in a living system.
    """

    def __init__(self, instance: str, *, keeps_ids: bool) -> None:
        self._instance, self._keeps_ids = instance, keeps_ids
        self._ids: dict[str, str] = {}
        self._seqs: Counter[str] = Counter()

    def recast(self, envelope: Envelope, now: float) -> Envelope:
        """The envelope to send; `now` is in seconds since 1970."""
        self._seqs[envelope.subject] += 1
        self._ids[envelope.id] = envelope.id if self._keeps_ids else new_id()
        return envelope._replace(
            id=self._ids[envelope.id],
            sender=SENDER,
            instance=self._instance,
            seq=self._seqs[envelope.subject],
            cause_id=self._ids.get(envelope.cause_id or "", envelope.cause_id),
            in_reply_to=self._ids.get(envelope.in_reply_to or ""),
            sent_at=now,
        )
