"""The journal's log on NATS JetStream: a stream with one subject, kept by several servers.

An append expects the last position, so that the server itself refuses who is behind. An answer that was lost is found
again: the record is at that position, or another owner's is. While the stream has no leader, and while no server can be
reached, NATS reports one fact under many names (`_is_passing`); such a call is repeated for some seconds.

A stream is used only if a confirmed record survives: it is stored in files on as many servers as the setting says, and
each of these servers syncs every write (`sync_interval: always`), which is not the default of NATS. Only the servers'
monitoring says whether they do.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import NamedTuple, Self, TypeVar
from urllib.parse import parse_qsl, urlsplit

import httpx
import nats.errors as errors
from nats.aio.client import Client
from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy, RawStreamMsg, StorageType, StreamConfig, StreamInfo
from nats.js.client import JetStreamContext
from nats.js.errors import APIError, NoStreamResponseError, NotFoundError

from local.core.errors import ConfigError, StoreFailed, StoreFenced, StoreUnwritable

log = logging.getLogger(__name__)
T = TypeVar("T")

SECONDS = 10.0  # for which a call is repeated: an election of a leader takes up to eight
CALL_SECONDS = 2
PAUSE_SECONDS = 0.1
PAGE = 64  # records read at once
OLDEST = (2, 11)
MAX_PAYLOAD = 4 * 1024 * 1024  # a message has up to 1 MiB, a group commit a little more
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
    OSError,
)
_PASSING_STATUS = (408, 500, 503)


def _is_passing(error: Exception) -> bool:
    """Whether an error means that there is no leader, or no server, at present."""
    return isinstance(error, _PASSING) or (isinstance(error, APIError) and error.code in _PASSING_STATUS)


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
    """The log in a stream, which is created if it is missing. A `CommitLog`."""

    def __init__(self, address: LogAddress, *, seconds: float = SECONDS) -> None:
        """A call is repeated for so many seconds while there is no leader."""
        self._address, self._seconds = address, seconds
        self._subject = f"local2.journal.{address.name}"
        self._js: JetStreamContext

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
            info = await self._patiently(self._stream)
            self._check_stream(info.config)
            await self._check_syncing()
            yield info.state.last_seq
        finally:
            await client.close()

    async def append(self, record: bytes, after: int) -> int:
        """See `CommitLog.append`."""
        headers = {"Nats-Expected-Last-Sequence": str(after), "Nats-Expected-Stream": self._address.name}

        async def attempt() -> int:
            try:
                done = await self._js.publish(self._subject, record, timeout=CALL_SECONDS, headers=headers)
                return done.seq
            except APIError as error:
                if error.err_code not in WRONG_POSITION:
                    raise
            found = await self._record(after + 1)
            if found.data == record:
                return after + 1
            raise StoreFenced(f"{self}: another process has taken over; this one may write nothing any more")

        return await self._patiently(attempt)

    async def read(self, after: int) -> AsyncIterator[tuple[int, bytes]]:
        """See `CommitLog.read`."""
        last = (await self._patiently(partial(self._js.stream_info, self._address.name))).state.last_seq
        reader: JetStreamContext.PullSubscription | None = None

        async def page() -> list[tuple[int, bytes]]:
            nonlocal reader
            if reader is None:
                reader = await self._reader(after)
            try:
                found = await reader.fetch(min(PAGE, last - after), timeout=CALL_SECONDS)
            except (errors.Error, OSError):
                reader = None  # its server may be gone
                raise
            return [(message.metadata.sequence.stream, message.data) for message in found]

        while after < last:
            for position, record in await self._patiently(page):
                if position != after + 1:
                    raise StoreFailed(f"{self}: position {after + 1} is missing")
                after = position
                yield position, record
        if reader is not None:
            await reader.unsubscribe()

    async def _reader(self, after: int) -> JetStreamContext.PullSubscription:
        config = ConsumerConfig(
            ack_policy=AckPolicy.NONE,
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=after + 1,
            inactive_threshold=30.0,
            mem_storage=True,
            num_replicas=1,
        )
        return await self._js.pull_subscribe(self._subject, stream=self._address.name, config=config)

    async def _record(self, position: int) -> RawStreamMsg:
        try:
            return await self._js.get_msg(self._address.name, position)
        except NotFoundError:
            raise errors.TimeoutError from None  # an append is under way

    async def _stream(self) -> StreamInfo:
        try:
            return await self._js.stream_info(self._address.name)
        except NotFoundError:
            config = StreamConfig(
                name=self._address.name,
                subjects=[self._subject],
                storage=StorageType.FILE,
                num_replicas=self._address.replicas,
                deny_delete=True,
                deny_purge=True,
            )
            return await self._js.add_stream(config)

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
                f" `nats stream edit {self._address.name} --replicas {self._address.replicas}`, or add"
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
