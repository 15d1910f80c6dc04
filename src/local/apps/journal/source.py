"""The journal of a data directory, as the commands read it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from local.bus.blobs import BlobStore
from local.config import data_dir as find_data_dir
from local.journal.store.schema import FILE_NAME
from local.journal.store.view import JournalView


class Source(NamedTuple):
    """The journal, and the large fields that lie beside it."""

    journal: JournalView
    blobs: BlobStore


@contextmanager
def open_source(data_dir: Path | None) -> Iterator[Source]:
    """Open what lies in the data directory, for reading. Raises `NotOnRecord`, `StoreFailed`."""
    folder = find_data_dir(data_dir)
    with JournalView(folder / FILE_NAME) as journal:
        yield Source(journal, BlobStore(folder / "blobs"))
