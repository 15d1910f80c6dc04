"""Up to 100,000 engrams in processes of their own: how long a search and an ingest take, and what the process weighs.

The texts' vectors are made up, close together for texts with common words, because the model would take an hour for
them. A question is embedded by the model all the same, so that its time is in the figure.
"""

from __future__ import annotations

import asyncio
import resource
import tempfile
import time
import zlib
from collections.abc import Callable, Coroutine, Iterator, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import psutil

from benchmarks.figure import Figure
from benchmarks.memory_set import USER, generate
from benchmarks.peer import Peer, Pipe
from local.memory.embeddings import MiniLmEmbedder
from local.memory.service import EngramService
from local.memory.store import EngramDraft

ENGRAMS, SMALL = 100_000, (1_000, 20_000)
SEARCHES = 500
INGESTS = 200
BATCH = 256
MB = 1e6


class MadeUpEmbedder(MiniLmEmbedder):
    """A text's vector is the sum of its words' random ones."""

    def __init__(self) -> None:
        super().__init__()
        self._words: dict[str, Any] = {}

    async def embed_queries(self, texts: Sequence[str]) -> Any:
        await super().embed_queries(texts)
        return self._made_up(texts)

    async def embed_documents(self, texts: Sequence[str]) -> Any:
        return await asyncio.to_thread(self._made_up, texts)

    def _made_up(self, texts: Sequence[str]) -> Any:
        rows = np.array([sum(self._word(word) for word in text.split()) for text in texts], dtype=np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def _word(self, word: str) -> Any:
        if word not in self._words:
            self._words[word] = np.random.default_rng(zlib.crc32(word.encode())).normal(size=self.dimensions)
        return self._words[word]


async def run() -> list[Figure]:
    """What the processes measured."""
    small = [await _told(engrams) for engrams in SMALL]
    told = await _told(ENGRAMS)
    return [
        *(Figure(f"memory: the process, RSS with {each['engrams']:,} engrams", each["rss"], "MB") for each in small),
        *(Figure(f"memory: search among {each['engrams']:,}, p50", each["search p50"], "ms") for each in small),
        *(
            Figure(f"memory: recall among {each['engrams']:,}, p99", each["recall p99"], "ms", limit=100)
            for each in small
        ),
        *(figure for each in (*small, told) for figure in _of_start(each)),
        Figure(f"memory: search among {told['engrams']:,}, p50", told["search p50"], "ms", limit=15),
        Figure("memory:   p99", told["search p99"], "ms", limit=60),
        Figure("memory:   CPU", told["search CPU"], "ms"),
        Figure("memory: ingest, p50, without the embedding", told["ingest p50"], "ms", limit=10),
        Figure("memory:   p99", told["ingest p99"], "ms"),
        Figure("memory: a deletion", told["deletion"], "ms"),
        Figure("memory: the process, RSS", told["rss"], "MB", limit=1200),
        Figure("memory: its highest RSS, while a second index was built", told["peak"], "MB", limit=1200),
        Figure("memory: files", told["files"], "MB"),
    ]


def _of_start(told: dict[str, Any]) -> list[Figure]:
    return [
        Figure(f"memory: opened with {told['engrams']:,} engrams", told["opened"], "ms"),
        Figure("memory:   until its first search by meaning has found something", told["found"], "ms"),
        Figure("memory:   CPU", told["found CPU"], "ms"),
        Figure("memory:   RSS then, the model loaded", told["rss at start"], "MB"),
    ]


async def _told(engrams: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        return {"engrams": engrams, **await _heard(measure, folder, engrams), **await _heard(measure_start, folder)}


async def _heard(target: Callable[..., None], *args: Any) -> dict[str, float]:
    async with Peer(target, *args) as process:
        while not isinstance(told := await process.hear(), dict):
            pass  # it says that it lives
    return told


def measure(pipe: Pipe, folder: str, engrams: int) -> None:
    """The life of the process that fills a store and asks it."""
    pipe.send("started")
    pipe.send(asyncio.run(_measure(Path(folder), pipe, engrams)))


def measure_start(pipe: Pipe, folder: str) -> None:
    """The life of one that comes after it."""
    pipe.send("started")
    pipe.send(asyncio.run(_measure_start(Path(folder))))


async def _measure(directory: Path, pipe: Pipe, engrams: int) -> dict[str, float]:
    exchanges, random = _many(), Random(2)
    async with EngramService(directory, MadeUpEmbedder()) as service:
        await _fill(service, islice(exchanges, engrams), pipe)
        questions = [question.text for question in random.choices(generate().questions, k=SEARCHES)]
        await _timed([service.search(USER, question) for question in questions[:50]], pipe)  # to warm up
        await _settled(service, pipe)  # a large memory gets its index when it is searched first
        spent = time.process_time()
        searches = await _timed([service.search(USER, question) for question in questions], pipe)
        spent = time.process_time() - spent
        recalls = await _timed([service.recall(USER, question) for question in questions], pipe)
        weight = psutil.Process().memory_info().rss
        fresh = [exchange for _, exchange in zip(range(INGESTS), exchanges, strict=False)]
        ingests = await _timed([service.ingest(exchange) for exchange in fresh], pipe)
        deletion = await _timed([service.delete(USER, fresh[0].engram_id)], pipe)
        await _settled(service, pipe)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        files = await asyncio.to_thread(_size, directory)
    return {
        "search p50": _quantile(searches, 0.5), "search p99": _quantile(searches, 0.99),
        "recall p50": _quantile(recalls, 0.5), "recall p99": _quantile(recalls, 0.99),
        "search CPU": spent * 1e3 / SEARCHES, "ingest p50": _quantile(ingests, 0.5),
        "ingest p99": _quantile(ingests, 0.99), "deletion": deletion[0],
        "rss": weight / MB, "peak": peak / MB, "files": files / MB,
    }  # fmt: skip


async def _measure_start(directory: Path) -> dict[str, float]:
    question = generate().questions[0].text
    started, begun = time.perf_counter(), time.process_time()
    async with EngramService(directory, MadeUpEmbedder()) as service:
        opened = time.perf_counter()
        await service.settled()
        await service.search(USER, question)
        found, spent = time.perf_counter(), time.process_time() - begun
        weight = psutil.Process().memory_info().rss
    return {
        "opened": (opened - started) * 1e3, "found": (found - started) * 1e3, "found CPU": spent * 1e3,
        "rss at start": weight / MB,
    }  # fmt: skip


async def _fill(service: EngramService, exchanges: Iterator[EngramDraft], pipe: Pipe) -> None:
    while some := list(islice(exchanges, BATCH)):
        await asyncio.gather(*(service.ingest(exchange) for exchange in some))
        pipe.send("filling")
    await _settled(service, pipe)


async def _settled(service: EngramService, pipe: Pipe) -> None:
    settled = asyncio.create_task(service.settled(), name="settled")
    while not (await asyncio.wait([settled], timeout=10.0))[0]:
        pipe.send("indexing")


async def _timed(works: Sequence[Coroutine[Any, Any, object]], pipe: Pipe) -> list[float]:
    """Milliseconds of each, one after another."""
    durations = []
    for work in works:
        pipe.send("measuring")
        started = time.perf_counter()
        await work
        durations.append((time.perf_counter() - started) * 1e3)
    return durations


def _size(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.rglob("*"))


def _many() -> Iterator[EngramDraft]:
    """Lives of several seeds, one after another, as one user's."""
    seed = 0
    while True:
        seed += 1
        for exchange in generate(seed).exchanges:
            yield EngramDraft(f"{seed}/{exchange.query_id}", f"{seed}/{exchange.session_id}", USER, exchange.query,
                           exchange.answer, exchange.asked_at)  # fmt: skip


def _quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[int(share * (len(values) - 1))]
