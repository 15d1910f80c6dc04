"""Fetches one GGUF file: goes on where an earlier attempt has ended, and keeps nothing that is not as described."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import hashlib
import os
import shutil
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import httpx

from local.backoff import Backoff
from local.errors import ModelError
from local.models.hub.hub import Hub, refused, unreachable
from local.models.hub.hub_file import HubFile
from local.models.hub.model_folder import MAGIC

CHUNK_BYTES = 1024 * 1024
SPARE_BYTES = 256 * 1024 * 1024  # left free for everything else that is kept
_FULL = (errno.ENOSPC, errno.EDQUOT)
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0  # seconds between two attempts
TRIES = 5  # one after the other without a byte


class GgufDownload:
    """One file on its way to `target`. Until all of it is there and is what the hub has described, it lies beside it as
    `<name>.<identity>.part`, and another attempt goes on from there.
    """

    def __init__(self, hub: Hub, file: HubFile, target: Path) -> None:
        self._hub, self._file, self._target = hub, file, target
        self._digest = hashlib.sha256()

    async def run(self) -> AsyncGenerator[tuple[int, int | None], None]:
        """Yields how many bytes are there, and of how many. Raises `ModelError`: unreachable, model_missing,
        unauthorised, disk_full, unwritable, checksum, bad_model or busy."""
        size, identity = self._file.size, self._file.sha256[:12]
        if not identity:
            size, identity = await self._look()
        part = self._target.with_name(f"{self._target.name}.{identity}.part")
        with _opened(part) as file:
            done = await asyncio.to_thread(self._take_up, file)
            self._require_room(size, done)
            yield done, size
            pauses, tries = Backoff(FIRST_PAUSE, LONGEST_PAUSE), 0
            while size is None or done < size:
                before, failure = done, None
                try:
                    async for there in self._fetch(file, before, size):
                        done = there
                        yield done, size
                    size = size if size is not None else done
                except httpx.HTTPError as error:
                    failure = error
                tries = 0 if done > before else tries + 1
                if tries >= TRIES:
                    raise unreachable(self._file.url, failure or EOFError("it sends nothing")) from failure
                if done != size:
                    await asyncio.sleep(pauses.next() if done == before else FIRST_PAUSE)
            await asyncio.to_thread(self._finish, file, part, done)

    async def _look(self) -> tuple[int | None, str]:
        """Size and identity of a file that no hub describes, by what its server says of it."""
        try:
            answer = await self._hub.client.head(self._file.url, headers=self._hub.headers_for(self._file.url))
        except httpx.HTTPError as error:
            raise unreachable(self._file.url, error) from error
        if not answer.is_success:
            raise refused(answer, self._file.name)
        length = answer.headers.get("Content-Length", "")
        said = "|".join(answer.headers.get(name, "") for name in ("ETag", "Last-Modified")) + length
        return (int(length) if length.isdigit() else None), hashlib.sha256(said.encode()).hexdigest()[:12]

    def _take_up(self, file: BinaryIO) -> int:
        """Read what an earlier attempt has left; gives how much that is."""
        file.seek(0)
        while data := file.read(CHUNK_BYTES):
            self._digest.update(data)
        return file.tell()

    def _require_room(self, size: int | None, done: int) -> None:
        free = shutil.disk_usage(self._target.parent).free
        missing = (size or done) - done
        if missing and missing + SPARE_BYTES > free:
            needed = f"{self._file.name} needs {missing / 1e9:.1f} GB more, and {free / 1e9:.1f} GB are free"
            raise ModelError(f"{needed} at {self._target.parent}; make room and pull it again", kind="disk_full")

    async def _fetch(self, file: BinaryIO, done: int, size: int | None) -> AsyncGenerator[int, None]:
        """The rest of the file, piece by piece; yields how much is there after each."""
        headers = {**self._hub.headers_for(self._file.url), "Accept-Encoding": "identity"}
        if done:
            headers["Range"] = f"bytes={done}-"
        async with self._hub.client.stream("GET", self._file.url, headers=headers) as answer:
            if not answer.is_success:
                raise refused(answer, self._file.name)
            if done and answer.status_code != httpx.codes.PARTIAL_CONTENT:  # it gives only the whole
                done = await asyncio.to_thread(self._restart, file)
            async for data in answer.aiter_bytes(CHUNK_BYTES):
                done += len(data)
                if size is not None and done > size:
                    raise ModelError(f"{self._file.name} is longer than the hub says: {size} bytes", kind="checksum")
                await asyncio.to_thread(self._write, file, data)
                yield done

    def _restart(self, file: BinaryIO) -> int:
        file.seek(0)
        file.truncate()
        self._digest = hashlib.sha256()
        return 0

    def _write(self, file: BinaryIO, data: bytes) -> None:
        if file.tell() == 0 and not data.startswith(MAGIC):
            raise ModelError(f"{self._file.url} is no GGUF file: it does not begin with GGUF", kind="bad_model")
        rest = memoryview(data)
        try:
            while rest:
                written = file.write(rest)
                self._digest.update(rest[:written])
                rest = rest[written:]
        except OSError as error:
            kind = "disk_full" if error.errno in _FULL else "unwritable"
            advice = "what is there is kept; make room and pull it again"
            raise ModelError(f"{self._target.parent}: {error.strerror}; {advice}", kind=kind) from None

    def _finish(self, file: BinaryIO, part: Path, done: int) -> None:
        if done == 0:
            raise ModelError(f"{self._file.url} is empty", kind="bad_model")
        if self._file.sha256 and self._digest.hexdigest() != self._file.sha256:
            part.unlink()
            found = f"its SHA-256 is {self._digest.hexdigest()[:12]}…, not {self._file.sha256[:12]}…"
            raise ModelError(f"{self._file.name} did not arrive as it is: {found}; pull it again", kind="checksum")
        os.fsync(file.fileno())
        part.replace(self._target)


@contextmanager
def _opened(part: Path) -> Iterator[BinaryIO]:
    """The file to write to, held by this process alone."""
    try:
        part.parent.mkdir(parents=True, exist_ok=True)
        with part.open("a+b", buffering=0) as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield file
    except BlockingIOError:
        raise ModelError(f"{part.name} is being pulled already; wait for it", kind="busy") from None
    except OSError as error:
        kind = "disk_full" if error.errno in _FULL else "unwritable"
        raise ModelError(f"{part} cannot be written: {error.strerror}", kind=kind) from None
