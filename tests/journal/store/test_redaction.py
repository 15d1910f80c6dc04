"""Payloads that are to be gone are gone from every file."""

import random
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from local.core.errors import StoreFailed
from local.journal import store as store_module
from local.journal.schema import Entry
from local.journal.store import JournalStore

MakeEntry = Callable[..., Entry]


def contents(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in path.parent.iterdir() if file.is_file())


async def test_a_redacted_sessions_payloads_are_gone_from_every_file_and_its_headers_stay(
    path: Path, store: JournalStore, entry: MakeEntry
) -> None:
    chance = random.Random(5)
    secrets = [b"SECRET-%d-%b" % (n, b"x" * chance.choice((1, 50, 900, 5000, 70_000))) for n in range(40)]
    for number, secret in enumerate(secrets):
        await store.commit(
            [entry(2 * number, session="private", payload=secret), entry(2 * number + 1, payload=b"kept")]
        )
    assert contents(path).count(b"SECRET-") >= 40
    assert await store.redact_session("private") == 40
    assert contents(path).count(b"SECRET-") == 0
    redacted = await store.read(limit=100, session_id="private")
    assert {stored.redacted for stored in redacted} == {True}
    assert {stored.entry.frame for stored in redacted} == {b"query.received\0{}\0"}
    assert {stored.entry.frame for stored in await store.read(limit=100, session_id="s")} == {
        b"query.received\0{}\0kept"
    }
    assert await store.redact_session("private") == 0
    assert await store.verify() is None


async def test_a_session_that_goes_on_after_its_redaction_is_kept_from_there(
    store: JournalStore, entry: MakeEntry
) -> None:
    await store.commit([entry(1)])
    await store.redact_session("s")
    await store.commit([entry(2)])
    assert [stored.redacted for stored in await store.read(limit=9)] == [True, False]


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
