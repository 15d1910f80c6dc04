"""A journal over three NATS servers: owners are killed, frozen and replaced, and leaders are killed."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from local.bus.envelope import Envelope, new_id
from local.core.errors import StoreFailed
from local.journal.jetstream import JetStreamLog, LogAddress
from local.journal.replicated import ReplicatedJournalStore
from local.journal.schema import Stored
from tests.nats_cluster import Cluster

log = logging.getLogger(__name__)

OWNER = Path(__file__).with_name("owner.py")
ROOT = Path(__file__).parents[2]


class Owner:
    """A process that owns the journal in a folder."""

    async def start(self, folder: Path, address: str) -> Owner:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable, OWNER, folder, address, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            limit=2**24,
        )  # fmt: skip
        assert await self.answer() == "ready"
        return self

    async def send(self, frames: list[str]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(frames).encode() + b"\n")
        await self._process.stdin.drain()

    async def answer(self) -> Any:
        """None at the end of the process."""
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        return json.loads(line) if line else None

    def signal(self, number: int) -> None:
        os.kill(self._process.pid, number)

    async def end(self) -> None:
        if self._process.returncode is None:
            self._process.kill()
        await self._process.wait()


class Sessions:
    """Conversations whose next message is sent when the one before is confirmed."""

    def __init__(self, count: int, seed: int) -> None:
        self.chance = random.Random(seed)
        self._sent = Counter({f"s{number}": 0 for number in range(count)})
        self._open: dict[str, tuple[str, str]] = {}  # envelope id and frame
        self.confirmed: dict[str, int] = {}  # the number of an envelope id
        self.waits: list[float] = []

    def batch(self, size: int) -> list[str]:
        """Sessions, each with a message that is not confirmed."""
        chosen = self.chance.sample(list(self._sent), size)
        for session in chosen:
            if session not in self._open:
                self._open[session] = frame(session, self._sent[session])
        return chosen

    async def commit(self, owner: Owner, chosen: list[str]) -> None:
        started = time.monotonic()
        await owner.send([self._open[session][1] for session in chosen])
        numbers = await owner.answer()
        self.waits.append(time.monotonic() - started)
        for session, number in zip(chosen, numbers, strict=True):
            envelope_id, _ = self._open.pop(session)
            self.confirmed[envelope_id] = number
            self._sent[session] += 1

    def frames(self, chosen: list[str]) -> list[str]:
        return [self._open[session][1] for session in chosen]

    def unconfirmed(self) -> list[str]:
        return list(self._open)

    def judge(self, found: list[Stored]) -> None:
        """Nothing confirmed is lost, doubled, renumbered or out of order, and nothing of a frozen owner is there."""
        numbers = {one.entry.envelope_id: one.number for one in found}
        assert len(numbers) == len(found)
        assert {envelope_id: numbers.get(envelope_id) for envelope_id in self.confirmed} == self.confirmed
        order = defaultdict(list)
        for one in found:
            order[one.entry.session_id].append(one.entry.seq)
        assert "zombie" not in order
        assert order == {session: list(range(1, count + 1)) for session, count in self._sent.items() if count}


def frame(session: str, number: int) -> tuple[str, str]:
    new, payload = new_id(), b'{"query": "one"}'
    envelope = Envelope("query.received", new, "api", "instance", number + 1, new, payload, session_id=session)
    return new, envelope.encode().decode()


async def take_over_and_over(
    cluster: Cluster, folder: Path, sessions: Sessions, *, takeovers: int, batches: tuple[int, int], size: int
) -> list[str]:
    """Returns what became of the frozen owners."""
    address = cluster.address("cell")
    owner = await Owner().start(folder / "0", address)
    zombies = []
    for turn in range(takeovers):
        killed = None
        for batch in range(sessions.chance.randint(*batches)):
            if turn % 5 == 0 and batch == 1:
                killed = await cluster.leader("cell_g1")
                cluster.kill(killed)
            await sessions.commit(owner, sessions.batch(size))
        if killed is not None:
            cluster.start(killed)
        await owner.send(sessions.frames(sessions.batch(size)))  # in flight
        await asyncio.sleep(sessions.chance.random() * 0.02)
        is_frozen = turn % 5 == 1
        owner.signal(signal.SIGSTOP if is_frozen else signal.SIGKILL)
        old, next_folder = owner, folder / str((turn + 1) % 3)
        if turn % 2:
            shutil.rmtree(next_folder, ignore_errors=True)
        owner = await Owner().start(next_folder, address)
        if is_frozen:
            await sessions.commit(owner, sessions.batch(size))
            old.signal(signal.SIGCONT)
            await old.send([frame("zombie", 0)[1]])
            answers = [await old.answer()]  # perhaps of the batch that was in flight
            if isinstance(answers[0], list):
                answers.append(await old.answer())
            zombies.append(answers[-1])
        await old.end()
    while waiting := sessions.unconfirmed():
        await sessions.commit(owner, waiting)
    await owner.end()
    return zombies


async def test_nothing_confirmed_is_lost_or_doubled_when_owners_and_leaders_die(
    cluster: Cluster, tmp_path: Path
) -> None:
    sessions = Sessions(20, seed=1)
    zombies = await take_over_and_over(cluster, tmp_path, sessions, takeovers=2, batches=(2, 4), size=10)
    assert zombies == ["fenced"]
    await judge(cluster, tmp_path, sessions)


@pytest.mark.thorough
@pytest.mark.timeout(1200)
async def test_nothing_confirmed_is_lost_or_doubled_in_25_takeovers(cluster: Cluster, tmp_path: Path) -> None:
    sessions = Sessions(120, seed=2)
    zombies = await take_over_and_over(cluster, tmp_path, sessions, takeovers=25, batches=(5, 25), size=60)
    assert zombies == ["fenced"] * 5
    await judge(cluster, tmp_path, sessions)
    waits = sorted(sessions.waits)
    middle, most = waits[len(waits) // 2], waits[len(waits) * 99 // 100]
    log.info(
        "%d confirmed; waits: p50 %.3f, p99 %.3f, longest %.3f s", len(sessions.confirmed), middle, most, waits[-1]
    )


async def judge(cluster: Cluster, folder: Path, sessions: Sessions) -> None:
    """By what two further machines make of the log."""
    kept = JetStreamLog(LogAddress.parse(cluster.address("cell")))
    states, found = [], []
    for name in ("third", "fourth"):
        async with ReplicatedJournalStore(folder / name / "journal.db", kept) as store:
            states.append(await store.state())
            found.append(await store.read(limit=100_000))
    assert states[0] == states[1]
    assert found[0] == found[1]
    sessions.judge(found[0])


async def test_servers_that_may_lose_a_confirmed_record_are_refused(cluster: Cluster, tmp_path: Path) -> None:
    address = cluster.address("cell")
    async with JetStreamLog(LogAddress.parse(f"{address}&replicas=1")).open() as last:
        assert last == 0
    with pytest.raises(StoreFailed, match=r"the stream has 1 replicas instead of 3; change it with"):
        await ReplicatedJournalStore(tmp_path / "journal.db", JetStreamLog(LogAddress.parse(address))).__aenter__()
    unseen = JetStreamLog(LogAddress.parse(cluster.address("other"))._replace(monitor=1))
    with pytest.raises(StoreFailed, match="too few answer on port 1; set `http_port: 1` on each server"):
        await unseen.open().__aenter__()
    cluster.kill(2)
    cluster.start(2, syncs=False)
    await cluster.ready(2)
    with pytest.raises(StoreFailed, match=r"127\.0\.0\.3 confirms records before they are on its disk; set `sync_int"):
        await JetStreamLog(LogAddress.parse(cluster.address("other"))).open().__aenter__()
