"""Messages as the journal has them, for stores that are made again from it."""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

from local.bus.blobs import BlobStore
from local.errors import LocalError
from local.journal.store.schema import FILE_NAME
from local.journal.store.view import JournalView
from local.protocol.envelope import Envelope, decode
from local.protocol.message import Message


class Recorded(NamedTuple):
    """A message, its envelope, and when it was committed, in seconds since 1970."""

    message: Message
    envelope: Envelope
    committed_at: float


def recorded(data_dir: Path, *kinds: type[Message]) -> Generator[Recorded, None, None]:
    """All messages of these kinds that were not deleted, oldest first. Raises `NotOnRecord`, `StoreFailed`.

    One that nobody can read any more, since a large field of it is missing, is left out.
    """
    by_subject = {kind.subject: kind for kind in kinds}
    blobs = BlobStore(data_dir / "blobs")
    with JournalView(data_dir / FILE_NAME) as journal:
        for stored in journal.read_all(subjects=list(by_subject)):
            if stored.redacted:
                continue
            envelope = decode(stored.entry.frame)
            try:
                message = by_subject[envelope.subject].decode(blobs.unpack(envelope.payload))
            except LocalError:
                continue
            yield Recorded(message, envelope, stored.committed_at)
