"""What a journal has acknowledged, synced in a small file of its own: whoever loses its tail is found out.

Two slots, written in turn and far enough apart that one write cannot tear both; the valid one with more changes counts.
"""

from __future__ import annotations

import hashlib
import logging
import os
import struct
from pathlib import Path
from typing import Self

from local.errors import StoreDamaged, StoreGone
from local.journal.store.schema import DIGEST_BYTES, JournalState

log = logging.getLogger(__name__)

SLOT_BYTES = 4096
_MAGIC = b"L2MARK\0\1"
_FIELDS = struct.Struct(f"<{len(_MAGIC)}sQQQ?{DIGEST_BYTES}s")
_CHECKSUM_BYTES = 8


class HighWaterMark:
    """The file, open for writing; use as a context manager. Raises `StoreDamaged` when neither slot is valid."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._slot, self.state = _newest(path)
        self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def advance(self, state: JournalState) -> None:
        """Note that all of `state` may be acknowledged; it is on the disk when this returns. Raises `OSError`."""
        slot = 1 - self._slot  # never over the one that counts
        self._file.seek(slot * SLOT_BYTES)
        self._file.write(_packed(state))
        getattr(os, "fdatasync", os.fsync)(self._file.fileno())
        self._slot, self.state = slot, state

    def has_its_name(self) -> bool:
        """Whether the next start would find it: nobody has taken it away, or put another one in its place."""
        try:
            return os.path.samestat(self._path.stat(), self._opened)
        except (FileNotFoundError, NotADirectoryError):
            return False

    def make_anew(self) -> None:
        """Put one with this state under its name: a start without it, or with an older one, would take a sound journal
        for a damaged one. Raises `OSError`, and `StoreGone` where its folder is not there any more."""
        try:
            create_mark(self._path, self.state)
        except (FileNotFoundError, NotADirectoryError):
            raise StoreGone(self._path) from None
        log.warning("%s was removed or replaced while the system runs: it is made anew", self._path)
        self._file.close()
        self._open()
        self._slot = 0

    def _open(self) -> None:
        self._file = self._path.open("r+b", buffering=0)
        self._opened = os.fstat(self._file.fileno())


def mark_path(path: Path) -> Path:
    """The high-water mark of the journal at `path`."""
    return path.with_name(path.name + ".mark")


def create_mark(path: Path, state: JournalState) -> None:
    """Write a new mark at `path`, whole or not at all."""
    half_made = path.with_name(path.name + ".new")
    with half_made.open("wb") as file:
        file.write(_packed(state).ljust(SLOT_BYTES, b"\0") * 2)
        file.flush()
        os.fsync(file.fileno())
    half_made.replace(path)
    sync_folder(path.parent)


def read_mark(path: Path) -> JournalState | None:
    """What the mark at `path` says; None when there is none or neither slot is valid."""
    try:
        return _newest(path)[1]
    except (FileNotFoundError, StoreDamaged):
        return None


def sync_folder(folder: Path) -> None:
    """Have the names in `folder` on the disk; where folders cannot be synced, that is the system's business."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def _newest(path: Path) -> tuple[int, JournalState]:
    content = path.read_bytes()
    found = [
        (slot, state)
        for slot in (0, 1)
        if (state := _unpacked(content[slot * SLOT_BYTES : (slot + 1) * SLOT_BYTES])) is not None
    ]
    if not found:
        raise StoreDamaged(f"{path}: neither slot of the high-water mark is valid")
    return max(found, key=lambda pair: pair[1].changes)


def _packed(state: JournalState) -> bytes:
    body = _FIELDS.pack(_MAGIC, *state)
    return body + hashlib.blake2b(body, digest_size=_CHECKSUM_BYTES).digest()


def _unpacked(slot: bytes) -> JournalState | None:
    body = slot[: _FIELDS.size]
    checksum = slot[_FIELDS.size : _FIELDS.size + _CHECKSUM_BYTES]
    if len(body) < _FIELDS.size or hashlib.blake2b(body, digest_size=_CHECKSUM_BYTES).digest() != checksum:
        return None
    magic, *fields = _FIELDS.unpack(body)
    return JournalState(*fields) if magic == _MAGIC else None
