"""Meanings are kept in the background, while words are searched, and who has very many gets an index on disk."""

import asyncio
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from local.core.errors import IndexBroken, ModelError, StoreFull
from local.memory import vectors
from local.memory import vectors as user_indexes
from local.memory.search import Found
from local.memory.service import EngramService
from local.memory.store import EngramDraft
from local.memory.vectors import NOTHING_YET, InMemoryIndex

Opened = Callable[..., Any]
Make = Callable[..., EngramDraft]


@pytest.fixture
async def kept(opened: Opened, exchange: Make, embedder: Any) -> None:
    """A store of three embedded exchanges; everything is closed."""
    async with opened() as service:
        for query in ("My coffee is black", "The train is late", "Bob drinks tea"):
            await service.ingest(exchange(query))
        await service.settled()
    embedder.texts.clear()


@pytest.fixture
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(user_indexes, "IN_MEMORY_AT_MOST", 2)


@pytest.fixture
async def large(few_are_many: None, kept: None, opened: Opened, directory: Path) -> Path:
    """The directory of the index on disk of a user who has very many; everything is closed."""
    async with opened() as service:
        await service.settled()
    return only_in(directory)


def only_in(directory: Path) -> Path:
    (path,) = (directory / "vectors").iterdir()
    return path


def exists(path: Path) -> bool:
    return path.exists()


def index_of(service: EngramService) -> Any:
    return service._indexer._indexes._open.get("ann")


async def assert_complete(service: EngramService) -> None:
    await service.settled()
    assert (await service.status()).pending == 0
    (hit, *_) = (await service.search("ann", "espresso")).hits
    assert (hit.engram.query, hit.cosine is not None) == ("My coffee is black", True)
    assert index_of(service).keys() == await service._store.read(lambda db: vectors.keys(db, "ann"))


async def test_what_an_exchange_follows_is_not_embedded_again_and_not_kept_when_it_is_deleted(
    service: EngramService, exchange: Make, embedder: Any
) -> None:
    latest = exchange("And without sugar", session_id="s")
    said = [exchange("My coffee is black", session_id="s"), exchange("The train is late", session_id="other"), latest]
    for each in said:
        await service.ingest(each)
        await service.settled()
    assert [text.partition("\n")[0] for text in embedder.texts] == [each.query for each in said]
    await service.delete("ann", latest.engram_id)
    await service.settled()
    assert not any("sugar" in text for text in service._indexer._documents._kept)


async def test_who_has_very_many_gets_an_index_on_disk_which_is_used_again(
    opened: Opened, large: Path, directory: Path, embedder: Any, exchange: Make
) -> None:
    async with opened() as service:
        await assert_complete(service)
        assert index_of(service).directory == large
        await service.ingest(exchange("The beverage is cold"))
        await assert_complete(service)
    assert only_in(directory) == large
    assert len(embedder.texts) == 1


async def test_who_has_grown_before_anything_was_searched_gets_an_index_on_disk_with_the_first_search(
    opened: Opened, few_are_many: None, exchange: Make, directory: Path
) -> None:
    async with opened() as service:
        await service.settled()
        for query in ("My coffee is black", "The train is late", "Bob drinks tea"):
            await service.ingest(exchange(query))
        await service.settled()
        assert not exists(directory / "vectors")
        assert (await service.search("ann", "espresso")).hits[0].engram.query == "My coffee is black"
        await assert_complete(service)
        assert index_of(service).directory == only_in(directory)


async def test_vectors_that_an_index_on_disk_lacks_are_added_and_strangers_have_it_made_anew(
    opened: Opened, large: Path, directory: Path, embedder: Any
) -> None:
    with sqlite3.connect(directory / "engrams.db") as db:
        db.execute("UPDATE vectors SET key = 'another' || number WHERE number = 1")
    db.close()
    async with opened() as service:
        await assert_complete(service)
    assert only_in(directory) != large
    assert embedder.texts == []


async def test_a_deletion_has_the_index_on_disk_made_anew_and_too_few_need_none(
    opened: Opened, large: Path, directory: Path, exchange: Make
) -> None:
    async with opened() as service:
        late = exchange("The beverage is cold")
        await service.ingest(late)
        await service.settled()
        await service.delete("ann", late.engram_id)
        await assert_complete(service)
        assert only_in(directory) != large
        (train,) = (await service.search("ann", "train", limit=1)).hits
        await service.delete("ann", train.engram.engram_id)
        await assert_complete(service)
        assert isinstance(index_of(service), InMemoryIndex)
    assert list((directory / "vectors").iterdir()) == []


async def test_a_search_whose_index_breaks_is_answered_all_the_same_and_has_it_made_anew(
    opened: Opened, large: Path, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened() as service:
        await service.settled()

        def fail(vector: Any, limit: int) -> list[str]:
            raise IndexBroken("out of order")

        monkeypatch.setattr(index_of(service), "search", fail)
        results = await asyncio.gather(*(service.search("ann", "espresso") for _ in range(3)))
        assert [(found.hits[0].engram.query, found.degraded) for found in results] == [("My coffee is black", ())] * 3
        await assert_complete(service)
        assert index_of(service).directory == only_in(directory) != large


async def test_another_model_embeds_everything_anew(opened: Opened, kept: None, embedder: Any) -> None:
    other = type(embedder)("other words")
    async with opened(other) as service:
        await assert_complete(service)
    assert sorted(other.texts)[0].startswith("Bob drinks tea")


async def test_words_are_searched_while_nothing_is_embedded_yet(opened: Opened, kept: None, embedder: Any) -> None:
    other = type(embedder)("other words")
    other.may_go_on.clear()
    async with opened(other) as service:
        result = await service.search("ann", "black coffee")
        assert [hit.engram.query for hit in result.hits] == ["My coffee is black"]
        assert result.degraded
        other.may_go_on.set()
        await assert_complete(service)


async def test_an_index_that_a_search_has_loaded_right_after_the_start_is_kept(
    opened: Opened, kept: None, embedder: Any
) -> None:
    other = type(embedder)("other words")
    other.may_go_on.clear()
    async with opened(other) as service:
        async for status in service.changes_of_status():
            if status.index == "building":
                break
        await service.search("ann", "espresso")
        loaded = index_of(service)
        other.may_go_on.set()
        await assert_complete(service)
        assert index_of(service) is loaded


async def test_an_embedder_that_comes_back_is_used_when_there_is_something_new(
    opened: Opened, exchange: Make, embedder: Any
) -> None:
    embedder.error = ModelError("the server is gone")
    async with opened() as service:
        await service.ingest(exchange("My coffee is black"))
        await embedder.failed.wait()
        embedder.error = None
        await service.ingest(exchange("The train is late"))
        await assert_complete(service)
        assert (await service.status()).trouble == ""


async def test_a_disk_that_was_full_is_no_trouble_any_more_although_the_work_still_waits_for_quiet(
    opened: Opened, exchange: Make, embedder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "FAILED_SECONDS", 0.01)
    embedder.error = StoreFull("the disk is full")
    async with opened() as service:
        await service.ingest(exchange("My coffee is black"))
        await embedder.failed.wait()
        service._indexer.moment = asyncio.Event().wait  # people keep asking
        async for status in service.changes_of_status():
            if status.index == "building":
                break
        assert status.trouble == ""


async def test_an_empty_memory_opens_no_index_and_embeds_no_question(
    opened: Opened, directory: Path, embedder: Any
) -> None:
    embedder.error = ModelError("nobody should have asked")
    async with opened() as service:
        await service.settled()
        assert await service.search("ann", "black coffee") == Found((), (NOTHING_YET,))
        assert (await service.status()).index == "empty"
    assert not exists(directory / "vectors")


def spoil(path: Path) -> None:
    for file in path.rglob("*"):
        if file.is_file():
            file.write_bytes(b"not what it was")


@pytest.mark.parametrize("damage", [spoil, lambda path: path.rename(path.parent / "x")])
async def test_an_index_on_disk_that_is_broken_or_gone_ends_as_a_complete_one(
    opened: Opened, large: Path, directory: Path, damage: Callable[[Path], object], embedder: Any
) -> None:
    damage(large)
    async with opened() as service:
        await assert_complete(service)
    assert exists(only_in(directory))
    assert embedder.texts == []


async def test_background_work_waits_while_somebody_searches_but_not_without_end(
    service: EngramService, monkeypatch: pytest.MonkeyPatch
) -> None:
    indexer = service._indexer
    monkeypatch.setattr(user_indexes, "QUIET_SECONDS", 0.01)
    with indexer.searching():
        waiting = asyncio.create_task(indexer._give_way(user_indexes.QUIET_SECONDS))
        await asyncio.sleep(0)
        assert not waiting.done()
    await waiting
    monkeypatch.setattr(user_indexes, "GIVE_WAY_SECONDS", 0.01)
    with indexer.searching():
        await indexer._give_way(user_indexes.QUIET_SECONDS)


async def test_a_search_that_begins_while_many_texts_are_embedded_waits_for_a_few_of_them(
    service: EngramService, embedder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    indexer, embed, steps, begun = service._indexer, embedder.embed_documents, list[int](), asyncio.Event()
    with ExitStack() as search:

        async def search_begins(texts: Sequence[str]) -> Any:
            if not steps:
                search.enter_context(indexer.searching())
            steps.append(len(texts))
            begun.set()
            return await embed(texts)

        monkeypatch.setattr(embedder, "embed_documents", search_begins)
        embedding = asyncio.create_task(indexer._embedded_in_steps(embedder, [f"text {n}" for n in range(20)]))
        await begun.wait()
        await asyncio.sleep(0)
        assert steps == [8]
    assert len(await embedding) == 20
    assert steps == [8, 8, 4]


async def test_exchanges_are_embedded_together_when_the_moment_has_come_and_found_by_words_before(
    service: EngramService, exchange: Make, embedder: Any
) -> None:
    await service.settled()
    moment = asyncio.Event()
    service.embed_when(moment.wait)
    await service.ingest(exchange("The first boat is blue"))
    for number in range(3):
        await service.ingest(exchange(f"Boat number {number}", "A long answer. " * 100 + "Its very end."))
    assert (await service.search("ann", "first boat")).hits
    assert embedder.texts == []
    moment.set()
    await service.settled()
    assert len(embedder.texts) == 4
    assert not any("very end" in text for text in embedder.texts)


async def test_questions_that_wait_are_embedded_together(
    service: EngramService, exchange: Make, embedder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    await service.ingest(exchange("My coffee is black"))
    await service.settled()
    gate, begun, embed, calls = asyncio.Event(), asyncio.Event(), embedder.embed_queries, list[Sequence[str]]()

    async def held(texts: Sequence[str]) -> Any:
        calls.append(list(texts))
        begun.set()
        await gate.wait()
        return await embed(texts)

    monkeypatch.setattr(embedder, "embed_queries", held)
    questions = ["espresso?", "Is it late?", "espresso?", "Which tea?"]
    vectors_of = [asyncio.create_task(service._indexer.question(text)) for text in questions]
    await begun.wait()
    late = asyncio.create_task(service._indexer.question("And a biscuit?"))
    await asyncio.sleep(0)
    gate.set()
    await asyncio.gather(*vectors_of, late)
    assert calls == [["espresso?", "Is it late?", "Which tea?"], ["And a biscuit?"]]
