"""Which calls of one tool have begun, and how they ended."""

import asyncio
from pathlib import Path

import pytest

from local.core.errors import StoreFenced
from local.tools.effects import FORGOTTEN, KEPT_SECONDS, EffectCall, EffectStore, StoredEffect


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "effects" / "note.db"


async def test_a_call_begins_once_and_its_end_is_kept_over_a_restart(path: Path) -> None:
    async with EffectStore(path) as store:
        assert await store.begin(EffectCall("a", "this")) is None
        assert await store.begin(EffectCall("a", "that")) == StoredEffect("this", None)
        assert await store.end("a", "done") == "done"
    async with EffectStore(path) as store:
        assert await store.begin(EffectCall("a", "this")) == StoredEffect("this", "done")
        assert await store.begin(EffectCall("b", "this")) is None


async def test_copies_that_arrive_together_begin_once(path: Path) -> None:
    async with EffectStore(path) as store:
        begun = await asyncio.gather(*(store.begin(EffectCall("a", "this")) for _ in range(20)))
    assert begun.count(None) == 1


async def test_a_beginning_is_on_the_disk_before_anybody_goes_on(path: Path) -> None:
    async with EffectStore(path) as killed:
        await killed.begin(EffectCall("a", "this"))
        async with EffectStore(path) as store:
            assert await store.begin(EffectCall("a", "this")) == StoredEffect("this", None)


async def test_the_first_end_of_a_call_stays(path: Path) -> None:
    async with EffectStore(path) as store:
        await store.begin(EffectCall("a", "this"))
        assert await store.end("a", "first") == "first"
        assert await store.end("a", "second") == "first"
        assert await store.begin(EffectCall("a", "this")) == StoredEffect("this", "first")


async def test_who_opened_the_file_before_the_last_may_begin_nothing_but_tell_how_its_calls_ended(path: Path) -> None:
    async with EffectStore(path) as old:
        await old.begin(EffectCall("a", "this"))
        async with EffectStore(path) as new:
            with pytest.raises(StoreFenced, match="a newer process has opened it"):
                await old.begin(EffectCall("b", "this"))
            assert await new.begin(EffectCall("b", "this")) is None
            assert await old.end("a", "done") == "done"
            assert await new.begin(EffectCall("a", "this")) == StoredEffect("this", "done")


async def test_what_began_more_than_thirty_days_ago_is_forgotten_when_the_file_is_opened(path: Path) -> None:
    async with EffectStore(path, clock=lambda: 0.0) as store:
        await store.begin(EffectCall("old", "this"))
    async with EffectStore(path, clock=lambda: 1.0) as store:
        await store.begin(EffectCall("young", "this"))
    async with EffectStore(path, clock=lambda: KEPT_SECONDS + 0.5) as store:
        assert await store.begin(EffectCall("young", "this")) == StoredEffect("this", None)
        assert await store.begin(EffectCall("old", "this")) is None


async def test_an_end_that_comes_when_its_call_is_forgotten_is_as_it_was_told(path: Path) -> None:
    async with EffectStore(path) as store:
        assert await store.end("a", "done") == "done"


async def test_of_a_deleted_session_or_query_only_that_its_calls_were_made_is_known(path: Path) -> None:
    calls = [EffectCall("a", "this", "q1", "s"), EffectCall("b", "this", "q2", "t"), EffectCall("c", "this", "q3", "t")]
    async with EffectStore(path) as store:
        for call in calls:
            await store.begin(call)
            await store.end(call.key, f"secret of {call.key}")
        assert await store.forget_session("s") == 1
        assert await store.forget_query("q2") == 1
        outcomes = {call.key: await store.begin(call) for call in calls}
        files = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert outcomes == {key: StoredEffect("this", FORGOTTEN) for key in "ab"} | {
        "c": StoredEffect("this", "secret of c")
    }
    assert [b"secret of %b" % key in files for key in (b"a", b"b", b"c")] == [False, False, True]


async def test_how_a_call_ends_whose_session_was_deleted_meanwhile_is_told_and_not_kept(path: Path) -> None:
    async with EffectStore(path) as store:
        await store.begin(EffectCall("a", "this", "q1", "s"))
        await store.forget_session("s")
        assert await store.end("a", "secret") == "secret"
        assert await store.begin(EffectCall("a", "this", "q1", "s")) == StoredEffect("this", FORGOTTEN)
