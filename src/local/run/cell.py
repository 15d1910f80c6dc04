"""A cell: one system that any of several machines can run, each with a data directory of its own.

The problem. When a machine is lost, another one has to continue its system: with every confirmed message, without an
answer or an effect twice, and while the first machine may be alive and merely slow.

The idea. The journal's log (`journal/replicated.py`) decides what is true. Everything else follows from two further
things beside it: a lease, which says who should run the system now, and a snapshot of the data directory.

- *Lease*: an entry that its holder writes again every `RENEW_SECONDS`. A machine that has seen the same entry for
  `LEASE_SECONDS` by its own clock takes it, by writing over exactly that entry. No clocks are compared, and the lease
  protects nothing: a holder that is wrong about it is refused by the log.
- *Standby*: a machine without the lease waits. It has none of the cell's data: what it had, because it ran the cell
  before, is deleted, as it may contain what was deleted since.
- *Takeover*: restore the snapshot; append a record to the log, which refuses the machine before from then on; carry out
  the log; bring the conversations and the records of effects and approvals up to date from the journal; set the
  progress of the other consumers back to that of the snapshot; start the system. Those consumers do again what the
  snapshot lacks, as after the restore of a backup. Answers and effects are not made again: their records are complete.
- *Snapshot*: a backup, each minute and after `SNAPSHOT_COMMITS` commits, if anything was committed. After a
  deletion, or when the log is long, it begins the next generation of the log, so that no server keeps what was deleted.

Invariants.
- A machine continues with its own data only if nobody else has held the lease since: its id is in the last entry.
- Its id is written at the end of a takeover. One that was interrupted is made again from the snapshot.
- Data that is not a copy of the cell is never deleted; the start is refused.

What is in no message (agents, jobs, users, changes of settings files in the data directory) is as old as the snapshot
after a takeover.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
import shutil
import socket
import sqlite3
import tarfile
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Collection
from concurrent.futures import Future
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, Self

from local.core.database import connect_read_only
from local.core.errors import ConfigError, LocalError
from local.core.files import write_private
from local.journal.config import CELL_FILE, owner_of
from local.journal.jetstream import KEPT_FOLDERS, JetStreamLog, LogAddress
from local.journal.replicated import Owner, Replica, ReplicatedJournalStore, patiently, replica
from local.journal.schema import FILE_NAME, rows
from local.journal.server import NOTICES
from local.journal.store import PROGRESS
from local.run.upkeep import CAUGHT_UP, LEFT_OUT, MANIFEST, back_up, catch_up

log = logging.getLogger(__name__)

LEASE_SECONDS = 5.0
RENEW_SECONDS = 1.5
LOOK_SECONDS = 1.0
SNAPSHOT_SECONDS = 60.0
SNAPSHOT_COMMITS = 1000
GENERATION_RECORDS = 100_000  # in one stream, at most
STAYS = frozenset(LEFT_OUT) - {"vectors"}  # entries of a data directory that are this machine's own
SETTLED_SECONDS = 5.0  # after a deletion: it is on record first, and then made in every store
DELETION_SECONDS = 30.0  # for which the next generation waits, at most, for a store that has not deleted yet


class Holder(NamedTuple):
    """An entry of the lease: the id of its holder and the name of the machine, and a number that makes it unique. A
    `released` one may be taken at once.
    """

    owner: str
    host: str
    number: int
    released: bool = False

    def encode(self) -> bytes:
        """Return it as it is stored."""
        return json.dumps(self._asdict()).encode()

    @classmethod
    def decode(cls, entry: bytes) -> Self:
        """Return a stored one."""
        return cls(**json.loads(entry))


class Cell:
    """A machine's membership in a cell, as a context: entering it waits until this machine may run the cell. The data
    directory then has the cell's content; `notice` says what of it may be old.

    Raises `LocalError` for a data directory that is no copy of the cell, and for a log that cannot be used.
    """

    def __init__(self, data_dir: Path, address: str, participants: Collection[str]) -> None:
        self._data_dir, self._participants = data_dir, participants
        self._address = LogAddress.parse(address)
        self._log = JetStreamLog(self._address, folder=data_dir)
        self._runs = Future[None]()
        self._loop = asyncio.new_event_loop()
        self._task = self._loop.create_task(self._take_part())
        self._thread = threading.Thread(target=self._work, name="cell", daemon=True)
        self._me = Holder(owner_of(data_dir) or uuid.uuid4().hex, socket.gethostname(), 0)
        self._revision = 0
        self._position = 0  # in the log, that the last snapshot had reached
        self._snapshot_at = -math.inf  # by the monotonic clock
        self._is_owed = False  # a generation without something that was deleted
        self.is_lost = False
        self.notice = ""
        self._on_lost: Callable[[], object] = lambda: None

    def when_lost(self, end: Callable[[], object]) -> None:
        """Call `end()`, in another thread, when another machine has taken over."""
        self._on_lost = end
        if self.is_lost:
            end()

    def __enter__(self) -> Self:
        self._thread.start()
        try:
            self._runs.result()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._end()

    def _end(self) -> None:
        with suppress(RuntimeError):  # it has ended
            self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join()

    def _work(self) -> None:
        try:
            self._loop.run_until_complete(self._task)
        except asyncio.CancelledError:
            pass
        except Exception as error:  # noqa: BLE001 - it is raised where the cell is entered
            if not self._runs.done():
                self._runs.set_exception(error)
            else:
                log.error("this machine cannot run the cell any more: %s", error)
                self.is_lost = True
                self._on_lost()
        finally:
            self._loop.close()

    async def _take_part(self) -> None:
        async with AsyncExitStack() as stack:
            await patiently(lambda: stack.enter_async_context(self._log.open()))
            previous = await self._take_lease()
            renewing = asyncio.create_task(self._renew())
            try:
                await self._take_over(previous)
                self._runs.set_result(None)
                await self._keep_snapshots()
            finally:
                renewing.cancel()
                await asyncio.gather(renewing, return_exceptions=True)
                if self._runs.done() and not self.is_lost:
                    await self._leave()

    # The lease

    async def _take_lease(self) -> str:
        """Wait until this machine may run the cell; returns the id of the machine that did before, empty if none."""
        seen, since = -1, time.monotonic()
        while True:
            revision, entry = await patiently(self._log.holder)
            if not revision:
                if await self._hold(revision):
                    return ""
                continue
            holder = Holder.decode(entry)
            if revision != seen:
                if seen < 0 and not holder.released and holder.owner != self._me.owner:
                    log.warning("%s runs the cell %s; this machine stands by", holder.host, self._address.name)
                    self._clear()
                seen, since = revision, time.monotonic()
            is_free = holder.released or holder.owner == self._me.owner
            if is_free or time.monotonic() - since > LEASE_SECONDS:
                if holder.owner != self._me.owner:
                    self._clear()
                if await self._hold(revision):
                    return holder.owner
            await asyncio.sleep(LOOK_SECONDS)

    async def _hold(self, revision: int, *, released: bool = False) -> bool:
        self._me = self._me._replace(number=self._me.number + 1, released=released)
        self._revision = await self._log.hold(self._me.encode(), revision)
        return self._revision > 0

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(RENEW_SECONDS)
            try:
                if not await self._hold(self._revision):
                    self._revision = await self._mine()
            except LocalError as error:  # nothing can be confirmed meanwhile, and nobody can take over
                log.warning("the lease of the cell cannot be renewed: %s", error)
                continue
            if not self._revision:
                log.error("another machine has taken over the cell %s; the system ends here", self._address.name)
                self.is_lost = True
                self._on_lost()
                return

    async def _mine(self) -> int:
        """The revision of this machine's entry; 0 if another machine holds the lease."""
        revision, entry = await self._log.holder()
        return revision if Holder.decode(entry).owner == self._me.owner else 0

    async def _leave(self) -> None:
        """Hand over after an orderly end: nothing changes the data any more."""
        with suppress(LocalError):
            await self._put_snapshot(moves=self._is_owed)
            await self._hold(self._revision, released=True)

    # Taking over

    async def _take_over(self, previous: str) -> None:
        path, owner = self._data_dir / FILE_NAME, Owner(self._me.owner, takes_over=True)
        if not previous or previous == self._me.owner:
            self._write_id()
            async with self._journal(owner):
                return
        self._me = self._me._replace(owner="")
        self._write_id()
        self._me = self._me._replace(owner=uuid.uuid4().hex)
        await self._hold(self._revision)
        owner, last = replace(owner, name=self._me.owner), await self._restore()
        if last:
            with connect_read_only(path) as db:
                progress = {table: [row for row in rows(db, table) if row[0] not in CAUGHT_UP] for table in PROGRESS}
            owner = replace(owner, progress=progress)
            self._snapshot_at = time.monotonic()
        async with self._journal(owner):
            pass  # everybody before is behind from now on
        await catch_up(self._data_dir, self._participants, last)
        await asyncio.to_thread(os.sync)
        self._write_id()

    def _journal(self, owner: Owner) -> ReplicatedJournalStore:
        """The cell's journal; opening it takes the log over."""
        log_again = JetStreamLog(self._address, folder=self._data_dir)
        return ReplicatedJournalStore(self._data_dir / FILE_NAME, log_again, owner=owner)

    def _write_id(self) -> None:
        write_private(self._data_dir / CELL_FILE, json.dumps({"owner": self._me.owner, "log": self._address.name}))

    async def _restore(self) -> int:
        """Put the snapshot in the data directory, which is empty; returns the number of the last message that all of
        its stores know, 0 if there is no snapshot.
        """
        with tempfile.TemporaryDirectory(prefix="local2-cell-", dir=self._data_dir.parent) as folder:
            packed = Path(folder) / "snapshot"
            if not await self._log.get_snapshot(packed):
                return 0
            await asyncio.to_thread(_unpack, packed, self._data_dir)
        manifest = self._data_dir / MANIFEST
        about = json.loads(manifest.read_text(encoding="utf-8"))
        manifest.unlink()
        self.notice = (
            f"this machine has taken over the cell {self._address.name}; agents, jobs and users"
            f" are as they were {round(time.time() - about['made_at'])} s before"
        )
        log.warning("%s", self.notice)
        return int(about["last"])

    def _clear(self) -> None:
        """Delete the copy of the cell in the data directory. Raises `ConfigError` for any other content."""
        present = [path for path in self._data_dir.iterdir() if path.name not in STAYS]
        if present and not (self._data_dir / CELL_FILE).exists():
            names = ", ".join(sorted(path.name for path in present)[:5])
            raise ConfigError(
                f"{self._data_dir} has data that is not from the cell {self._address.name} ({names}); use an empty"
                " --data-dir"
            )
        for path in present:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        (self._data_dir / CELL_FILE).unlink(missing_ok=True)

    # Snapshots

    async def _keep_snapshots(self) -> None:
        redaction, deleted_at = await self._log.first(), time.monotonic()  # the last deletion that was seen
        while True:
            try:
                known, is_pending = await asyncio.to_thread(self._look)
                now = time.monotonic()
                if known.redaction > redaction or (is_pending and not self._is_owed):
                    redaction, deleted_at, self._is_owed = known.redaction, now, True
                is_settled = not is_pending and now - deleted_at > SETTLED_SECONDS
                if self._is_owed and (is_settled or now - deleted_at > DELETION_SECONDS):
                    await self._put_snapshot(moves=True)
                    deleted_at, self._is_owed = now, not is_settled
                else:
                    await self._put_due_snapshot(known.position)
            except (LocalError, OSError, sqlite3.Error) as error:
                log.warning("no snapshot of the cell can be made at present: %s", error)
            await asyncio.sleep(LOOK_SECONDS)

    async def _put_due_snapshot(self, position: int) -> None:
        commits, now = position - self._position, time.monotonic()
        if commits < SNAPSHOT_COMMITS and now - self._snapshot_at < SNAPSHOT_SECONDS:
            return
        moves = bool(await self._log.gone()) or position - await self._log.first() > GENERATION_RECORDS
        if moves or commits:
            await self._put_snapshot(moves=moves)
        self._snapshot_at = now

    def _look(self) -> tuple[Replica, bool]:
        """Return what the journal has of the log, and whether a consumer has not handled a deletion yet."""
        sql = (
            "SELECT 1 FROM entries JOIN consumers ON number > floor AND instr(subjects, '\"' || subject || '\"')"
            f" WHERE subject IN ({', '.join('?' * len(NOTICES))}) AND NOT EXISTS (SELECT 1 FROM deliveries"
            " WHERE consumer = name AND deliveries.number = entries.number AND (acknowledged OR parked != ''))"
        )
        with connect_read_only(self._data_dir / FILE_NAME) as db:
            return replica(db) or Replica(0, b"", "", 0), db.execute(sql, NOTICES).fetchone() is not None

    async def _put_snapshot(self, *, moves: bool) -> None:
        """Store a snapshot; if it `moves`, as the first of the log's next generation."""
        with tempfile.TemporaryDirectory(prefix="local2-cell-", dir=self._data_dir.parent) as folder:
            content, packed = Path(folder) / "content", Path(folder) / "snapshot"
            await asyncio.to_thread(_pack, self._data_dir, content, packed)
            with connect_read_only(content / FILE_NAME) as db:
                known = replica(db)
            if known is None or not await self._mine():
                return
            if moves:
                await self._log.move(packed, known.position)
                log.info("the log of the cell %s has begun its next generation", self._address.name)
            else:
                await self._log.put_snapshot(packed)
        self._position, self._snapshot_at = known.position, time.monotonic()


def _pack(data_dir: Path, content: Path, packed: Path) -> None:
    back_up(data_dir, content, without=KEPT_FOLDERS)
    with tarfile.open(packed, "w") as archive:
        archive.add(content, arcname=".")


def _unpack(packed: Path, data_dir: Path) -> None:
    with tarfile.open(packed) as archive:
        archive.extractall(data_dir, filter="data")
