"""An empty store, a journal as a power cut leaves it, and the judge of what becomes of it."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import pytest

from local.journal.delivery import ConsumerChanges, DeliveryFailures
from local.journal.recovery import DamageReport
from local.journal.schema import Appended, Entry
from local.journal.store import JournalStore
from tests.logs import LOG, ONE_MACHINE, OpenStore, make_open_store

COUNT = 40
NAMES = {"db": "journal.db", "wal": "journal.db-wal", "mark": "journal.db.mark"}


class Clock:
    """Seconds, set by hand."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass(frozen=True)
class Journal:
    """Its files as they were at some instant, and what had been acknowledged by then."""

    files: dict[str, bytes]  # "db", "wal", "mark"
    acknowledged: dict[int, Entry]

    @property
    def count(self) -> int:
        return len(self.acknowledged)

    def put(self, folder: Path, **changed: bytes | None) -> Path:
        """Write the files into a folder, some of them changed, None left out; returns the journal's path."""
        folder.mkdir(exist_ok=True)
        for which, content in (self.files | changed).items():
            if content is not None:
                (folder / NAMES[which]).write_bytes(content)
        return folder / NAMES["db"]

    @classmethod
    def of(cls, path: Path, acknowledged: dict[int, Entry]) -> Self:
        """What a crash would leave at `path` now."""
        found = {which: path.with_name(name) for which, name in NAMES.items()}
        return cls({which: file.read_bytes() for which, file in found.items() if file.exists()}, acknowledged)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "journal.db"


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=[ONE_MACHINE, LOG])
def open_store(request: pytest.FixtureRequest) -> OpenStore:
    return make_open_store(request.param)


@pytest.fixture
async def store(path: Path, clock: Clock, open_store: OpenStore) -> AsyncIterator[JournalStore]:
    async with open_store(path, clock=clock) as opened:
        yield opened


@pytest.fixture
def entry() -> Callable[..., Entry]:
    """Makes an entry with the envelope id `id-<number>`."""
    return make_entry


def make_entry(
    number: int,
    *,
    subject: str = "query.received",
    session: str | None = "s",
    sender: str = "api",
    seq: int | None = None,
    payload: bytes = b"{}",
) -> Entry:
    return Entry(
        subject, f"id-{number}", sender, "instance", number if seq is None else seq, f"correlation-{number % 3}",
        session, float(number), b"%b\0{}\0%b" % (subject.encode(), payload),
    )  # fmt: skip


@pytest.fixture(scope="package")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Journal:
    """Half of its entries in the file, the other half in the WAL, as after a power cut."""
    return asyncio.run(make_journal(tmp_path_factory.mktemp("journal") / "journal.db"))


@pytest.fixture(scope="package")
def closed_journal(journal: Journal, tmp_path_factory: pytest.TempPathFactory) -> Journal:
    """The same after an orderly end: no WAL."""
    path = journal.put(tmp_path_factory.mktemp("closed"))
    with closing(sqlite3.connect(path)) as db:
        db.execute("SELECT * FROM state").fetchall()
    return Journal.of(path, journal.acknowledged)


async def make_journal(path: Path) -> Journal:
    entries = {
        number: make_entry(number, session=f"s{number % 3}", payload=b"x" * (number * 37 % 400))
        for number in range(1, COUNT + 1)
    }
    async with JournalStore(path) as store:
        await store.register("critic", ["query."], floor=0)
        await store.commit([entries[number] for number in range(1, COUNT // 2)])
    async with JournalStore(path) as store:
        await store.commit([], {"critic": ConsumerChanges(settled={1, 2, 5})})
        await store.commit(
            [], {"critic": ConsumerChanges(deaths={4: DeliveryFailures(2, 0)}, served_by=["one", "two"])}
        )
        for number in range(COUNT // 2, COUNT + 1):
            await store.commit([entries[number]])
        return Journal.of(path, entries)


@pytest.fixture
def judge() -> Callable[[Path, dict[int, Entry]], Awaitable[DamageReport | None]]:
    """Opens a hurt journal: nothing may be missing that is not reported, and it must be sound from then on."""
    return open_and_judge


async def open_and_judge(path: Path, acknowledged: dict[int, Entry]) -> DamageReport | None:
    async with JournalStore(path) as store:
        damage = store.damage
        found = {stored.number: stored.entry for stored in await store.read(limit=10_000)}
        ranges = damage.in_doubt if damage else ()
        in_doubt = {number for number in acknowledged if any(first <= number <= last for first, last in ranges)}
        assert {number: acknowledged.get(number) for number in found} == found
        assert set(found) == set(acknowledged) - in_doubt
        await judge_look_ups(store, found)
        known = await store.register("critic", ["query."])
        assert known.floor <= 2
        assert known.acknowledged <= {5}
        assert (known.served_by, known.fenced) in (("two", ("one",)), (None, ()))
        assert known.deaths in ({4: (2, 0)}, {})
        (new,) = await store.commit([make_entry(1000)])
        assert new.number > max(acknowledged)
    if damage is not None:
        async with JournalStore(path) as store:
            assert store.damage is None
            assert [stored.number for stored in await store.read(limit=10_000)] == [*found, new.number]
    return damage


async def judge_look_ups(store: JournalStore, found: dict[int, Entry]) -> None:
    again = await store.commit(list(found.values()))
    assert again == [Appended(number, is_new=False) for number in found]
    for session in ("s0", "s1", "s2"):
        hits = [stored.number for stored in await store.read(limit=10_000, session_id=session)]
        assert hits == [number for number, each in found.items() if each.session_id == session]
