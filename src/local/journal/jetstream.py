"""The journal's log on NATS JetStream: a stream with one subject, kept by several servers; and beside it what a cell
needs to continue on another machine.

An append expects the last position, so that the server itself refuses who is behind. An answer that was lost is found
again: the record is at that position, or another owner's is. While the stream has no leader, and while no server can be
reached, NATS reports one fact under many names (`_is_passing`); such a call is repeated for some seconds.

Generations. A message that is deleted inside a stream stays in the servers' Raft logs for a while, and a log without an
end grows. So a log is a row of generations: each has a stream, and an object store with a snapshot of the data
directory and the files that never change (blobs, attachments). The stream begins with the last record that the snapshot
contains; positions continue. A key names the present generation. The next one is begun in this order: its snapshot and
its first records are stored; a last record in the old stream names it, so that nothing is appended there any more; the
records before that one are carried over; the key is changed; the old stream and the old store are deleted. A process
that meets that last record finishes what is missing, so an interrupted move does no harm; several may do it at once.

A stream is used only if a confirmed record survives: it is stored in files on as many servers as the setting says, and
each of these servers syncs every write (`sync_interval: always`), which is not the default of NATS. Only the servers'
monitoring says whether they do.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from functools import partial
from io import BufferedWriter
from pathlib import Path
from typing import NamedTuple, Self, TypeVar
from urllib.parse import parse_qsl, urlsplit

import httpx
import nats.errors as errors
from nats.aio.client import Client
from nats.js.api import (
    AckPolicy,
    ConsumerConfig,
    DeliverPolicy,
    KeyValueConfig,
    ObjectStoreConfig,
    RawStreamMsg,
    StorageType,
    StreamConfig,
    StreamInfo,
)
from nats.js.client import JetStreamContext
from nats.js.errors import (
    APIError,
    KeyWrongLastSequenceError,
    NoStreamResponseError,
    NotFoundError,
    ServiceUnavailableError,
)
from nats.js.kv import KeyValue
from nats.js.object_store import ObjectStore

from local.core.errors import ConfigError, StoreFailed, StoreFenced, StoreUnwritable
from local.journal.log import Moved, moved_to, pack

log = logging.getLogger(__name__)
T = TypeVar("T")

SECONDS = 10.0  # for which a call is repeated: an election of a leader takes up to eight
CALL_SECONDS = 2
PAUSE_SECONDS = 0.1
PAGE = 64  # records read at once
OLDEST = (2, 11)
MAX_PAYLOAD = 4 * 1024 * 1024  # a message has up to 1 MiB, a group commit a little more
KEPT_FOLDERS = ("blobs", "attachments")  # of the data directory: their files never change, but may be deleted
SNAPSHOT = "snapshot"
SNAPSHOT_SECONDS = 600  # for which one object may take
GENERATION, HOLDER = "generation", "holder"  # keys
WRONG_POSITION = (10071, 10164)  # JetStream's codes for a last sequence that is not the expected one
_PASSING = (
    errors.TimeoutError,
    errors.NoRespondersError,
    errors.NoServersError,
    errors.ConnectionClosedError,
    errors.ConnectionReconnectingError,
    errors.StaleConnectionError,
    errors.OutboundBufferLimitError,
    NoStreamResponseError,
    ServiceUnavailableError,
    OSError,
)
_PASSING_STATUS = (408, 500, 503)
NO_PEERS = 10005  # JetStream's code for a stream that cannot be created while a server is down


def _is_passing(error: Exception) -> bool:
    """Whether an error means that there is no leader, or no server, at present."""
    is_status = isinstance(error, APIError) and (error.code in _PASSING_STATUS or error.err_code == NO_PEERS)
    return isinstance(error, _PASSING) or is_status


def _open_private(path: Path) -> BufferedWriter:
    """Open a file for writing that only this user can read."""
    file = path.open("wb")
    path.chmod(0o600)
    return file


class _Moved(Exception):
    """The stream has ended: the next generation of the log has taken its place."""


def _is_kept(path: Path) -> bool:
    return path.is_file() and not path.name.endswith(".part") and path.name != "lock"


class LogAddress(NamedTuple):
    """The servers of a log, the name of its stream, its replicas, and the port of the servers' monitoring."""

    servers: tuple[str, ...]
    name: str
    replicas: int
    monitor: int

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read `nats://a:4222,b:4222,c:4222/name?replicas=3&monitor=8222`; all but the hosts may be left out. Raises
        `ConfigError`.
        """
        scheme, _, rest = text.partition("://")
        hosts, _, query = rest.partition("?")
        hosts, _, name = hosts.partition("/")
        options = dict(parse_qsl(query))
        numbers = [options.pop(key, default) for key, default in (("replicas", "3"), ("monitor", "8222"))]
        is_known = scheme in ("nats", "tls") and all(hosts.split(",")) and not options
        if not (is_known and re.fullmatch(r"[\w-]*", name) and all(number.isdecimal() for number in numbers)):
            raise ConfigError(
                f"journal.yaml: log: {text!r} is not an address of NATS servers; write nats://a:4222,b:4222,c:4222"
            )
        replicas, monitor = map(int, numbers)
        return cls(tuple(f"{scheme}://{host}" for host in hosts.split(",")), name or "local2", replicas, monitor)


class JetStreamLog:
    """The log in a stream, which is created if it is missing. A `CommitLog`.

    With `folder`, the data directory, the files there that never change are kept beside the log; see `keep`.
    """

    def __init__(self, address: LogAddress, *, folder: Path | None = None, seconds: float = SECONDS) -> None:
        """A call is repeated for so many seconds while there is no leader."""
        self._address, self._folder, self._seconds = address, folder, seconds
        self._js: JetStreamContext
        self._keys: KeyValue
        self._stream = ""  # of the present generation, as far as this process knows
        self._objects: ObjectStore
        self._kept: set[str] | None = None  # files in the object store, once they were listed

    @asynccontextmanager
    async def open(self) -> AsyncIterator[int]:
        """Connect, check the stream and its servers, and return the last position. Raises `StoreFailed` for a stream
        or servers that may lose a confirmed record.
        """
        client = Client()
        try:
            async with asyncio.timeout(self._seconds):
                await client.connect(
                    list(self._address.servers),
                    max_reconnect_attempts=-1,
                    reconnect_time_wait=1,
                    connect_timeout=CALL_SECONDS,
                    error_cb=_note,
                )
        except (errors.Error, OSError) as error:  # a timeout is one
            await client.close()
            raise StoreUnwritable(f"{self}: no server can be reached: {error!r}") from None
        try:
            self._js = client.jetstream(timeout=CALL_SECONDS)
            self._check_server(client)
            self._keys = await self._patiently(self._make_keys)
            info = await self._patiently(self._enter)
            self._check_stream(info.config)
            await self._check_syncing()
            yield info.state.last_seq
        finally:
            await client.close()

    async def append(self, record: bytes, after: int) -> int:
        """See `CommitLog.append`."""

        async def attempt() -> int:
            if await self._appended(self._stream, record, after):
                return after + 1
            raise StoreFenced(f"{self}: another process has taken over; this one may write nothing any more")

        while True:
            try:
                return await self._patiently(attempt)
            except _Moved:
                await self._follow(after)

    async def read(self, after: int) -> AsyncIterator[tuple[int, bytes]]:
        """See `CommitLog.read`."""
        while True:
            async for position, record in self._read(self._stream, after):
                if moved_to(record):
                    break
                after = position
                yield position, record
            else:
                return
            await self._follow(after)

    # Files beside the log

    async def keep(self, names: Iterable[str]) -> None:
        """Store files that never change, named by their path in the data directory. Returns when they are stored."""
        if self._kept is None:
            self._kept = set(await self._names(self._objects))
        for name in names:
            if name not in self._kept:
                await self._put(self._objects, name, self._in_folder(name))
                self._kept.add(name)

    async def gone(self) -> list[str]:
        """The stored files that were deleted from the data directory."""
        return [name for name in await self._names(self._objects) if not self._in_folder(name).exists()]

    async def put_snapshot(self, path: Path) -> None:
        """Replace the snapshot. All files that never change are stored before it."""
        await self.keep(self._unchanging())
        await self._put(self._objects, SNAPSHOT, path)

    async def get_snapshot(self, path: Path) -> bool:
        """Write the files that never change to the data directory, and the snapshot to a file; False without one."""
        for name in await self._names(self._objects):
            target = self._in_folder(name)
            target.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            await self._get(name, target)
        return await self._get(SNAPSHOT, path)

    async def first(self) -> int:
        """The first position of the present generation."""
        return (await self._patiently(partial(self._js.stream_info, self._stream))).state.first_seq

    async def move(self, snapshot: Path, position: int) -> None:
        """Begin the next generation with a snapshot that has reached a position; the present one is deleted."""
        old = self._stream
        new = f"{self._address.name}_g{self._number(old) + 1}_{uuid.uuid4().hex[:8]}"
        objects = await self._patiently(partial(self._make_objects, new))
        await self._put(objects, SNAPSHOT, snapshot)
        await self._keep_missing(objects)
        await self._patiently(partial(self._make_stream, new, position))
        last = await self._carry_over(old, new, position - 1)
        record = pack(Moved(new))
        await self._patiently(lambda: self._js.publish(self._subject(old), record, timeout=CALL_SECONDS))
        await self._follow(last)

    # Who runs the cell

    async def holder(self) -> tuple[int, bytes]:
        """Who runs the cell, with the revision of that entry; 0 if nobody ever has."""
        return await self._patiently(partial(self._key, HOLDER))

    async def hold(self, holder: bytes, revision: int) -> int:
        """Write who runs the cell, unless somebody has since that revision: then returns 0, else the new revision. No
        two entries are equal.
        """

        async def attempt() -> int:
            try:
                return await self._keys.update(HOLDER, holder, last=revision)
            except KeyWrongLastSequenceError:
                present, value = await self._key(HOLDER)
                return present if value == holder else 0

        return await self._patiently(attempt)

    # Generations

    async def _enter(self) -> StreamInfo:
        """Enter the present generation; the first is created if there is none."""
        while True:
            revision, value = await self._key(GENERATION)
            name = value.decode()
            if not revision:
                with suppress(KeyWrongLastSequenceError):
                    await self._keys.update(GENERATION, f"{self._address.name}_g1".encode(), last=0)
                continue
            try:
                info = await self._js.stream_info(name)
            except NotFoundError:
                if self._number(name) > 1:
                    if (await self._key(GENERATION))[0] == revision:
                        raise StoreFailed(f"{self}: the stream {name} is missing") from None
                    continue
                info = await self._make_stream(name, None)
            if self._folder is not None and (name != self._stream or self._kept is None):
                self._objects, self._kept = await self._make_objects(name), None
            self._stream = name
            if (await self._key(GENERATION))[0] == revision:
                return info

    async def _follow(self, after: int) -> None:
        """Continue in the next generation, which the old stream names behind a position, and finish what may be missing
        there.
        """
        old, new = self._stream, ""
        try:
            async for _, record in self._read(old, after):
                if new := moved_to(record):
                    break
            if new:
                info = await self._patiently(partial(self._js.stream_info, new))
                await self._carry_over(old, new, info.state.last_seq)
                if self._folder is not None:
                    await self._keep_missing(await self._patiently(partial(self._make_objects, new)))
                await self._name_generation(old, new)
        except (StoreFailed, _Moved) as error:  # somebody else may have finished it, and deleted the old stream
            if isinstance(error, StoreUnwritable) or (await self.generation()) == old:
                raise
        await self._patiently(self._enter)
        await self._patiently(self._delete_old)

    async def generation(self) -> str:
        """The name of the present generation."""
        return (await self._patiently(partial(self._key, GENERATION)))[1].decode()

    async def _carry_over(self, old: str, new: str, after: int) -> int:
        """Append the records behind a position to the next generation; returns the last one's."""
        async for position, record in self._read(old, after):
            if moved_to(record):
                break
            if not await self._patiently(partial(self._appended, new, record, position - 1)):
                raise StoreFailed(f"{self}: {new} differs from {old} at position {position}")
            after = position
        return after

    async def _name_generation(self, old: str, new: str) -> None:
        async def attempt() -> None:
            revision, value = await self._key(GENERATION)
            if value.decode() == old:
                with suppress(KeyWrongLastSequenceError):
                    await self._keys.update(GENERATION, new.encode(), last=revision)

        await self._patiently(attempt)

    async def _delete_old(self) -> None:
        """Delete the generations before the present one, and those that were begun and given up."""
        number, pattern = self._number(self._stream), rf"(OBJ_)?{self._address.name}_g(\d+)(_[0-9a-f]{{8}})?"
        names: list[str] = []
        while page := await self._js.streams_info(offset=len(names)):
            names += [info.config.name or "" for info in page]
        for name in names:
            found = re.fullmatch(pattern, name)
            if found and int(found[2]) <= number and name not in (self._stream, f"OBJ_{self._stream}"):
                with suppress(NotFoundError):
                    await self._js.delete_stream(name)

    def _number(self, stream: str) -> int:
        return int(stream.removeprefix(f"{self._address.name}_g").partition("_")[0])

    async def _keep_missing(self, objects: ObjectStore) -> None:
        known = set(await self._names(objects))
        for name in self._unchanging():
            if name not in known:
                await self._put(objects, name, self._in_folder(name))

    def _unchanging(self) -> list[str]:
        folder = self._in_folder("")
        found = (path for each in KEPT_FOLDERS for path in (folder / each).rglob("*"))
        return [str(path.relative_to(folder)) for path in found if _is_kept(path)]

    def _in_folder(self, name: str) -> Path:
        if self._folder is None:
            raise StoreFailed(f"{self}: it was opened without a data directory")
        return self._folder / name

    # Streams, keys and objects

    async def _appended(self, stream: str, record: bytes, after: int) -> bool:
        """Append a record; False if another one has its position. Raises `_Moved` if the stream has ended there."""
        headers = {"Nats-Expected-Last-Sequence": str(after), "Nats-Expected-Stream": stream}
        try:
            await self._js.publish(self._subject(stream), record, timeout=CALL_SECONDS, headers=headers)
            return True
        except NoStreamResponseError:
            if stream != self._stream or (await self._key(GENERATION))[1].decode() == stream:
                raise
            raise _Moved from None
        except APIError as error:
            if error.err_code not in WRONG_POSITION:
                raise
        found = await self._record(stream, after + 1)
        if found.data is not None and moved_to(found.data):
            raise _Moved
        return found.data == record

    async def _read(self, stream: str, after: int) -> AsyncIterator[tuple[int, bytes]]:
        last = (await self._patiently(partial(self._js.stream_info, stream))).state.last_seq
        reader: JetStreamContext.PullSubscription | None = None

        async def page() -> list[tuple[int, bytes]]:
            nonlocal reader
            if reader is None:
                reader = await self._reader(stream, after)
            try:
                found = await reader.fetch(min(PAGE, last - after), timeout=CALL_SECONDS)
            except (errors.Error, OSError):
                reader = None  # its server may be gone
                raise
            return [(message.metadata.sequence.stream, message.data) for message in found]

        while after < last:
            for position, record in await self._patiently(page):
                if position != after + 1:
                    raise StoreFailed(
                        f"{self}: position {after + 1} is missing; if this machine's journal was damaged, empty its"
                        " data directory and start the system again: it is restored from the cell's snapshot"
                    )
                after = position
                yield position, record
        if reader is not None:
            await reader.unsubscribe()

    async def _reader(self, stream: str, after: int) -> JetStreamContext.PullSubscription:
        config = ConsumerConfig(
            ack_policy=AckPolicy.NONE,
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=after + 1,
            inactive_threshold=30.0,
            mem_storage=True,
            num_replicas=1,
        )
        return await self._js.pull_subscribe(self._subject(stream), stream=stream, config=config)

    async def _record(self, stream: str, position: int) -> RawStreamMsg:
        try:
            return await self._js.get_msg(stream, position)
        except NotFoundError:
            raise errors.TimeoutError from None  # an append is under way

    async def _make_stream(self, name: str, first: int | None) -> StreamInfo:
        config = StreamConfig(
            name=name,
            subjects=[self._subject(name)],
            storage=StorageType.FILE,
            num_replicas=self._address.replicas,
            deny_delete=True,
            deny_purge=True,
            first_seq=first,
        )
        return await self._js.add_stream(config)

    async def _make_objects(self, name: str) -> ObjectStore:
        config = ObjectStoreConfig(storage=StorageType.FILE, replicas=self._address.replicas)
        try:
            return await self._js.object_store(name)
        except NotFoundError:
            return await self._js.create_object_store(name, config=config)

    async def _make_keys(self) -> KeyValue:
        kind = KeyValueConfig(self._address.name, storage=StorageType.FILE, replicas=self._address.replicas)
        try:
            return await self._js.key_value(self._address.name)
        except NotFoundError:
            return await self._js.create_key_value(kind)

    async def _key(self, key: str) -> tuple[int, bytes]:
        """The revision and the value of a key; 0 and nothing for one that there is not."""
        try:
            entry = await self._keys.get(key)
        except NotFoundError:
            return 0, b""
        return entry.revision or 0, entry.value or b""

    async def _put(self, objects: ObjectStore, name: str, path: Path) -> None:
        async def attempt() -> None:
            with path.open("rb") as file:
                await objects.put(name, file)

        with suppress(FileNotFoundError):  # deleted meanwhile
            await self._patiently(attempt)

    async def _get(self, name: str, path: Path) -> bool:
        """Write an object to a file; False if there is none of that name."""

        async def attempt() -> bool:
            with _open_private(path) as file, suppress(NotFoundError):
                async with asyncio.timeout(SNAPSHOT_SECONDS):
                    await self._objects.get(name, file)
                return True
            return False

        return await self._patiently(attempt)

    async def _names(self, objects: ObjectStore) -> list[str]:
        async def attempt() -> list[str]:
            try:
                found = await objects.list(ignore_deletes=True)
            except NotFoundError:
                return []
            return [info.name for info in found if info.name is not None and info.name != SNAPSHOT]

        return await self._patiently(attempt)

    def _subject(self, stream: str) -> str:
        return f"local2.journal.{stream}"

    # Checks

    def _check_server(self, client: Client) -> None:
        version = client.connected_server_version
        if (version.major, version.minor) < OLDEST:
            raise StoreFailed(f"{self}: the server has version {version}; use nats-server 2.11 or newer")
        if client.max_payload < MAX_PAYLOAD:
            raise StoreFailed(
                f"{self}: the server takes messages of {client.max_payload:,} bytes at most, which is too little for a"
                " commit; set `max_payload: 4MB` on each server"
            )

    def _check_stream(self, config: StreamConfig) -> None:
        replicas = config.num_replicas
        if replicas != self._address.replicas:
            raise StoreFailed(
                f"{self}: the stream has {replicas} replicas instead of {self._address.replicas}; change it with"
                f" `nats stream edit {self._stream} --replicas {self._address.replicas}`, or add"
                f" `?replicas={replicas}` to the address"
            )
        limits = (config.max_msgs, config.max_bytes, config.max_age)
        if config.storage != StorageType.FILE or any(limit and limit > 0 for limit in limits):
            raise StoreFailed(
                f"{self}: the stream does not keep all of its records in files; delete it, and it is created with file"
                " storage and without limits"
            )

    async def _check_syncing(self) -> None:
        """Ask the servers' monitoring whether they sync every write. Servers that are down may not answer, but most
        must.
        """
        hosts = [urlsplit(server).hostname or "" for server in self._address.servers]
        async with httpx.AsyncClient(timeout=CALL_SECONDS, trust_env=False) as http:
            answers = await asyncio.gather(*(self._syncs(http, host) for host in hosts))
        if False in answers:
            raise StoreFailed(
                f"{self}: the server on {hosts[answers.index(False)]} confirms records before they are on its disk; set"
                " `sync_interval: always` in the `jetstream` block of each server"
            )
        if sum(answer is True for answer in answers) <= self._address.replicas // 2:
            raise StoreFailed(
                f"{self}: it is unknown whether the servers sync every write, because too few answer on port"
                f" {self._address.monitor}; set `http_port: {self._address.monitor}` on each server, or add"
                " `?monitor=PORT` to the address"
            )

    async def _syncs(self, http: httpx.AsyncClient, host: str) -> bool | None:
        try:
            answer = await http.get(f"http://{host}:{self._address.monitor}/jsz")
            return bool(answer.json()["config"].get("sync_always"))
        except (httpx.HTTPError, ValueError, KeyError):
            return None

    async def _patiently(self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Return the result of `attempt()`, repeated while there is no leader. Raises `StoreUnwritable`."""
        deadline = time.monotonic() + self._seconds
        while True:
            try:
                return await attempt()
            except (errors.Error, OSError) as error:
                if not _is_passing(error):
                    raise StoreFailed(f"{self}: {error}") from error
                if time.monotonic() > deadline:
                    raise StoreUnwritable(f"{self}: the stream has no leader: {error!r}") from None
            await asyncio.sleep(PAUSE_SECONDS)

    def __str__(self) -> str:
        return f"the journal's log {','.join(self._address.servers)}/{self._address.name}"


async def _note(error: Exception) -> None:
    log.debug("NATS: %r", error)
