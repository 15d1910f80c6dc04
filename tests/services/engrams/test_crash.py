"""A process that is killed while it ingests leaves each exchange once, and an index that is complete soon after."""

import asyncio
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from local.memory import vectors

EXCHANGES = 120
KILLS = 4
PROCESS = """
import asyncio, importlib.util, sys
from pathlib import Path
from local.memory.store import EngramDraft
from local.memory.service import EngramService

spec = importlib.util.spec_from_file_location("helpers", sys.argv[1])
helpers = importlib.util.module_from_spec(spec)
spec.loader.exec_module(helpers)

async def main():
    async with EngramService(Path(sys.argv[2]), helpers.WordEmbedder()) as service:
        for number in range(int(sys.argv[3])):
            await service.ingest(EngramDraft(f"q{number}", "s", "ann", f"stone{number} river{number % 9}", "", 0.0))
            print(number, flush=True)
        await service.settled()
        print("settled", flush=True)

asyncio.run(main())
"""


async def test_each_exchange_is_there_once_and_found_by_its_meaning(
    opened: Callable[..., Any], directory: Path
) -> None:
    for kill in range(1, KILLS + 1):
        await ingest_until(directory, str(kill * EXCHANGES // KILLS - 1))
    async with opened() as service:
        await service.settled()
        engrams = await service.recent("ann", limit=2 * EXCHANGES)
        assert sorted(engram.query_id for engram in engrams) == sorted(f"q{number}" for number in range(EXCHANGES))
        assert len(await service._store.read(lambda db: vectors.keys(db, "ann"))) == EXCHANGES
        await service._store.write(check_words)
        (hit, *_) = (await service.search("ann", "stone77 river5")).hits
        assert (hit.engram.query_id, hit.words, hit.cosine is not None) == ("q77", 1.0, True)


async def ingest_until(directory: Path, word: str) -> None:
    """Run a process that ingests and kill it when it says the word."""
    helpers = Path(__file__).with_name("conftest.py")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", PROCESS, str(helpers), str(directory), str(EXCHANGES), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    while (line := await process.stdout.readline()).decode().strip() != word:
        assert line, "it ended by itself"
    process.kill()
    await process.wait()


def check_words(db: sqlite3.Connection) -> None:
    """FTS5 compares its index with its texts and raises if they differ."""
    for table in ("english", "other"):
        db.execute(f"INSERT INTO {table} ({table}) VALUES ('integrity-check')")
    assert db.execute("SELECT count(*) FROM other").fetchone()[0] == EXCHANGES
