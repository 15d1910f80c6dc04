"""Which calls of one tool have begun, and how they ended."""

import asyncio
import sqlite3
from pathlib import Path

import pytest

from local.errors import StoreFailed, StoreFenced
from local.services.effect_store import KEPT_SECONDS, EffectStore, StoredEffect


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "effects" / "note.db"


async def test_a_call_begins_once_and_its_end_is_kept_over_a_restart(path: Path) -> None:
    async with EffectStore(path) as store:
        assert await store.begin("a", "this") is None
        assert await store.begin("a", "that") == StoredEffect("this", None)
        assert await store.end("a", "done") == "done"
    async with EffectStore(path) as store:
        assert await store.begin("a", "this") == StoredEffect("this", "done")
        assert await store.begin("b", "this") is None


async def test_copies_that_arrive_together_begin_once(path: Path) -> None:
    async with EffectStore(path) as store:
        begun = await asyncio.gather(*(store.begin("a", "this") for _ in range(20)))
    assert begun.count(None) == 1


async def test_a_beginning_is_on_the_disk_before_anybody_goes_on(path: Path) -> None:
    async with EffectStore(path) as killed:
        await killed.begin("a", "this")
        async with EffectStore(path) as store:
            assert await store.begin("a", "this") == StoredEffect("this", None)


async def test_the_first_end_of_a_call_stays(path: Path) -> None:
    async with EffectStore(path) as store:
        await store.begin("a", "this")
        assert await store.end("a", "first") == "first"
        assert await store.end("a", "second") == "first"
        assert await store.begin("a", "this") == StoredEffect("this", "first")


async def test_who_opened_the_file_before_the_last_may_begin_nothing_but_tell_how_its_calls_ended(path: Path) -> None:
    async with EffectStore(path) as old:
        await old.begin("a", "this")
        async with EffectStore(path) as new:
            with pytest.raises(StoreFenced, match="a newer process has opened it"):
                await old.begin("b", "this")
            assert await new.begin("b", "this") is None
            assert await old.end("a", "done") == "done"
            assert await new.begin("a", "this") == StoredEffect("this", "done")


async def test_what_began_more_than_thirty_days_ago_is_forgotten_when_the_file_is_opened(path: Path) -> None:
    async with EffectStore(path, clock=lambda: 0.0) as store:
        await store.begin("old", "this")
    async with EffectStore(path, clock=lambda: 1.0) as store:
        await store.begin("young", "this")
    async with EffectStore(path, clock=lambda: KEPT_SECONDS + 0.5) as store:
        assert await store.begin("young", "this") == StoredEffect("this", None)
        assert await store.begin("old", "this") is None


async def test_an_end_that_comes_when_its_call_is_forgotten_is_as_it_was_told(path: Path) -> None:
    async with EffectStore(path) as store:
        assert await store.end("a", "done") == "done"


async def test_a_file_that_cannot_be_taken_over_is_closed_again(path: Path) -> None:
    async with EffectStore(path):
        pass
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE owner")
    connection.close()
    store = EffectStore(path)
    with pytest.raises(StoreFailed, match="no such table: owner"):
        await store.__aenter__()
    with pytest.raises(StoreFailed, match="is closed"):
        await store.begin("a", "this")
