"""The journal: it stores every confirmed and recorded message, and delivers to durable consumers the messages that
they have not handled.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import ClassVar, Self

from local.bus.blobs import BlobStore, references
from local.bus.envelope import MARK, Envelope, decode
from local.bus.message import ErrorInfo, Message, parse_object
from local.bus.messages import QueryReceived, SessionDeleted
from local.bus.receiving import FILE_NAME as REJECTED
from local.bus.receiving import RejectLog
from local.core.errors import LocalError, MalformedFrame, StoreDamaged, StoreUnwritable
from local.journal.config import JournalConfig as JournalConfig
from local.journal.config import missing_client, owner_of
from local.journal.delivery import DeliveryLimits
from local.journal.messages import (
    DeadLetterEntry,
    JournalConfirmed,
    JournalDeadLetters,
    JournalDeadRead,
    JournalDeliver,
    JournalEntries,
    JournalEntry,
    JournalFenced,
    JournalFlushed,
    JournalOpened,
    JournalRead,
    JournalRedact,
    JournalRedacted,
    JournalRedeliver,
    JournalRedelivered,
)
from local.journal.schema import FILE_NAME, Entry, Stored
from local.journal.store import JournalStore
from local.journal.writer import JournalWriter
from local.memory.messages import MemoryDeleted
from local.runtime.participant import Kind, Participant, Resources, on

# Deletions from the record: payloads, and the large fields stored outside of them.

PAGE = 20
# They report deletions, possibly to a participant that has not received them yet.
NOTICES = (MemoryDeleted.subject, SessionDeleted.subject)
YOUNG_SECONDS = 60.0  # by then a message that refers to a large field is recorded, or never will be


class JournalRedaction:
    """The deletion of payloads and of the large fields that only they refer to, for one journal. Without a blob store
    or samples of rejected frames there are none to clear up."""

    def __init__(self, store: JournalStore, blobs: BlobStore | None, rejects: RejectLog | None) -> None:
        self._store, self._blobs, self._rejects = store, blobs, rejects

    async def carry_out(self, request: JournalRedact) -> int:
        """Remove the payloads asked for; returns how many. Can be repeated when it has failed. Raises `StoreFailed`."""
        count, large = 0, set[str]()
        if request.session_id is not None:
            large |= await self._large_fields(session_id=request.session_id)
            count += await self._store.redact_session(request.session_id)
        if request.query_id is not None:
            large |= await self._large_fields(correlation_id=request.query_id)
            count += await self._store.redact_query(request.query_id)
        if request.mentioned is not None:
            count += await self._redact_mentions(request.mentioned, large)
        await self._remove_unused(large)
        if self._rejects is not None:
            self._rejects.clear()  # it is unknown whose content the samples contain
        return count

    async def sweep(self, age_seconds: float) -> None:
        """Remove the large fields that no recorded message refers to.

        Fields younger than `age_seconds` are kept, because the message may still be under way. Raises `StoreFailed`.
        """
        if self._blobs is not None:
            await self._remove_unused(await asyncio.to_thread(self._blobs.older_than, age_seconds))

    async def size_of_large_fields(self) -> int:
        """The bytes on the disk of large fields."""
        return 0 if self._blobs is None else await asyncio.to_thread(self._blobs.size)

    async def _redact_mentions(self, text: str, large: set[str]) -> int:
        """Also of those that mention it in a large field."""
        holders = set() if self._blobs is None else await asyncio.to_thread(self._blobs.mentioning, text)
        large |= holders
        count = 0
        for sought in (text, *holders):
            async with aclosing(self._store.mentioning(sought)) as pages:
                async for page in pages:
                    large |= _references(page)
                    ids = [one.entry.envelope_id for one in page if one.entry.subject not in NOTICES]
                    count += await self._store.redact_envelopes(ids)
        return count

    async def _large_fields(self, *, session_id: str | None = None, correlation_id: str | None = None) -> set[str]:
        names: set[str] = set()
        after = 0
        while page := await self._store.read(
            limit=PAGE, after=after, session_id=session_id, correlation_id=correlation_id
        ):
            names |= _references(page)
            after = page[-1].number
        return names

    async def _remove_unused(self, names: set[str]) -> None:
        if self._blobs is None or not names:
            return
        async with aclosing(self._store.mentioning(MARK)) as pages:
            async for page in pages:
                names -= _references(page)
        for name in names:
            await asyncio.to_thread(self._blobs.remove, name)


def size_of_references(frame: bytes) -> int:
    """Return the bytes of the large fields that a frame refers to; none for a removed payload."""
    try:
        return sum(references(decode(frame).payload).values())
    except MalformedFrame:
        return 0


def _references(page: list[Stored]) -> set[str]:
    return {name for one in page if not one.redacted for name in references(decode(one.entry.frame).payload)}


log = logging.getLogger(__name__)

DAY = 24 * 60 * 60.0
READ_BYTES = 48 * 1024  # of frames in one answer: a larger one would travel in a separate file
HOUSEKEEPING_SECONDS = 600.0
MOST_DEAD = 200  # in one answer
LONGEST_REASON = 500  # characters


def _open_replicated(folder: Path, address: str) -> JournalStore:
    try:
        from local.journal.jetstream import JetStreamLog, LogAddress
    except ImportError as error:
        raise missing_client(error) from None
    from local.journal.replicated import Owner, ReplicatedJournalStore

    kept, owner = JetStreamLog(LogAddress.parse(address), folder=folder), owner_of(folder)
    return ReplicatedJournalStore(
        folder / FILE_NAME,
        kept,
        owner=Owner(owner) if owner else None,
        keep=lambda entries: kept.keep(_files_of(entries, folder)),
    )


def _files_of(entries: Sequence[Entry], folder: Path) -> Iterator[str]:
    """Yield the files of the data directory that messages refer to: large fields, and attachments with their marks."""
    for entry in entries:
        if MARK.encode() in entry.frame:
            yield from (f"blobs/{name[:2]}/{name}" for name in references(decode(entry.frame).payload))
        if entry.subject == QueryReceived.subject and b'"attachments":["' in entry.frame:
            for attachment_id in parse_object(decode(entry.frame).payload, "payload")["attachments"]:
                yield from (f"attachments/{path.name}" for path in (folder / "attachments").glob(f"{attachment_id}*"))


class Journal(Participant):
    """The participant that numbers, commits and confirms messages; see `JournalWriter`. Its own messages are not
    recorded.
    """

    name = "journal"
    kind = Kind.SERVICE
    Config = JournalConfig
    journaled: ClassVar[bool] = False
    publishes = (JournalOpened, JournalConfirmed, JournalDeliver, JournalFlushed, JournalFenced)

    def __init__(
        self,
        config: JournalConfig,
        store: JournalStore,
        blobs: BlobStore | None = None,
        rejects: RejectLog | None = None,
    ) -> None:
        """`blobs` stores the large fields of recorded messages; `rejects` holds samples of refused frames."""
        super().__init__(config)
        self._settings, self._store = config, store
        self._redaction = JournalRedaction(store, blobs, rejects)
        self._deleted = asyncio.Event()  # since the last sweep after a deletion
        self._damage = ""

    @classmethod
    def build(cls, config: JournalConfig, resources: Resources) -> Self:
        """Build the journal with its file below the data directory. Raises `ConfigError`."""
        folder = resources.data_dir
        store = _open_replicated(folder, config.log) if config.log else JournalStore(folder / FILE_NAME)
        return cls(config, store, BlobStore(folder / "blobs"), RejectLog(folder / REJECTED))

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Open the file, listen, and only then serve."""
        settings = self._settings
        async with self._store as store, self._suspecting(), asyncio.TaskGroup() as tasks:
            self._writer = JournalWriter(
                self.bus,
                store,
                DeliveryLimits(settings.ack_wait_seconds, settings.max_deliver, settings.max_failures),
            )
            if store.damage is not None:
                self._damage = str(store.damage)
                log.error("%s", self._damage)
            self._writer.subscribe()
            await self.bus.ready()
            work = self._writer.run(), self._keep_house(), self._sweep_after_deletions()
            working = [tasks.create_task(each) for each in work]
            yield
            await self._writer.catch_up()  # a commit must be reported: cancelling in between would prevent that
            for task in working:
                task.cancel()
            await asyncio.wait(working)
            await self._writer.finish()

    @asynccontextmanager
    async def _suspecting(self) -> AsyncIterator[None]:
        try:
            yield
        except* StoreDamaged:
            self._store.suspect()
            raise

    async def announce(self) -> None:
        """Ask all processes to send unconfirmed messages again and to attach."""
        self._writer.reconnected()
        self.bus.post(JournalOpened())

    def metrics(self) -> dict[str, int]:
        """Return how much was committed, and the pending messages by consumer."""
        return self._writer.metrics()

    def details(self) -> dict[str, str]:
        """Return the present problem, if any."""
        problem = self._writer.problem or self._damage
        return {"problem": problem} if problem else {}

    @on(JournalRead, concurrency=8)
    async def read(self, request: JournalRead, envelope: Envelope) -> JournalEntries:
        """Answer a request for recorded messages."""
        entries: list[JournalEntry] = []
        room = READ_BYTES
        async with aclosing(self._find(request)) as found:
            async for stored in found:
                room -= len(stored.entry.frame)
                if room < 0 and entries:
                    return JournalEntries(entries=tuple(entries), more=True)
                frame = stored.entry.frame.decode()
                entries.append(
                    JournalEntry(
                        number=stored.number, committed_at=stored.committed_at, redacted=stored.redacted, frame=frame
                    )
                )
        return JournalEntries(entries=tuple(entries), more=len(entries) == request.limit)

    @on(JournalRedact, concurrency=8)
    async def redact(self, request: JournalRedact, envelope: Envelope) -> JournalRedacted:
        """Remove payloads after a deletion, with the large fields that no other message refers to."""
        await self._writer.catch_up()
        count = await self._redaction.carry_out(request)
        await self._sweep(YOUNG_SECONDS)
        self._deleted.set()
        return JournalRedacted(count=count)

    @on(JournalRedeliver, concurrency=8)
    async def redeliver(self, request: JournalRedeliver, envelope: Envelope) -> JournalRedelivered:
        """Redeliver dead letters whose cause was repaired."""
        return JournalRedelivered(numbers=await self._writer.dead_letters.redeliver(request))

    @on(JournalDeadRead, concurrency=8)
    async def read_dead(self, request: JournalDeadRead, envelope: Envelope) -> JournalDeadLetters:
        """List the dead letters, of very many only the latest."""
        await self._writer.catch_up()
        found = await self._store.dead_letters()
        latest = tuple(
            DeadLetterEntry(
                number=dead.number,
                committed_at=dead.committed_at,
                consumer=dead.consumer,
                dead_subject=dead.subject,
                query_id=dead.query_id,
                reason=dead.reason[:LONGEST_REASON],
            )
            for dead in found[: -MOST_DEAD - 1 : -1]
        )
        return JournalDeadLetters(dead_letters=latest, count=len(found))

    def error_reply(self, message: Message, error: Exception) -> Message | None:
        """Why the record could not be read or changed."""
        info = ErrorInfo.of(error)
        if isinstance(error, StoreDamaged):
            self._damage = str(error)
            self._store.suspect()
        match message:
            case JournalRead():
                return JournalEntries(error=info)
            case JournalRedact():
                return JournalRedacted(error=info)
            case JournalRedeliver():
                return JournalRedelivered(error=info)
            case JournalDeadRead():
                return JournalDeadLetters(error=info)
        return None

    async def _find(self, request: JournalRead) -> AsyncGenerator[Stored, None]:
        """Yield the requested entries; they are not all in memory at once."""
        after, before, left = request.after, request.before, request.limit
        while left:
            page = await self._store.read(
                limit=min(left, PAGE),
                after=after,
                before=before,
                subjects=request.subjects,
                session_id=request.session_id,
                correlation_id=request.correlation_id,
                correlation_ids=request.correlation_ids,
            )
            for stored in page:
                yield stored
            if len(page) < PAGE:
                return
            after, before = (after, page[-1].number) if request.is_backwards else (page[-1].number, before)
            left = max(0, left - PAGE)

    async def _keep_house(self) -> None:
        """Verify the file once, and regularly remove what is too old or exceeds the limit."""
        await self._verify()
        sweeps = False  # not before waiting clients have sent their messages again
        while True:
            try:
                elsewhere = 0
                if sweeps:
                    await self._sweep(HOUSEKEEPING_SECONDS)
                    elsewhere = await self._redaction.size_of_large_fields()
                age = self._settings.max_age_days * DAY
                removed = await self._store.retain(age, self._max_bytes, elsewhere, size_of_references)
                if removed:
                    log.info("%d messages that were no longer needed were removed", removed)
                if removed and sweeps:
                    await self._sweep(HOUSEKEEPING_SECONDS)
            except LocalError as error:
                log.warning("old messages could not be removed: %s", error)
            await asyncio.sleep(HOUSEKEEPING_SECONDS)
            sweeps = True

    async def _verify(self) -> None:
        """Look through the whole file; on a disk in trouble that is done later. Raises `StoreDamaged`."""
        while True:
            try:
                damage = await self._store.verify()
            except StoreUnwritable as error:
                log.warning("the journal is verified later: %s", error)
                await asyncio.sleep(HOUSEKEEPING_SECONDS)
                continue
            if damage is not None:
                raise StoreDamaged(f"{damage}; the journal is opened again")
            return

    async def _sweep_after_deletions(self) -> None:
        """Remove what the deletion itself leaves: prompts, and pages of a conversation, are not on record, so that
        their large fields are told from those of messages under way by their age alone."""
        while await self._deleted.wait():
            self._deleted.clear()
            await asyncio.sleep(YOUNG_SECONDS)
            try:
                await self._sweep(YOUNG_SECONDS)
            except LocalError as error:
                log.warning("large fields of what was deleted are removed later: %s", error)

    async def _sweep(self, age_seconds: float) -> None:
        if not self._writer.problem:  # otherwise a message that refers to a large field may be waiting for room
            await self._redaction.sweep(age_seconds)

    @property
    def _max_bytes(self) -> int:
        return int(self._settings.max_megabytes * 1024 * 1024)
