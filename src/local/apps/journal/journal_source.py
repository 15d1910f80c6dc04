"""The journal of a data directory, as the commands read it: while a system runs there, or not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from local.apps.journal.journal_record import JournalRecord
from local.apps.tap.selection import Selection
from local.bus.blobs import BlobStore
from local.environment import data_dir as find_data_dir
from local.errors import NotOnRecord
from local.journal.store.schema import FILE_NAME
from local.journal.store.view import JournalView

MANY = 5


class JournalSource(NamedTuple):
    """The journal, and the large fields that lie beside it."""

    journal: JournalView
    blobs: BlobStore

    def find(self, key: str) -> Iterator[JournalRecord]:
        """The messages of the session, or of the query, with this id, or with the only one that begins like this, in
        order. Raises `NotOnRecord`."""
        if not self._is_session(key) and not self._is_query(key):
            key = self._whole(key)
        is_session = self._is_session(key)
        found = self.journal.read_all(session_id=key) if is_session else self.journal.read_all(correlation_id=key)
        return map(JournalRecord.of, found)

    def select(
        self, selection: Selection, since: float | None = None, until: float | None = None
    ) -> Iterator[JournalRecord]:
        """The selected messages that were committed from `since` on and before `until`, oldest first. Raises
        `NotOnRecord` unless it is one session's id, or its beginning."""
        if selection.session_id is not None and not self._is_session(selection.session_id):
            selection = replace(selection, session_id=self._whole(selection.session_id))
        subjects = () if "" in selection.subscriptions() else selection.subscriptions()
        stored = self.journal.read_all(subjects=subjects, session_id=selection.session_id, since=since, until=until)
        return (record for record in map(JournalRecord.of, stored) if selection.wants(record.envelope))

    def _is_session(self, key: str) -> bool:
        return bool(self.journal.read(limit=1, session_id=key))

    def _is_query(self, key: str) -> bool:
        return bool(self.journal.read(limit=1, correlation_id=key))

    def _whole(self, beginning: str) -> str:
        """The only id of a session or query that begins like this."""
        match self.journal.ids(beginning, most=MANY) if beginning else []:
            case [whole]:
                return whole
            case []:
                text = f"no session or query {beginning!a} is on record; `local2 journal list` shows the sessions"
            case ids:
                more = ", …" if len(ids) == MANY else ""
                text = f"several ids begin with {beginning!a}: {', '.join(ids)}{more}; give more of it"
        raise NotOnRecord(text)


@contextmanager
def open_source(data_dir: Path | None) -> Iterator[JournalSource]:
    """Open what lies in the data directory, for reading. Raises `NotOnRecord`, `StoreFailed`."""
    folder = find_data_dir(data_dir)
    with JournalView(folder / FILE_NAME) as journal:
        yield JournalSource(journal, BlobStore(folder / "blobs"))
