"""What of an export may be said again on a living bus. Plain code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from local.apps.journal.journal_record import JournalRecord
from local.apps.tap.selection import Selection

# Said again, these would have the system work: ask its model, run its tools, stop a turn, change what it remembers.
WORK = Selection(("query.received", "query.cancel", "*.request.*", "user.feedback", "config.changed"))
# Said again, these would tell something untrue of the running system itself: who lives, what there is, what is safe.
MACHINERY = Selection(("journal.", "bus.", "participant.status", "tool.schema", "tool.schema.request"))


class PlayFilter:
    """Chooses what to play; `left_out` counts what is not, by the reason."""

    def __init__(self, selection: Selection, *, include_queries: bool) -> None:
        self._selection, self._include_queries = selection, include_queries
        self.left_out: Counter[str] = Counter()

    def choose(self, records: Iterable[JournalRecord]) -> Iterator[JournalRecord]:
        """The records that are selected, still have their payload, and are harmless or asked for."""
        for record in records:
            if not self._selection.wants(record.envelope):
                continue
            if reason := self._objection(record):
                self.left_out[reason] += 1
            else:
                yield record

    def _objection(self, record: JournalRecord) -> str:
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
