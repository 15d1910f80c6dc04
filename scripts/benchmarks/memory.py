"""The memory: how well and how fast it finds what was said, and that what was deleted is gone.

Quality is measured on a generated set with the bundled embedding model; the limits hold for the half of its kinds of
facts that nothing was tuned on. Dense search alone is the baseline of the hybrid one where it is the better of the two.
"""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median

from benchmarks import memory_scale
from benchmarks.figure import BenchmarkFailed, Figure
from benchmarks.memory_asked import NEVER_TOLD, PARAPHRASED
from benchmarks.memory_set import UNANSWERABLE, USER, MemorySet, Question, generate
from local.services.embeddings.minilm import MiniLmEmbedder
from local.services.engrams.engram import EngramDraft
from local.services.engrams.ranking import EngramHit
from local.services.engrams.service import EngramService

CUTOFFS = (1, 5, 10)
MAX_STALE_PERCENT = 2.0
DELETED = "Dear diary, the safe of aunt Philomena stands in Timbuktu"

Lists = dict[str, list[list[str]]]


async def run() -> list[Figure]:
    """Quality and deletion on one store, then 100,000 engrams in a process of their own."""
    made = generate()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        directory = Path(folder)
        now = made.exchanges[-1].asked_at
        async with EngramService(directory, MiniLmEmbedder(), clock=lambda: now) as service:
            await _fill(service, made)
            figures = await _quality(service, made)
            figures += await _unanswerable(service)
            figures += await _deletion(service, made, directory)
    return [*figures, *await _paraphrased(), *await memory_scale.run()]


async def _fill(service: EngramService, made: MemorySet) -> None:
    for start in range(0, len(made.exchanges), 256):
        await asyncio.gather(*(service.ingest(each) for each in made.exchanges[start : start + 256]))
    for statement in made.statements:  # as a classifier would that misses nothing
        await service.supersede(statement)
    await service.settled()


async def _quality(service: EngramService, made: MemorySet) -> list[Figure]:
    count = len(made.exchanges)
    figures = [Figure("memory: exchanges in the generated set", count, "exchanges", limit=2000, at_least=True)]
    tuning = [question for question in made.questions if question.is_for_tuning]
    held_out = [question for question in made.questions if not question.is_for_tuning]
    figures += _recalls("tuned on", tuning, (await _ask(service, tuning))[0])
    lists, seconds = await _ask(service, held_out)
    recalls = _recalls("held out", held_out, lists)
    at_5, at_10 = recalls[-2:]
    figures += [*recalls[:-2], *(replace(figure, ratio_limit=1.0, at_least=True) for figure in (at_5, at_10))]
    better = sum(figure.value > (figure.baseline or 0) for figure in (at_5, at_10))
    figures.append(Figure("memory: of these two, hybrid is really better on", better, "", limit=1, at_least=True))
    figures += [Figure(f"memory: {name} search, p50", median(times) * 1e3, "ms") for name, times in seconds.items()]
    stale = await _stale(service, held_out)
    return [*figures, Figure("memory: stale value given as current, held out", stale, "%", limit=MAX_STALE_PERCENT)]


async def _ask(service: EngramService, questions: Sequence[Question]) -> tuple[Lists, Mapping[str, list[float]]]:
    """Ids of engrams as each way of searching finds them, and the seconds each took.

    The two halves of a search are asked where the service itself asks them: they have no door of their own.
    """
    ids, keys = await service._store.read(_names)
    lists: Lists = {"lexical": [], "dense": [], "hybrid": []}
    seconds: dict[str, list[float]] = {name: [] for name in lists}
    for question in questions:
        started = time.perf_counter()
        by_words = await service._by_words(USER, question.text)
        after_words = time.perf_counter()
        by_meaning, _, degraded = await service._by_meaning(USER, question.text)
        after_meaning = time.perf_counter()
        hits = (await service.search(USER, question.text, limit=CUTOFFS[-1])).hits
        ended = time.perf_counter()
        if degraded:
            raise BenchmarkFailed(f"vectors were not searched: {degraded[0]}")
        lists["lexical"].append([ids[hit.number] for hit in by_words])
        lists["dense"].append([ids[keys[key]] for key in by_meaning])
        lists["hybrid"].append([hit.engram.engram_id for hit in hits])
        seconds["lexical"].append(after_words - started)
        seconds["dense"].append(after_meaning - after_words)
        seconds["hybrid"].append(ended - after_meaning)
    return lists, seconds


def _names(db: sqlite3.Connection) -> tuple[dict[int, str], dict[str, int]]:
    """Engrams' ids by number, and numbers by their vectors' keys."""
    ids = {row["number"]: row["engram_id"] for row in db.execute("SELECT number, engram_id FROM engrams")}
    return ids, {row["key"]: row["number"] for row in db.execute("SELECT key, number FROM vectors")}


def _recalls(half: str, questions: Sequence[Question], lists: Lists) -> list[Figure]:
    """Recall of lexical and dense search, and then of the hybrid beside the better of them, at each cutoff."""
    figures: list[Figure] = []
    hybrids: list[Figure] = []
    for cutoff in CUTOFFS:
        lexical, dense, hybrid = (_recall(questions, lists[name], cutoff) for name in ("lexical", "dense", "hybrid"))
        figures += [Figure(f"memory: recall@{cutoff} of {len(questions)} {half}, lexical", lexical, ""),
                    Figure(f"memory: recall@{cutoff} of {len(questions)} {half}, dense", dense, "")]  # fmt: skip
        name = f"memory: recall@{cutoff} of {len(questions)} {half}, hybrid"
        hybrids.append(Figure(name, hybrid, "", max(lexical, dense)))
    return [*figures, *hybrids]


def _recall(questions: Sequence[Question], found: Sequence[Sequence[str]], cutoff: int) -> float:
    right = sum(question.answer in ids[:cutoff] for question, ids in zip(questions, found, strict=True))
    return right / len(questions)


async def _stale(service: EngramService, questions: Sequence[Question]) -> float:
    """Of the questions about what has changed: percent whose first hit on it shows an old value and does not say so."""
    changed = [question for question in questions if question.stale]
    stale = 0
    for question in changed:
        hits = (await service.search(USER, question.text, limit=CUTOFFS[-1])).hits
        first: EngramHit | None = next(
            (hit for hit in hits if hit.engram.engram_id in question.stale | {question.answer}), None
        )
        stale += first is not None and first.engram.engram_id != question.answer and not first.outdated
    return 100 * stale / len(changed)


async def _unanswerable(service: EngramService) -> list[Figure]:
    return [
        Figure("memory: questions nobody answered that get nothing", await _silent(service, UNANSWERABLE), "%"),
        Figure("memory:   such questions about alike things", await _silent(service, NEVER_TOLD), "%"),
    ]


async def _silent(service: EngramService, questions: Sequence[str]) -> float:
    found = [(await service.search(USER, question)).hits for question in questions]
    return 100 * sum(not hits for hits in found) / len(found)


async def _paraphrased() -> list[Figure]:
    """A small memory, asked in other words than it was told."""
    now = time.time()
    exchanges = [
        EngramDraft(f"query-{number}", f"session-{number}", USER, said, "All right, noted.", now - number * 1000)
        for number, (said, _) in enumerate(PARAPHRASED)
    ]
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        async with EngramService(Path(folder), MiniLmEmbedder(), clock=lambda: now) as service:
            for exchange in exchanges:
                await service.ingest(exchange)
            await service.settled()
            found = [[hit.engram.engram_id for hit in (await service.search(USER, asked)).hits]
                     for _, asked in PARAPHRASED]  # fmt: skip
            silent = await _silent(service, [*UNANSWERABLE, *NEVER_TOLD])
    right = sum(each.engram_id in ids for each, ids in zip(exchanges, found, strict=True))
    return [
        Figure("memory: recall@5 of a small one asked in other words, hybrid", right / len(exchanges), ""),
        Figure("memory:   questions nobody answered there that get nothing", silent, "%"),
    ]


async def _deletion(service: EngramService, made: MemorySet, directory: Path) -> list[Figure]:
    secret = replace(made.exchanges[-1], query_id="secret", query=DELETED, answer=DELETED)
    await service.ingest(secret)
    await service.settled()
    if not await asyncio.to_thread(_holders, directory, DELETED):
        raise BenchmarkFailed("the text that is to be deleted was in no file to begin with")
    started = time.perf_counter()
    await service.delete(USER, secret.engram_id)
    deleted = time.perf_counter()
    await service.settled()
    files = await asyncio.to_thread(_holders, directory, DELETED, "Philomena", "philomena", "Timbuktu", "timbuktu")
    return [
        Figure("memory: a deletion", (deleted - started) * 1e3, "ms"),
        Figure("memory: until its vector is in no file either", (time.perf_counter() - started) * 1e3, "ms"),
        Figure("memory: files that hold some of a deleted engram", files, "files", limit=0),
    ]


def _holders(directory: Path, *words: str) -> int:
    files = [path.read_bytes() for path in directory.rglob("*") if path.is_file()]
    return sum(any(word.encode() in content for word in words) for content in files)
