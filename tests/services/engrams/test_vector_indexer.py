"""The vector index is kept, repaired and rebuilt in the background, while words are searched."""

import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from local.errors import IndexBroken, ModelError
from local.services.engrams import vector_indexer, vectors
from local.services.engrams.chroma_index import ChromaIndex
from local.services.engrams.engram import EngramDraft
from local.services.engrams.search import Found
from local.services.engrams.service import EngramService

Opened = Callable[..., Any]
Make = Callable[..., EngramDraft]


@pytest.fixture
async def kept(opened: Opened, exchange: Make, directory: Path, embedder: Any) -> Path:
    """The only generation of the index over three exchanges; everything is closed."""
    async with opened() as service:
        for query in ("My coffee is black", "The train is late", "Bob drinks tea"):
            await service.ingest(exchange(query))
        await service.settled()
    embedder.texts.clear()
    (generation,) = (directory / "vectors").iterdir()
    return generation


def files_in(directory: Path, pattern: str) -> list[Path]:
    return list(directory.rglob(pattern))


def exists(path: Path) -> bool:
    return path.exists()


def damage_all(files: list[Path], damage: Callable[[Path], object]) -> None:
    assert files
    for path in files:
        damage(path)


async def assert_complete(service: EngramService) -> None:
    await assert_every_vector_is_indexed(service)
    (hit, *_) = (await service.search("ann", "espresso")).hits
    assert (hit.engram.query, hit.cosine is not None) == ("My coffee is black", True)


async def assert_every_vector_is_indexed(service: EngramService) -> None:
    await service.settled()
    assert (await service.status()).pending == 0
    assert service._indexer._index is not None
    assert service._indexer._index.keys() == await service._store.read(vectors.keys)


async def test_an_index_is_used_again_without_embedding_anything(opened: Opened, kept: Path, embedder: Any) -> None:
    async with opened() as service:
        await assert_complete(service)
    assert exists(kept)
    assert embedder.texts == []


async def test_a_missing_index_is_rebuilt_without_embedding_anything(opened: Opened, kept: Path, embedder: Any) -> None:
    shutil.rmtree(kept)
    async with opened() as service:
        await assert_complete(service)
    assert embedder.texts == []


@pytest.mark.parametrize("pattern", ["chroma.sqlite3", "*.bin", "*.pickle"])
@pytest.mark.parametrize("damage", [lambda path: path.write_bytes(b"not what it was"), Path.unlink])
async def test_a_broken_index_ends_as_a_complete_one(
    opened: Opened, large: Path, directory: Path, pattern: str, damage: Callable[[Path], object]
) -> None:
    shutil.copytree(large, directory)
    damage_all(files_in(directory / "vectors", pattern), damage)
    async with opened() as service:
        await assert_every_vector_is_indexed(service)
        (hit, *_) = (await service.search("ann", "stone7 river7")).hits
        assert (hit.engram.query, hit.cosine is not None) == ("stone7 river7", True)


async def test_another_model_embeds_everything_anew(opened: Opened, kept: Path, embedder: Any) -> None:
    other = type(embedder)("other words")
    async with opened(other) as service:
        await assert_complete(service)
    assert sorted(other.texts)[0].startswith("Bob drinks tea")
    assert not exists(kept)


async def test_words_are_searched_while_the_index_is_built(opened: Opened, kept: Path, embedder: Any) -> None:
    other = type(embedder)("other words")
    other.may_go_on.clear()
    async with opened(other) as service:
        result = await service.search("ann", "black coffee")
        assert [hit.engram.query for hit in result.hits] == ["My coffee is black"]
        assert result.degraded
        other.may_go_on.set()
        await assert_complete(service)


async def test_an_index_whose_opening_killed_the_process_is_not_opened_again(
    opened: Opened, kept: Path, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sqlite3.connect(directory / "engrams.db") as db:
        db.execute("UPDATE vector_index SET is_opening = 1")
    db.close()
    tried: list[Path] = []
    monkeypatch.setattr(vector_indexer, "ChromaIndex", lambda path: tried.append(path) or ChromaIndex(path))
    async with opened() as service:
        await assert_complete(service)
    assert kept not in tried


async def test_vectors_that_the_index_lacks_are_added_and_strangers_rebuild_it(
    opened: Opened, kept: Path, directory: Path, embedder: Any
) -> None:
    with sqlite3.connect(directory / "engrams.db") as db:
        db.execute("UPDATE vectors SET key = 'another' || number WHERE number = 1")
    db.close()
    async with opened() as service:
        await assert_complete(service)
    assert not exists(kept)
    assert embedder.texts == []


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


async def test_an_index_that_breaks_while_it_is_searched_is_rebuilt(
    opened: Opened, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened() as service:
        await service.settled()
        broken = service._indexer._index

        def fail(user_id: str, vector: Any, limit: int) -> list[str]:
            raise IndexBroken("out of order")

        monkeypatch.setattr(broken, "search", fail)
        result = await service.search("ann", "coffee")
        assert [hit.engram.query for hit in result.hits] == ["My coffee is black"]
        assert result.degraded == ("out of order",)
        await assert_complete(service)
        assert service._indexer._index is not broken


async def test_the_index_leaves_no_reports_and_reads_no_settings_of_a_directory(
    opened: Opened, kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".env").write_text("ALLOW_RESET=true\nIS_PERSISTENT=false\n")
    monkeypatch.chdir(tmp_path)
    async with opened() as service:
        await service.settled()
        settings = service._indexer._index._client.get_settings()  # type: ignore[union-attr]
        assert (settings.anonymized_telemetry, settings.allow_reset, settings.is_persistent) == (False, False, True)


def test_files_are_private_to_the_user(kept: Path, directory: Path) -> None:
    assert directory.stat().st_mode & 0o077 == 0
    assert kept.stat().st_mode & 0o077 == 0
    assert list((directory / "vectors").iterdir()) == [kept]


async def test_an_empty_memory_opens_no_index_and_embeds_no_question(
    opened: Opened, directory: Path, embedder: Any
) -> None:
    embedder.error = ModelError("nobody should have asked")
    async with opened() as service:
        await service.settled()
        assert await service.search("ann", "black coffee") == Found(())
        assert (await service.status()).index == "empty"
    assert not exists(directory / "vectors")


async def test_with_the_last_engram_its_index_goes_and_the_next_one_begins_another(
    opened: Opened, exchange: Make, directory: Path
) -> None:
    async with opened() as service:
        black = exchange("My coffee is black")
        await service.ingest(black)
        await service.settled()
        await service.delete("ann", black.engram_id)
        await service.settled()
        assert (await service.status()).index == "empty"
        assert list((directory / "vectors").iterdir()) == []
        await service.ingest(exchange("My coffee is black"))
        assert (await service.search("ann", "coffee")).degraded
        await assert_complete(service)


def test_what_searches_by_meaning_is_not_loaded_before_there_is_something_to_find(directory: Path) -> None:
    program = f"""
import asyncio, sys
from pathlib import Path
from local.agents.memory import MemoryAgent
from local.services.embeddings.minilm import MiniLmEmbedder
from local.services.engrams.service import EngramService

async def main():
    async with EngramService(Path({str(directory)!r}), MiniLmEmbedder()) as service:
        await service.settled()
        await service.search("ann", "coffee")

asyncio.run(main())
print(sorted({{"chromadb", "numpy", "tokenizers"}} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
