"""The journal's store: numbers and look-ups, durable consumers, deletion, a full disk, and the view from outside."""

from __future__ import annotations

import asyncio
import errno
import random
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from local.core.errors import NotOnRecord, StoreDamaged, StoreFailed, StoreFull, StoreGone
from local.journal import store as store_module
from local.journal.delivery import ConsumerChanges, DeliveryFailures
from local.journal.recovery import DamageReport
from local.journal.schema import Appended, Entry, HighWaterMark, JournalState, mark_path, read_mark
from local.journal.store import JournalStats, JournalStore, JournalView, SessionSpan
from tests.logs import ONE_MACHINE, OpenStore

Journal = Any  # the class is in conftest.py, which no test can import
Judge = Callable[..., Awaitable[DamageReport | None]]
MakeEntry = Callable[..., Entry]
on_one_machine = pytest.mark.parametrize("open_store", [ONE_MACHINE], indirect=True)
UNLIMITED = 2**60


async def numbers(store: JournalStore, **wanted: object) -> list[int]:
    return [stored.number for stored in await store.read(limit=10_000, **wanted)]  # type: ignore[arg-type]


def contents(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in path.parent.iterdir() if file.is_file())


async def test_entries_are_numbered_from_one_in_the_order_of_appending(store: JournalStore, entry: MakeEntry) -> None:
    assert await store.commit([entry(1), entry(2)]) == [Appended(1, True), Appended(2, True)]
    assert await store.commit([entry(3)]) == [Appended(3, True)]


async def test_an_entry_that_is_sent_again_gets_its_number_again(store: JournalStore, entry: MakeEntry) -> None:
    await store.commit([entry(1), entry(2)])
    assert await store.commit([entry(2), entry(3), entry(3)]) == [
        Appended(2, False), Appended(3, True), Appended(3, False),
    ]  # fmt: skip
    assert await numbers(store) == [1, 2, 3]


async def test_an_id_that_a_message_on_another_subject_has_taken_keeps_nothing_out(
    store: JournalStore, entry: MakeEntry
) -> None:
    answer = entry(1, subject="response.generation")
    taken = replace(answer, subject="tool.result.dice", sender="dice", seq=2)
    assert await store.commit([taken, answer]) == [Appended(1, True), Appended(2, True)]
    assert await store.commit([answer, taken]) == [Appended(2, False), Appended(1, False)]


async def test_an_entry_comes_back_as_it_was_after_reopening(
    open_store: OpenStore, path: Path, clock: Any, entry: MakeEntry
) -> None:
    strange = Entry("a.b", "ïd\0", "s", "i", 2**62, "c", None, 0.1, b"a.b\0{}\0" + bytes(range(1, 256)))
    async with open_store(path, clock=clock) as store:
        await store.commit([strange])
    async with open_store(path) as store:
        (stored,) = await store.read(limit=1)
        assert (stored.number, stored.committed_at, stored.redacted, stored.entry) == (1, 1000.0, False, strange)
        assert store.damage is None
        assert await store.commit([entry(1)]) == [Appended(2, True)]


@on_one_machine
async def test_a_mark_that_was_taken_away_while_it_runs_makes_no_damaged_journal_of_it(
    open_store: OpenStore, path: Path, entry: MakeEntry
) -> None:
    async with open_store(path) as store:
        await store.commit([entry(1)])
        mark_path(path).unlink()
        await store.commit([entry(2)])
    async with open_store(path) as store:
        assert store.damage is None
        assert await numbers(store) == [1, 2]


@on_one_machine
async def test_a_folder_that_is_exchanged_in_the_middle_of_a_commit_gets_no_mark(
    open_store: OpenStore, path: Path, entry: MakeEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    find, exchanged = HighWaterMark.has_its_name, path.parent.with_name("exchanged")

    def exchange(mark: HighWaterMark) -> bool:
        if not exchanged.exists():
            path.parent.rename(exchanged)
            path.parent.mkdir()
        return find(mark)

    async with open_store(path) as store:
        monkeypatch.setattr(HighWaterMark, "has_its_name", exchange)
        with pytest.raises(StoreGone):
            await store.commit([entry(1)])
        assert list(path.parent.iterdir()) == []


async def test_entries_are_found_by_subject_session_correlation_sender_and_time(
    store: JournalStore, clock: Any, entry: MakeEntry
) -> None:
    await store.commit([entry(1), entry(2, subject="tool.result.search", session="t", sender="search")])
    clock.now = 2000.0
    await store.commit([entry(3, subject="tool.result.fetch", session=None), entry(4, subject="tool.resultant")])
    assert await numbers(store, subjects=["query.received"]) == [1]
    assert await numbers(store, subjects=["tool.result."]) == [2, 3]
    assert await numbers(store, subjects=["tool.result.", "query.received"]) == [1, 2, 3]
    assert await numbers(store, subjects=["tool.result"]) == []
    assert await numbers(store, session_id="t") == [2]
    assert await numbers(store, correlation_id="correlation-1") == [1, 4]
    assert await numbers(store, correlation_ids=["correlation-2", "correlation-0"], subjects=["tool."]) == [2, 3]
    assert await numbers(store, before=4) == [3, 2, 1]
    assert await numbers(store, before=4, after=1) == [2, 3]
    assert await numbers(store, sender="search") == [2]
    assert await numbers(store, since=2000.0) == [3, 4]
    assert await numbers(store, until=2000.0) == [1, 2]
    assert await numbers(store, after=2, session_id="s") == [4]
    assert [stored.number for stored in await store.read(limit=2)] == [1, 2]


async def test_a_row_that_changed_since_the_check_is_not_given_out(
    path: Path, store: JournalStore, entry: MakeEntry
) -> None:
    await store.commit([entry(1), entry(2)])
    await store._database.run(lambda db: db.execute("UPDATE entries SET sender = 'evil' WHERE number = 2"))
    with pytest.raises(StoreDamaged, match="row 2 of entries does not match its checksum"):
        await store.read(limit=9)
    assert await numbers(store, until=2000.0, subjects=["nothing"]) == []
    assert await store.verify() == "journal: row 2 of entries does not match its checksum"


@on_one_machine
async def test_nothing_is_acknowledged_before_the_mark_is_written(
    path: Path, store: JournalStore, monkeypatch: pytest.MonkeyPatch, entry: MakeEntry
) -> None:
    def fails(mark: HighWaterMark, state: JournalState) -> None:
        raise OSError(errno.ENOSPC, "no space")

    with monkeypatch.context() as patched:
        patched.setattr(HighWaterMark, "advance", fails)
        with pytest.raises(StoreFull):
            await store.commit([entry(1)])
    assert await store.commit([entry(1)]) == [Appended(1, False)]
    assert read_mark(mark_path(path)) == await store.state()


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(2, 10))])
async def test_whatever_is_done_to_it_a_store_agrees_with_a_plain_dictionary(
    open_store: OpenStore, path: Path, clock: Any, seed: int, entry: MakeEntry
) -> None:
    chance = random.Random(seed)
    plain: dict[int, tuple[str, bool]] = {}
    last = unsettled = 0
    store = await open_store(path, clock=clock).__aenter__()
    await store.register("critic", ())
    for _ in range(40):
        clock.now += 1
        match chance.choice(["append", "append", "append", "again", "redact", "retain", "acknowledge", "reopen"]):
            case "append":
                for number in range(last + 1, last + chance.randint(1, 6)):
                    new = replace(entry(number, session=f"s{number % 4}"), correlation_id=f"q{number}")
                    assert await store.commit([new]) == [Appended(number, True)]
                    plain[number], last = (f"s{number % 4}", False), number
            case "again" if plain:
                number = chance.choice(list(plain))
                assert await store.commit([entry(number)]) == [Appended(number, False)]
            case "redact":
                session = f"s{chance.randrange(4)}"
                hit = [number for number, known in plain.items() if known == (session, False)]
                assert await store.redact_session(session) == len(hit)
                plain |= dict.fromkeys(hit, (session, True))
            case "retain":
                clock.now += 1
                removed = [number for number in plain if number <= unsettled]
                assert await store.retain(0, UNLIMITED) == len(removed)
                for number in removed:
                    del plain[number]
            case "acknowledge":
                unsettled = chance.randint(unsettled, last)
                await store.commit([], {"critic": ConsumerChanges(settled=set(range(1, unsettled + 1)))})
                assert (await store.consumer("critic")).floor == unsettled
            case "reopen":
                await store.__aexit__(None, None, None)
                store = await open_store(path, clock=clock).__aenter__()
                assert store.damage is None
        found = {one.number: (one.entry.session_id, one.redacted) for one in await store.read(limit=1000)}
        assert found == plain
    await store.__aexit__(None, None, None)


# Durable consumers


async def test_a_new_consumer_needs_what_comes_from_now_on_or_everything(store: JournalStore, entry: MakeEntry) -> None:
    await store.commit([entry(1), entry(2)])
    assert (await store.register("critic", ["query.received"])).floor == 2
    assert (await store.register("memory", ["query.received"], floor=0)).floor == 0
    assert await store.consumer_names() == ["critic", "memory"]


async def test_a_consumer_that_registers_again_keeps_its_floor_and_gets_its_new_subjects(
    store: JournalStore, entry: MakeEntry
) -> None:
    await store.register("critic", ["a"])
    await store.commit([entry(1)])
    known = await store.register("critic", ["a", "b."])
    assert (known.floor, known.subjects) == (0, ("a", "b."))


async def test_the_floor_rises_over_what_is_acknowledged_and_what_is_not_the_consumers(
    store: JournalStore, entry: MakeEntry
) -> None:
    await store.register("critic", ["query."])
    await store.commit([entry(1), entry(2), entry(3, subject="other"), entry(4), entry(5, subject="other")])
    await store.commit([], {"critic": ConsumerChanges(settled={2, 4})})
    known = await store.consumer("critic")
    assert (known.floor, known.acknowledged) == (0, {2, 4})
    await store.commit([], {"critic": ConsumerChanges(settled={1})})
    known = await store.consumer("critic")
    assert (known.floor, known.acknowledged) == (5, frozenset())


async def test_deaths_and_dead_letters_are_remembered(open_store: OpenStore, path: Path, entry: MakeEntry) -> None:
    async with open_store(path) as store:
        await store.register("critic", ())
        await store.commit([entry(1), entry(2), entry(3)])
        await store.commit(
            [], {"critic": ConsumerChanges(deaths={1: DeliveryFailures(2, 0), 2: DeliveryFailures(4, 3)})}
        )
        await store.commit([], {"critic": ConsumerChanges(dead_letters={2: "died three times alone"})})
        await store.commit([], {"critic": ConsumerChanges(settled={3})})
    async with open_store(path) as store:
        known = await store.consumer("critic")
        assert known.deaths == {1: (2, 0), 2: (4, 3)}
        assert (known.floor, known.acknowledged, known.dead_letters) == (0, {3}, {2: "died three times alone"})
        await store.commit([], {"critic": ConsumerChanges(settled={1})})
        known = await store.consumer("critic")
        assert (known.floor, known.dead_letters) == (3, {2: "died three times alone"})


@pytest.mark.parametrize("is_above_the_floor", [False, True])
async def test_a_dead_letter_that_is_to_be_given_again_is_remembered_on_either_side_of_the_floor(
    open_store: OpenStore, path: Path, entry: MakeEntry, is_above_the_floor: bool
) -> None:
    async with open_store(path) as store:
        await store.register("critic", ())
        await store.commit([entry(1), entry(2), entry(3)])
        settled = {3} if is_above_the_floor else {1, 3}
        await store.commit([], {"critic": ConsumerChanges(settled=settled, dead_letters={2: "why"})})
        await store.commit([], {"critic": ConsumerChanges(again={2}, deaths={2: DeliveryFailures(4, 0)})})
    async with open_store(path) as store:
        known = await store.consumer("critic")
        assert (known.again, known.dead_letters, known.deaths, known.settled & {2}) == ({2}, {}, {2: (4, 0)}, set())
        await store.commit([], {"critic": ConsumerChanges(deaths={2: DeliveryFailures(5, 1)})})
        assert (await store.consumer("critic")).deaths == {2: (5, 1)}
        await store.commit([], {"critic": ConsumerChanges(dead_letters={2: "again"})})
        known = await store.consumer("critic")
        assert (known.again, known.dead_letters) == (set(), {2: "again"})
        await store.commit([], {"critic": ConsumerChanges(again={2})})
        await store.commit([], {"critic": ConsumerChanges(settled={1, 2})})
        known = await store.consumer("critic")
        assert (known.again, known.dead_letters, known.floor) == (set(), {}, 3)


async def test_the_instance_that_serves_a_consumer_is_remembered_and_64_before_it(
    open_store: OpenStore, path: Path
) -> None:
    async with open_store(path) as store:
        await store.register("critic", ())
        await store.commit([], {"critic": ConsumerChanges(served_by=["a", "b", None])})
        known = await store.consumer("critic")
        assert (known.served_by, known.fenced) == (None, ("a", "b"))
        await store.commit([], {"critic": ConsumerChanges(served_by=[str(number) for number in range(70)])})
    async with open_store(path) as store:
        known = await store.consumer("critic")
        assert (known.served_by, known.fenced) == ("69", tuple(str(number) for number in range(5, 69)))
        await store.forget("critic")
        assert (await store.register("critic", ())).served_by is None


async def test_a_dead_letter_and_the_parking_of_what_it_is_about_are_one_commit(
    store: JournalStore, entry: MakeEntry
) -> None:
    await store.register("critic", ["query."])
    await store.commit([entry(1)])
    given_up = {"critic": ConsumerChanges(dead_letters={1: "why"})}
    with pytest.raises(NotOnRecord):
        await store.commit([entry(2, subject="bus.dead")], given_up | {"nobody": ConsumerChanges()})
    assert (await store.consumer("critic")).settled == frozenset()
    assert await store.recovery((), after=1, limit=9) == []
    await store.commit([entry(2, subject="bus.dead")], given_up)
    known = await store.consumer("critic")
    assert (known.floor, known.settled) == (2, {1})


async def test_only_settling_may_be_lost_with_the_end_of_the_file(store: JournalStore, entry: MakeEntry) -> None:
    await store.register("critic", ())
    await store.commit([entry(1), entry(2)])
    counts = [(await store.state()).changes]
    for change in (
        ConsumerChanges(settled={1}), ConsumerChanges(deaths={2: DeliveryFailures(1, 0)}),
        ConsumerChanges(served_by=["a"]),
        ConsumerChanges(dead_letters={2: "why"}), ConsumerChanges(again={2}),
    ):  # fmt: skip
        await store.commit([], {"critic": change})
        counts.append((await store.state()).changes - counts[0])
    assert counts[1:] == [0, 1, 2, 3, 4]


async def test_recovery_brings_the_headers_of_a_consumers_subjects_in_order(
    store: JournalStore, entry: MakeEntry
) -> None:
    subjects = [
        "tool.request.b",
        "query.received",
        "tool.request.a",
        "tool.requests",
        "query.received",
        "tool.request.b",
    ]
    await store.commit([entry(number, subject=subject) for number, subject in enumerate(subjects, 1)])

    async def numbers(subjects: Sequence[str], after: int = 0, limit: int = 9) -> list[int]:
        return [header.number for header in await store.recovery(subjects, after, limit)]

    assert await numbers(["tool.request.", "query.received", "tool.request.a"]) == [1, 2, 3, 5, 6]
    assert await numbers(["tool.request."], after=1) == [3, 6]
    assert await numbers(["nothing.", "nobody"]) == []
    assert await numbers(()) == [1, 2, 3, 4, 5, 6]
    assert await numbers(["query."], limit=1) == [2]
    assert await store.recovery(["query."], 2, 9) == [(5, "query.received", "id-5", "s")]


# Deletion


async def test_a_redacted_sessions_payloads_are_gone_from_every_file_and_its_headers_stay(
    path: Path, store: JournalStore, entry: MakeEntry
) -> None:
    chance = random.Random(5)
    secrets = [b"SECRET-%d-%b" % (n, b"x" * chance.choice((1, 900, 5000, 70_000))) for n in range(8)]
    for number, secret in enumerate(secrets):
        await store.commit(
            [entry(2 * number, session="private", payload=secret), entry(2 * number + 1, payload=b"kept")]
        )
    assert contents(path).count(b"SECRET-") >= 8
    assert await store.redact_session("private") == 8
    assert contents(path).count(b"SECRET-") == 0
    redacted = await store.read(limit=100, session_id="private")
    assert {stored.redacted for stored in redacted} == {True}
    assert {stored.entry.frame for stored in redacted} == {b"query.received\0{}\0"}
    assert {stored.entry.frame for stored in await store.read(limit=100, session_id="s")} == {
        b"query.received\0{}\0kept"
    }
    assert await store.redact_session("private") == 0
    assert await store.verify() is None


async def test_what_comes_only_later_of_a_redacted_query_is_stored_without_its_payload(
    store: JournalStore, entry: MakeEntry
) -> None:
    await store.commit([entry(1)])
    await store.redact_session("s")
    await store.commit([entry(4), entry(5)])  # of the same query, and of another one
    assert [stored.redacted for stored in await store.read(limit=9)] == [True, True, False]


async def test_a_redacted_query_s_payloads_go_wherever_they_lie_and_those_that_come_only_later(
    path: Path, store: JournalStore, entry: MakeEntry
) -> None:
    for number in range(1, 7):
        await store.commit([entry(number, payload=b"SECRET-%d." % number)])
    assert await store.redact_query("correlation-1") == 2
    await store.commit([entry(7, payload=b"SECRET-7.")])
    assert [stored.redacted for stored in await store.read(limit=9)] == [True, False, False, True, False, False, True]
    assert {number for number in range(1, 8) if b"SECRET-%d." % number in contents(path)} == {2, 3, 5, 6}


async def test_all_payloads_that_mention_a_text_are_found_a_slice_at_a_time(
    store: JournalStore, entry: MakeEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "SLICE", 4)
    await store.commit([entry(number, payload=b"of %d" % (number % 3)) for number in range(1, 21)])
    await store.redact_envelopes(["id-4"])
    pages = [[stored.number for stored in page] async for page in store.mentioning("of 1")]
    assert pages == [[1], [7], [10], [13, 16], [19]]


async def test_a_redacted_message_that_is_sent_again_or_late_does_not_come_back(
    store: JournalStore, entry: MakeEntry
) -> None:
    await store.commit([entry(1)])
    assert await store.redact_envelopes(["id-1", "id-2"]) == 1
    await store.commit([entry(1), entry(2), entry(3)])
    assert [stored.redacted for stored in await store.read(limit=9)] == [True, True, False]


async def test_a_redaction_that_a_reader_keeps_in_the_wal_is_said_to_be_incomplete(
    path: Path, store: JournalStore, entry: MakeEntry
) -> None:
    await store.commit([entry(1, payload=b"SECRET")])
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM entries").fetchall()
    await store._database.run(lambda db: db.execute("PRAGMA busy_timeout=1"))
    with pytest.raises(StoreFailed, match="another program reads the file"):
        await store.redact_session("s")
    reader.close()
    assert await store.redact_session("s") == 0
    assert b"SECRET" not in contents(path)


# A full disk


@on_one_machine
async def test_a_store_without_room_says_so_and_works_again_when_there_is_some(
    open_store: OpenStore, path: Path, entry: MakeEntry
) -> None:
    async with open_store(path) as store:
        await store.commit([entry(0)])
        (pages,) = await store._database.run(lambda db: tuple(db.execute("PRAGMA page_count").fetchone()))
        await store._database.run(lambda db: db.execute(f"PRAGMA max_page_count={pages}").fetchall())
        large = [entry(number, payload=b"x" * 50_000) for number in range(1, 3)]
        failed = await asyncio.gather(*(store.commit([each]) for each in large), return_exceptions=True)
        assert [type(error) for error in failed] == [StoreFull] * 2
        assert str(failed[0]) == f"{path}: the disk is full; free some space and try again"
        assert await numbers(store) == [1]
        await store._database.run(lambda db: db.execute("PRAGMA max_page_count=100000").fetchall())
        assert await store.commit(large) == [Appended(2, True), Appended(3, True)]
    async with open_store(path) as store:
        assert store.damage is None
        assert await numbers(store) == [1, 2, 3]


@on_one_machine
async def test_a_full_disk_loses_nothing_that_was_acknowledged(
    open_store: OpenStore, small_disk: Any, entry: MakeEntry
) -> None:
    acknowledged = []
    async with open_store(small_disk.folder / "journal.db") as store:
        small_disk.fill(room=1024 * 1024)
        with pytest.raises(StoreFull):
            for number in range(10_000):
                acknowledged += await store.commit([entry(number, payload=b"x" * 5000)])
        small_disk.free()
        acknowledged += await store.commit([entry(10_000)])
        assert await numbers(store) == [appended.number for appended in acknowledged]
        assert await store.verify() is None
    async with open_store(small_disk.folder / "journal.db") as store:
        assert store.damage is None
        assert await numbers(store) == [appended.number for appended in acknowledged]


# The view from outside


async def test_what_its_owner_commits_is_seen_at_once(path: Path, store: JournalStore, entry: MakeEntry) -> None:
    with JournalView(path) as journal:
        assert journal.read(limit=9) == []
        await store.commit([entry(1), entry(2, subject="other"), entry(3)])
        assert [stored.number for stored in journal.read(limit=9, subjects=["query."])] == [1, 3]
        assert journal.read(limit=9) == await store.read(limit=9)


async def test_a_view_leaves_nothing_behind_that_its_owner_would_stumble_over(
    open_store: OpenStore, path: Path, entry: MakeEntry
) -> None:
    async with open_store(path) as store:
        await store.commit([entry(1)])
    with JournalView(path) as journal:
        assert [stored.number for stored in journal.read(limit=9)] == [1]
    async with open_store(path) as store:
        assert store.damage is None
        assert await store.verify() is None


async def test_what_a_killed_owner_left_in_the_wal_is_seen_and_still_there_for_its_next_start(
    journal: Journal, tmp_path: Path, judge: Judge
) -> None:
    path = journal.put(tmp_path / "killed")
    with JournalView(path) as looked_at:
        assert {stored.number: stored.entry for stored in looked_at.read_all()} == journal.acknowledged
    assert await judge(path, journal.acknowledged) is None


async def test_an_open_view_does_not_keep_a_redacted_payload_in_the_wal(
    path: Path, store: JournalStore, entry: MakeEntry
) -> None:
    await store.commit([entry(1, payload=b"SECRET"), entry(2, payload=b"SECRET")])
    with JournalView(path) as journal:
        found = journal.read_all()
        next(found)
        journal.sessions()
        await store.redact_session("s")
        assert b"SECRET" not in b"".join(file.read_bytes() for file in path.parent.iterdir())


async def test_all_entries_come_slice_by_slice(
    path: Path, store: JournalStore, entry: MakeEntry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "VIEW_SLICE", 3)
    await store.commit([entry(number, session=f"s{number % 2}") for number in range(1, 12)])
    with JournalView(path) as journal:
        assert [stored.number for stored in journal.read_all(session_id="s1")] == [1, 3, 5, 7, 9, 11]
        assert len(list(journal.read_all(after=2))) == 9


async def test_sessions_and_totals(path: Path, store: JournalStore, clock: Any, entry: MakeEntry) -> None:
    with JournalView(path) as journal:
        assert journal.count()[:3] == (0, 0, 0)
        await store.commit([entry(1, session="b"), entry(2, session="a"), entry(3, session=None)])
        clock.now = 2000.0
        await store.commit([entry(4, session="b")])
        assert journal.sessions() == [SessionSpan("b", 2, 1000.0, 2000.0), SessionSpan("a", 1, 1000.0, 1000.0)]
        size = sum(path.with_name(name).stat().st_size for name in ("journal.db", "journal.db-wal"))
        assert journal.count() == JournalStats(4, 1, 4, size)


async def test_a_damaged_entry_is_named_and_does_not_hold_up_its_owner(
    path: Path, store: JournalStore, entry: MakeEntry
) -> None:
    await store.commit([entry(1), entry(2), entry(3)])
    await store._database.run(lambda db: db.execute("UPDATE entries SET sender = 'evil' WHERE number = 2"))
    with JournalView(path) as journal:
        with pytest.raises(StoreDamaged) as damage:
            journal.read(limit=9)
        assert "row 2 of entries does not match its checksum; stop the system and start it again" in str(damage.value)
        await store.redact_session("another")
        assert [stored.number for stored in journal.read(limit=9, after=2)] == [3]


def test_what_is_no_journal_is_said_to_be_none(path: Path) -> None:
    with pytest.raises(NotOnRecord, match=r"journal\.db: there is no journal; the first start of a system"):
        JournalView(path).__enter__()
    assert not path.parent.exists()
    path.parent.mkdir()
    path.write_bytes(b"This is no database. " * 500)
    with pytest.raises(StoreDamaged, match=r"journal\.db: SQLite cannot read the file: file is not a database"):
        JournalView(path).__enter__()
    path.unlink()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA user_version=7")
    with pytest.raises(StoreFailed, match="schema version 7 is newer than this program"):
        JournalView(path).__enter__()
