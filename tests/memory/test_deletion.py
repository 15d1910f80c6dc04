"""What is deleted is in no file any more, is not found, and does not come back."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from local.core.errors import NotOnRecord
from local.memory import record
from local.memory.service import EngramService
from local.memory.store import EngramDraft, Ingested, Origin, Statement

Holders = Callable[..., list[str]]
Make = Callable[..., EngramDraft]
WORDS = ("zanzibar", "quokka")


async def test_a_deleted_engram_is_in_no_file_before_and_after_closing(
    opened: Callable[..., Any], exchange: Callable[..., EngramDraft], holders: Holders, embedder: Any
) -> None:
    async with opened() as service:
        secret = await filled(service, exchange)
        (vector,) = await embedder.embed_documents([f"{secret.query}\n{secret.answer}"])
        traces = (vector.astype(np.float16).tobytes()[:32], vector.astype(np.float16).astype(np.float32).tobytes()[:64])
        assert "engrams.db-wal" in holders(*WORDS)
        assert holders(*traces)
        await service.delete("ann", secret.engram_id)
        assert holders(*WORDS) == []
        await service.settled()
        assert holders(*WORDS, *traces) == []
    assert holders(*WORDS, *traces) == []


async def test_what_a_killed_process_left_in_its_log_goes_when_the_store_is_opened(
    opened: Callable[..., Any], exchange: Callable[..., EngramDraft], holders: Holders, directory: Path
) -> None:
    """The files as they are after a deletion that was committed, but whose log was not wiped any more."""
    async with AsyncExitStack() as stack:
        service = await stack.enter_async_context(opened())
        secret = exchange("I travel to Zanzibar with a Quokka")
        await service.ingest(secret)
        await service._store.write(lambda db: record.delete(db, secret.query_id, 0.0))
        crashed = files_of(directory)
    assert b"Zanzibar" in crashed["engrams.db-wal"]
    for name, content in crashed.items():
        (directory / name).write_bytes(content)
    async with opened():
        assert holders(*WORDS) == []


def files_of(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.glob("engrams.db*") if path.suffix != ".db-shm"}


async def test_deletions_stay_on_the_list_until_they_are_finished(
    opened: Callable[..., Any], exchange: Callable[..., EngramDraft]
) -> None:
    secret = exchange("I travel to Zanzibar")
    async with opened() as service:
        await service.ingest(secret)
        await service.delete("ann", secret.engram_id)
    async with opened() as service:
        (deletion,) = await service.deletions()
        assert (deletion.engram_id, deletion.query_id, deletion.user_id) == (secret.engram_id, secret.query_id, "ann")
        assert not deletion.redacted
        await service.note_redacted(secret.engram_id)
        assert (await service.deletions())[0].redacted
        assert (await service.status()).deletions == 1
        await service.finish_deletion(secret.engram_id)
        assert await service.deletions() == []


async def filled(service: EngramService, exchange: Make) -> EngramDraft:
    """A secret among others, with a fact, a grade and two exchanges after it in its session."""
    for number in range(20):
        await service.ingest(exchange(f"Something else, number {number}, about tea and trains"))
    secret = exchange("I travel to Zanzibar with a Quokka", "zanzibar, quokka: fine", session_id="s")
    await service.ingest(secret)
    await service.ingest(exchange("The hotel is the Bellevue", session_id="s"))
    await service.ingest(exchange("And the boat is slow", session_id="s"))
    await service.supersede(Statement(secret.engram_id, "travel", "Zanzibar", 10.0, Origin.USER))
    await service.grade(secret.query_id, "A", 3.0)
    await service.settled()
    return secret


async def test_a_deleted_exchange_is_found_by_nothing_and_what_followed_it_is(
    service: EngramService, exchange: Make, exported: Any
) -> None:
    secret = await filled(service, exchange)
    await service.delete("ann", secret.engram_id)
    for _ in range(2):  # at once, and when the vectors are cleaned up
        assert (await service.search("ann", "Zanzibar Quokka")).hits == ()
        await service.settled()
    with pytest.raises(NotOnRecord):
        await service.get("ann", secret.engram_id)
    assert await service.facts("ann") == []
    assert "anzibar" not in str(await exported(service, "ann"))
    (hit, *_) = (await service.search("ann", "Bellevue hotel")).hits
    assert hit.engram.query == "The hotel is the Bellevue" and hit.cosine is not None


async def test_a_session_is_deleted_as_a_whole_with_everybodys_exchanges_and_no_other(
    service: EngramService, exchange: Make, holders: Holders
) -> None:
    await filled(service, exchange)
    await service.ingest(exchange("Bob's own", session_id="s", user_id="bob"))
    assert await service.delete_session("s") == 4
    await service.settled()
    assert holders(*WORDS, "bellevu") == []
    assert len(await service.recent("ann", limit=500)) == 20
    assert await service.recent("bob") == []
    assert await service.delete_session("s") == 0
    assert await service.ingest(exchange("Zanzibar?", session_id="s")) is Ingested.DELETED  # comes late


async def test_every_respondents_answer_is_deleted_and_none_comes_back(
    opened: Callable[..., Any], exchange: Make
) -> None:
    ours, theirs, late = (exchange("Zanzibar?", query_id="q", respondent_id=name) for name in "ABC")
    async with opened() as service:
        for each in (ours, theirs):
            await service.ingest(each)
        await service.delete("ann", ours.engram_id)
        with pytest.raises(NotOnRecord):
            await service.get("ann", theirs.engram_id)
        assert await service.ingest(ours) is Ingested.DELETED
    async with opened() as service:
        assert [await service.ingest(each) for each in (ours, late)] == [Ingested.DELETED] * 2
        assert await service.recent("ann") == []
