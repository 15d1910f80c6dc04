"""Large fields outside the frame: a content-addressed store, and payloads that carry a reference instead.

A reference is `{"$blob": sha256, "size": bytes}` in place of a payload's top-level field; the blob is that field's
JSON. A reference with more fields is left unresolved: it names a blob that is kept with the message and is fetched on
request.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic_core import from_json, to_json

from local.bus.envelope import FIELD_LIMIT, MARK, is_packed
from local.bus.message import parse_object
from local.core.errors import BlobNotStored, MalformedFrame

NAME_LENGTH = 64
SKIPPED_AT_ONCE = 1_000_000  # characters


class BlobStore:
    """A folder of files that are named by the SHA-256 of their content. The same content is stored once."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def put(self, data: bytes) -> str:
        """Store `data` durably; returns its name, 64 hexadecimal digits. Raises `BlobNotStored`."""
        name = hashlib.sha256(data).hexdigest()
        try:
            try:
                os.utime(self._path(name))  # it is needed again and must not be cleared as a left-over
            except FileNotFoundError:
                self._write(self._path(name), data)
        except OSError as error:
            raise BlobNotStored(f"{len(data)} bytes could not be stored in {self._directory}: {error}") from None
        return name

    def get(self, name: str) -> bytes:
        """Return the content. Raises `MalformedFrame` if there is no such blob or it is damaged."""
        try:
            data = self._path(name).read_bytes()
        except (OSError, ValueError):
            raise MalformedFrame(f"blob {name[:80]} is not in the store") from None
        if hashlib.sha256(data).hexdigest() != name:
            raise MalformedFrame(f"blob {name} is damaged")
        return data

    def part(self, name: str, start: int, length: int) -> bytes:
        """Read that many bytes from `start` on, unchecked. Raises `MalformedFrame` if there is no such blob."""
        try:
            with self._path(name).open("rb") as file:
                file.seek(start)
                return file.read(length)
        except (OSError, ValueError):
            raise MalformedFrame(f"blob {name[:80]} is not in the store") from None

    def text(self, name: str, start: int, length: int) -> str:
        """Read that many characters of a text from the character `start` on; memory use does not grow with the text.
        Raises `MalformedFrame` if there is no such blob.
        """
        try:
            with self._path(name).open(encoding="utf-8", errors="replace", newline="") as file:
                while start > 0 and (skipped := file.read(min(start, SKIPPED_AT_ONCE))):
                    start -= len(skipped)
                return file.read(length)
        except (OSError, ValueError):
            raise MalformedFrame(f"blob {name[:80]} is not in the store") from None

    def find(self, name: str) -> Path | None:
        """The file of a blob, if there is one."""
        try:
            path = self._path(name)
        except ValueError:
            return None
        return path if path.is_file() else None

    def remove(self, name: str) -> None:
        """Delete a blob; without effect if there is none of that name."""
        self._path(name).unlink(missing_ok=True)

    def older_than(self, seconds: float) -> set[str]:
        """Return the names of the blobs that were last stored longer ago than this."""
        latest = time.time() - seconds
        return {path.name for path, status in self._files() if status.st_mtime <= latest}

    def size(self) -> int:
        """The bytes of all blobs together."""
        return sum(status.st_size for _, status in self._files())

    def mentioning(self, text: str) -> set[str]:
        """The names of the blobs that contain a text. Reads all of them."""
        return {path.name for path, _ in self._files() if text.encode() in path.read_bytes()}

    def _files(self) -> Iterator[tuple[Path, os.stat_result]]:
        for path in self._directory.glob(f"*/{'?' * NAME_LENGTH}"):
            with suppress(FileNotFoundError):  # removed in the meantime
                yield path, path.stat()

    def pack(self, payload: bytes) -> bytes:
        """Move every top-level field above 64 kB (and any that is a reference already) out of a payload."""
        fields: dict[str, Any] = from_json(payload)
        packed = {}
        for key, value in fields.items():
            data = to_json(value)
            must_move = len(data) > FIELD_LIMIT or is_reference(value)
            packed[key] = {MARK: self.put(data), "size": len(data)} if must_move else value
        return to_json(packed)

    async def pack_aside(self, payload: bytes) -> bytes:
        """`pack`, without holding up the loop."""
        return await asyncio.to_thread(self.pack, payload)

    async def unpack_aside(self, payload: bytes) -> bytes:
        """`unpack`, without holding up the loop."""
        return await asyncio.to_thread(self.unpack, payload)

    def unpack(self, payload: bytes) -> bytes:
        """Undo `pack`. Raises `MalformedFrame` for a reference that leads nowhere."""
        return unpack(payload, self.get)

    def _write(self, path: Path, data: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        part = path.with_suffix(f".{os.getpid()}.{threading.get_ident()}.part")
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)

    def _path(self, name: str) -> Path:
        if len(name) != NAME_LENGTH or not all(c in "0123456789abcdef" for c in name):
            raise ValueError(name)
        return self._directory / name[:2] / name


def read_payload(payload: bytes, blobs: BlobStore | None = None) -> dict[str, Any] | str:
    """Return the object in a payload, with large fields fetched from `blobs`; as text if the payload is no JSON object.

    Lenient, because a tap also shows invalid messages: a reference to a blob that is not in the store stays unchanged.
    """
    try:
        value = parse_object(payload, "payload")
    except MalformedFrame:
        return payload.decode(errors="replace")
    if blobs is None or not is_packed(payload):
        return value
    try:
        return parse_object(blobs.unpack(payload), "payload")
    except MalformedFrame:
        return value


def unpack(payload: bytes, get: Callable[[str], bytes]) -> bytes:
    """Put the fields that references stand for, which `get` returns by name, back into a payload. Raises
    `MalformedFrame`.
    """
    fields = parse_object(payload, "payload")
    for key, value in fields.items():
        if is_reference(value):
            try:
                fields[key] = from_json(get(name := str(value[MARK])), allow_inf_nan=False)
            except ValueError as error:
                raise MalformedFrame(f"blob {name} is not a field's JSON: {error}") from None
    return to_json(fields)


def references(payload: bytes) -> dict[str, int]:
    """The names of the blobs that a payload refers to, with the bytes of each. Raises `MalformedFrame`."""
    values = parse_object(payload, "payload").values() if is_packed(payload) else ()
    found = (value for value in values if isinstance(value, dict) and value.keys() >= {MARK, "size"})
    return {str(value[MARK]): _bytes(value["size"]) for value in found}


def _bytes(size: object) -> int:
    return max(0, size) if isinstance(size, int) else 0


def is_reference(value: Any) -> bool:
    """Whether a field of a packed payload stands for a blob."""
    return isinstance(value, dict) and value.keys() == {MARK, "size"}
