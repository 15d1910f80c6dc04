"""Participants on other machines: what they may declare, and the blobs that they read and store over the bus.

Problem: a participant shares the data directory with all others: it writes its declaration there, and large fields are
files in it. On another machine it has a key of the bus and nothing else. Its machine may be in other hands, so it must
get and say no more than the owner has permitted, and the bus may be cut at any moment.

Idea: the settings say what each such client may publish (`bus_clients`). It declares itself by message; the proxy's
process checks that against the settings and writes the file that all receivers read. Blobs travel in ranges, encrypted
between two keys, as messages reach all who subscribe: nobody else can read them, or send them again as his own. Every
range can be requested again.

Invariants: a declaration is never wider than the settings. A client reads only blobs that a message to it refers to,
and refers only to these and to those that it has stored. These rights are files, so that messages that are sent again
after a restart of the proxy are still accepted. A blob counts as stored once its digest was checked. Nothing of a blob
is written to a disk of the other machine, where no deletion would find it.

Rejected: knowing a blob's name as the right to read it, because every holder of a key sees all names. Telling a client
that a blob is already stored, which would tell it what others have. Larger ranges: they delay the messages behind them.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from local.bus.blobs import BlobStore, is_reference, references, unpack
from local.bus.bus import Bus
from local.bus.envelope import MARK, Envelope, is_packed
from local.bus.message import ErrorInfo, covers, parse_object
from local.bus.messages import BlobKept, BlobPart, BlobPut, BlobRequest, BusDeclare, BusDeclared
from local.bus.security import Declaration, Declarations, Keyring, seal, unseal
from local.core.bus_address import CurveKeys
from local.core.errors import BlobNotStored, LocalError, MalformedFrame, RequestTimeout

T = TypeVar("T")

RANGE_BYTES = 44 * 1024  # encrypted and in base64 it still fits into a payload without a blob
RANGES_AT_ONCE = 8
MAX_BLOB_BYTES = 64 * 1024 * 1024
RANGE_SECONDS = 120.0  # longer than a connection is usually cut
UPLOADS_AT_MOST = 3
HELD_BYTES = 4 * MAX_BLOB_BYTES
KEPT_SECONDS = 30 * 24 * 3600.0
TASKS_AT_MOST = 64  # of one client
# The most that one client stores: what no message refers to is removed after ten minutes. A small file takes a block.
STORED_BYTES, STORED_SECONDS, BLOCK_BYTES = 1024 * 1024 * 1024, 600.0, 4096


class NotPermitted(LocalError):
    """A participant on another machine wants more than the owner has permitted."""

    kind = "not_permitted"


@dataclass(frozen=True, slots=True)
class RemoteClient:
    """The permissions of a client on another machine: what it may declare, and the subjects that are meant for it."""

    may: Declaration
    hears: frozenset[str]


def speaking_for(name: str) -> frozenset[str]:
    """Return the subjects on which a client on another machine declares itself, and requests and stores blobs."""
    return frozenset(kind.subject + name for kind in (BusDeclare, BlobRequest, BlobPut))


HOST_SAYS = frozenset(kind.subject for kind in (BusDeclared, BlobPart, BlobKept))


class BlobRights:
    """The blobs that each client on another machine may read and refer to: an empty file for each, kept for 30 days."""

    def __init__(self, folder: Path, clients: Mapping[str, RemoteClient]) -> None:
        self._folder, self._clients = folder, clients

    def give(self, client: str, blob: str) -> None:
        """Let a client read a blob and refer to it. Raises `BlobNotStored` if that cannot be written."""
        path = self._path(client, blob)
        try:
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.touch(mode=0o600)
        except OSError as error:
            raise BlobNotStored(f"{path}: {error.strerror}") from None

    def has(self, client: str, blob: str) -> bool:
        """Whether a client may read a blob and refer to it."""
        return self._path(client, blob).exists()

    def fault(self, envelope: Envelope) -> str | None:
        """Give the receivers of a message their rights; returns why its sender may not send it, None if it may."""
        if envelope.sender in self._clients:
            values = parse_object(envelope.payload, "payload").values()
            named = (str(value[MARK]) for value in values if isinstance(value, dict) and MARK in value)
            foreign = [name for name in named if not self.has(envelope.sender, name)]
            if foreign:
                return f"{envelope.sender} refers to the blob {foreign[0][:80]}, which is not its own"
        if is_packed(envelope.payload):
            for client, known in self._clients.items():
                if any(covers(subject, envelope.subject) for subject in known.hears):
                    for name in _whole_fields(envelope.payload):
                        with suppress(BlobNotStored):  # the message is sent again, as the client cannot read it
                            self.give(client, name)
        return None

    def drop_old(self) -> None:
        """Remove the rights that were last given more than 30 days ago, and those of clients that are none any more."""
        known = {quote(client, safe="") for client in self._clients}
        for path in self._folder.glob("*/*"):
            with suppress(OSError):
                if path.parent.name not in known or path.stat().st_mtime < time.time() - KEPT_SECONDS:
                    path.unlink()

    def _path(self, client: str, blob: str) -> Path:
        name = hashlib.sha256(blob.encode("utf-8", "replace")).hexdigest()  # a client may give a blob any name
        return self._folder / quote(client, safe="") / name


def _whole_fields(payload: bytes) -> list[str]:
    """The names of the blobs that stand for fields; a user's text that looks like one is a blob itself."""
    return [str(value[MARK]) for value in parse_object(payload, "payload").values() if is_reference(value)]


@dataclass(slots=True)
class _Upload:
    blob: str
    data: bytearray
    missing: set[int]  # the starts of its ranges


class RemoteDesk:
    """The service, in the proxy's process, for the participants on other machines: it takes their declarations, and
    gives and takes blobs. `grants_key` returns the public key of the gatekeeper.
    """

    def __init__(
        self,
        clients: Mapping[str, RemoteClient],
        declarations: Declarations,
        keyring: Keyring,
        blobs: BlobStore,
        rights: BlobRights,
        grants_key: Callable[[], bytes | None],
    ) -> None:
        self._clients, self._declarations, self._keyring = clients, declarations, keyring
        self._blobs, self._rights, self._grants_key = blobs, rights, grants_key
        self._uploads: dict[str, _Upload] = {}  # one for each client
        self._stored: dict[str, tuple[float, int]] = {}  # by client: since when, and how many bytes
        self._tasks: set[asyncio.Task[None]] = set()
        self._under_way: Counter[str] = Counter()  # of them, by client

    @asynccontextmanager
    async def serving(self, bus: Bus) -> AsyncIterator[None]:
        """Answer requests on an open bus while the block lasts."""
        self._rights.drop_old()
        for kind, reply, answer in (
            (BusDeclare, BusDeclared, self._declare),
            (BlobRequest, BlobPart, self._part),
            (BlobPut, BlobKept, self._keep),
        ):
            bus.subscribe(kind.subject, partial(self._take, bus, kind, reply, answer), repeats=True)
        await bus.ready()
        try:
            yield
        finally:
            for task in self._tasks:
                task.cancel()

    def _take(
        self, bus: Bus, kind: Any, reply: Any, answer: Callable[[Any], Awaitable[Any]], envelope: Envelope
    ) -> bool:
        client = envelope.sender
        if self._under_way[client] >= TASKS_AT_MOST:
            return False
        request = kind.decode(envelope.payload)
        if request.client != client:
            return False

        async def serve() -> None:
            try:
                answered = await answer(request)
            except LocalError as error:
                bus.refuse(str(error), envelope.payload)
                answered = reply(client=request.client, error=ErrorInfo.of(error))
            with suppress(LocalError):  # the request is sent again
                await bus.publish(answered, envelope.trace(), in_reply_to=envelope.id)

        def served(task: asyncio.Task[None]) -> None:
            self._tasks.discard(task)
            self._under_way[client] -= 1

        task = asyncio.create_task(serve(), name=kind.subject)
        self._tasks.add(task)
        self._under_way[client] += 1
        task.add_done_callback(served)
        return True

    async def _declare(self, wanted: BusDeclare) -> BusDeclared:
        known, name = self._clients.get(wanted.client), wanted.client
        declaration = Declaration(frozenset(wanted.says), frozenset(wanted.serves))
        if known is None:
            raise NotPermitted(f"{name} is not listed as a tool under `bus_clients` in system.yaml")
        if not known.may.covers(declaration):
            raise NotPermitted(_beyond(name, known, declaration))
        self._declarations.write(name, declaration)
        return BusDeclared(client=name, grants_key=(self._grants_key() or b"").hex(), time=time.time())

    async def _part(self, request: BlobRequest) -> BlobPart:
        public_key = self._keyring.public_key(request.client)
        if public_key is None or not self._rights.has(request.client, request.blob):
            raise NotPermitted(f"{request.client} may not read the blob {request.blob[:80]}")
        data = await asyncio.to_thread(self._blobs.part, request.blob, request.start, RANGE_BYTES)
        return BlobPart(client=request.client, sealed=seal(data, self._keyring.server().secret, public_key))

    async def _keep(self, put: BlobPut) -> BlobKept:
        public_key = self._keyring.public_key(put.client)
        if put.client not in self._clients or public_key is None:
            raise NotPermitted(f"{put.client} may not store blobs")
        data = unseal(put.sealed, self._keyring.server().secret, public_key)
        return BlobKept(client=put.client, is_whole=await self._add(put, data))

    async def _add(self, put: BlobPut, data: bytes) -> bool:
        """Add a range; once all are there, check and store the blob. Returns whether it is stored."""
        length = min(RANGE_BYTES, put.size - put.start)
        if self._rights.has(put.client, put.blob) and self._blobs.find(put.blob):
            return True
        if put.size > MAX_BLOB_BYTES or put.start % RANGE_BYTES or len(data) != length:
            raise BlobNotStored(f"{put.client}: {len(data)} bytes at {put.start} of {put.size} are no range of a blob")
        upload = self._uploads.get(put.client)
        if upload is None or (upload.blob, len(upload.data)) != (put.blob, put.size):
            self._count(put.client, put.size)
            upload = _Upload(put.blob, bytearray(put.size), set(_starts(put.size)))
            self._uploads[put.client] = upload
        upload.data[put.start : put.start + len(data)] = data
        upload.missing.discard(put.start)
        if upload.missing:
            return False
        self._uploads.pop(put.client, None)
        whole = bytes(upload.data)
        if hashlib.sha256(whole).hexdigest() != put.blob:
            raise BlobNotStored(f"{put.client}: the content of the blob {put.blob[:80]} has another digest")
        await asyncio.to_thread(self._blobs.put, whole)
        self._rights.give(put.client, put.blob)
        return True

    def _count(self, client: str, size: int) -> None:
        """Count what a client is about to store. Raises `BlobNotStored` for too much in a short time."""
        now = time.monotonic()
        since, stored = self._stored.get(client, (now, 0))
        if now - since >= STORED_SECONDS:
            since, stored = now, 0
        stored += max(size, BLOCK_BYTES)
        if stored > STORED_BYTES:
            raise BlobNotStored(f"{client} may store {STORED_BYTES} bytes of large fields within {STORED_SECONDS:g} s")
        self._stored[client] = since, stored


def _beyond(name: str, known: RemoteClient, declaration: Declaration) -> str:
    """Why a declaration goes beyond what is permitted."""
    beyond = sorted(subject for subject in declaration.says if not known.may.allows(subject))
    beyond += [f"the consumer {consumer}" for consumer in sorted(declaration.serves - known.may.serves)]
    what = ", ".join(each[:80] for each in beyond[:5])
    return f"{name} declares {what}, which its line under `bus_clients` in system.yaml does not permit"


def _starts(size: int) -> range:
    return range(0, max(size, 1), RANGE_BYTES)


# The side of the participant on another machine.


async def declare(bus: Bus, declaration: Declaration, seconds: float) -> BusDeclared:
    """Declare a participant on another machine. Raises `NotPermitted`, `RequestTimeout`."""
    says, serves = tuple(sorted(declaration.says | speaking_for(bus.sender))), tuple(sorted(declaration.serves))
    declared = await bus.request(BusDeclare(client=bus.sender, says=says, serves=serves), BusDeclared, seconds)
    if declared.error is not None:
        raise NotPermitted(declared.error.message)
    return declared


class RemoteBlobs(BlobStore):
    """The blobs of the bus's machine, for a participant on another one. What is put here is held in memory until a
    message refers to it, and is stored before that message is sent.
    """

    def __init__(self, keys: CurveKeys) -> None:
        super().__init__(Path(os.devnull))  # no file is looked for
        self._keys = keys
        self._held: OrderedDict[str, bytes] = OrderedDict()
        self._uploading = asyncio.Lock()  # the other side takes one at a time
        self.bus: Bus

    def put(self, data: bytes) -> str:
        """Hold `data` until a message refers to it. Raises `BlobNotStored` if it is too large."""
        if len(data) > MAX_BLOB_BYTES:
            raise BlobNotStored(f"{len(data)} bytes are more than the {MAX_BLOB_BYTES} that travel over the bus")
        name = hashlib.sha256(data).hexdigest()
        self._held[name] = data
        while sum(map(len, list(self._held.values()))) > HELD_BYTES:
            self._held.popitem(last=False)
        return name

    async def pack_aside(self, payload: bytes) -> bytes:
        """Pack a payload, and store the blobs that it then refers to. Raises `BlobNotStored`."""
        packed = await super().pack_aside(payload)
        for name in references(packed):
            if (data := self._held.get(name)) is not None:
                async with self._uploading:
                    await self._upload(name, data)
                self._held.pop(name, None)
        return packed

    async def unpack_aside(self, payload: bytes) -> bytes:
        """Fetch the fields that a payload refers to. Raises `MalformedFrame`, `RequestTimeout`."""
        sizes = references(payload)
        fetched = {name: await self._fetch(name, sizes[name]) for name in _whole_fields(payload)}
        return await asyncio.to_thread(unpack, payload, fetched.__getitem__)

    async def _fetch(self, name: str, size: int) -> bytes:
        if not 0 <= size <= MAX_BLOB_BYTES:
            raise MalformedFrame(f"blob {name[:80]} has {size} bytes; at most {MAX_BLOB_BYTES} travel over the bus")
        data = b"".join(await _side_by_side(partial(self._part, name), size))
        if hashlib.sha256(data).hexdigest() != name:
            raise MalformedFrame(f"blob {name[:80]} is damaged")
        return data

    async def _part(self, name: str, start: int) -> bytes:
        request = BlobRequest(client=self.bus.sender, blob=name, start=start)
        part = await self.bus.request(request, BlobPart, RANGE_SECONDS)
        if part.error is not None:
            raise MalformedFrame(part.error.message)
        return unseal(part.sealed, self._keys.secret, self._keys.server_public)

    async def _upload(self, name: str, data: bytes) -> None:
        for _ in range(UPLOADS_AT_MOST):  # a proxy that was started again has lost what was there of it
            if any(await _side_by_side(partial(self._put, name, data), len(data))):
                return
        raise BlobNotStored(f"blob {name} could not be stored on the machine of the bus")

    async def _put(self, name: str, data: bytes, start: int) -> bool:
        sealed = seal(data[start : start + RANGE_BYTES], self._keys.secret, self._keys.server_public)
        put = BlobPut(client=self.bus.sender, blob=name, size=len(data), start=start, sealed=sealed)
        try:
            kept = await self.bus.request(put, BlobKept, RANGE_SECONDS)
        except RequestTimeout as error:
            raise BlobNotStored(str(error)) from None
        if kept.error is not None:
            raise BlobNotStored(kept.error.message)
        return kept.is_whole


async def _side_by_side(one: Callable[[int], Awaitable[T]], size: int) -> list[T]:
    """Return the results for all ranges of a blob, of which a few are under way at a time."""
    places = asyncio.Semaphore(RANGES_AT_ONCE)

    async def placed(start: int) -> T:
        async with places:
            return await one(start)

    tasks = [asyncio.create_task(placed(start)) for start in _starts(size)]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
