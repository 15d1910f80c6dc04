"""Hundreds of hurt journals, thousands by `-m thorough`: what was acknowledged is there, or is said to be in doubt."""

import random
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from local.journal.recovery import DamageReport

Journal = Any  # the class is in conftest.py, which no test can import
Judge = Callable[..., Awaitable[DamageReport | None]]
Files = dict[str, bytes]
CHUNK, CHUNKS, QUICK = 100, 10, 1  # of them to a test, so that they spread over workers; the quick ones run by default
MORE = (pytest.mark.thorough, pytest.mark.timeout(600))  # each tries every kind of damage: they are more of the same
SOME_AND_MORE = [*range(QUICK), *(pytest.param(chunk, marks=MORE) for chunk in range(QUICK, CHUNKS))]


@pytest.fixture
def memory_folder() -> Iterator[Path]:
    """A folder where a sync costs nothing, if the system has one: thousands of cases need no real disk."""
    shared_memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared_memory if shared_memory.is_dir() else None) as folder:
        yield Path(folder)


def flip(files: Files, chance: random.Random) -> Files:
    name = chance.choices(list(files), [len(content) for content in files.values()])[0]
    content = bytearray(files[name])
    content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)
    return files | {name: bytes(content)}


def truncate(files: Files, chance: random.Random) -> Files:
    name = chance.choice(list(files))
    return files | {name: files[name][: chance.randrange(len(files[name]))]}


@pytest.mark.parametrize("chunk", SOME_AND_MORE)
async def test_a_flipped_bit_loses_nothing_in_silence(
    journal: Journal, closed_journal: Journal, memory_folder: Path, judge: Judge, chunk: int
) -> None:
    await hurt_many_times((journal, closed_journal), memory_folder, judge, flip, chunk)


@pytest.mark.parametrize("chunk", SOME_AND_MORE)
async def test_a_truncation_loses_nothing_in_silence(
    journal: Journal, closed_journal: Journal, memory_folder: Path, judge: Judge, chunk: int
) -> None:
    reported = await hurt_many_times((journal, closed_journal), memory_folder, judge, truncate, chunk)
    assert reported > CHUNK // 2


@pytest.mark.parametrize("byte", range(16, 24))
async def test_no_bit_of_how_the_file_is_to_be_read_makes_it_unusable(
    closed_journal: Journal, tmp_path: Path, judge: Judge, byte: int
) -> None:
    for bit in range(8):
        content = bytearray(closed_journal.files["db"])
        content[byte] ^= 1 << bit
        path = closed_journal.put(tmp_path / str(bit), db=bytes(content))
        await judge(path, closed_journal.acknowledged)


async def hurt_many_times(
    journals: Sequence[Journal], folder: Path, judge: Judge, hurt: Callable[[Files, random.Random], Files], chunk: int
) -> int:
    reported = 0
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        journal = journals[seed % len(journals)]
        path = journal.put(folder / str(seed), **hurt(journal.files, random.Random(seed)))
        try:
            reported += await judge(path, journal.acknowledged) is not None
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise
        shutil.rmtree(path.parent)
    return reported
