"""The memory: how well and how fast it finds what was said, and that what was deleted is gone.

Quality is measured on three sets with the bundled embedding model: generated facts that are asked for in other words,
generated dialogues of two, full of names, that are asked in their words, and conversations written by hand. With
`--dialogue FILE ...` also on real talk out of public files, see `public_set.py`. What is good for one of them alone is
good for none.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks import memory_scale
from benchmarks.conversation_set import USER as INES
from benchmarks.conversation_set import read_conversations
from benchmarks.dialogue_set import generate_dialogues
from benchmarks.figure import BenchmarkFailed, Figure
from benchmarks.memory_asked import NEVER_TOLD, PARAPHRASED, TOLD_PLAINLY
from benchmarks.memory_quality import CUTOFFS, Quality, Wanted
from benchmarks.memory_set import UNANSWERABLE, USER, MemorySet, Question, generate
from benchmarks.public_set import PublicSet, read_public
from local.memory.embeddings import MiniLmEmbedder
from local.memory.search import EngramHit
from local.memory.service import EngramService
from local.memory.store import EngramDraft

MAX_STALE_PERCENT = 2.0
MAX_SILENCED_PERCENT = 5.0
PATIENT = 60.0  # seconds, for what is measured without a turn that waits
MAX_RECALLED_PERCENT = 3.0  # of what has no answer
DELETED = "Dear diary, the safe of aunt Philomena stands in Timbuktu"


class PatientEmbedder(MiniLmEmbedder):
    """Embeds each question once, however often it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[str, Any] = {}

    async def embed_queries(self, texts: Sequence[str]) -> Any:
        for text in texts:
            if text not in self._known:
                (self._known[text],) = await super().embed_queries([text])
        return np.array([self._known[text] for text in texts])


async def run(options: argparse.Namespace) -> list[Figure]:
    """Quality and deletion on one store for each set, then 100,000 engrams in a process of their own; with files of
    public dialogues quality on those alone, and only the smallest set if that is enough."""
    if options.small:
        return [*await _paraphrased(), *await _plain()]
    if options.dialogue:
        return [figure for made in read_public(options.dialogue) for figure in await _public(made)]
    sets = [*await _generated(), *await _dialogues(), *await _conversations(), *await _paraphrased(), *await _plain()]
    return [*sets, *await memory_scale.run()]


async def _public(made: PublicSet) -> list[Figure]:
    figures = [Figure(f"memory: exchanges in the {made.name} dialogues", len(made.exchanges), "")]
    async with _store_of(made.exchanges, max(each.asked_at for each in made.exchanges) + 86400) as (service, _):
        for kind in dict.fromkeys(each.kind for each in made.questions):
            asked = [Wanted(each.user_id, each.text, each.answers) for each in made.questions if each.kind == kind]
            figures += await Quality(service, f"of {made.name}, {kind}", asked).metrics()
    return figures


async def _generated() -> list[Figure]:
    made = generate()
    async with _store_of(made.exchanges, made.exchanges[-1].asked_at) as (service, directory):
        for statement in made.statements:  # as a classifier would that misses nothing
            await service.supersede(statement)
        figures = [Figure("memory: exchanges in the generated set", len(made.exchanges), "")]
        figures += await _seconds(service, made)
        for half, is_for_tuning in (("tuned on", True), ("held out", False)):
            asked = [each for each in made.questions if each.is_for_tuning is is_for_tuning]
            wanted = [Wanted(USER, each.text, (frozenset([each.answer]),)) for each in asked]
            quality = Quality(service, half, wanted)
            figures += await quality.metrics()
        figures += await quality.ablation()
        stale = await _stale(service, asked)
        figures.append(Figure("memory: stale value given as current", stale, "%", limit=MAX_STALE_PERCENT))
        figures += await _unanswerable(service)
        return [*figures, *await _deletion(service, made, directory)]


async def _dialogues() -> list[Figure]:
    made = generate_dialogues()
    async with _store_of(made.exchanges, made.exchanges[-1].asked_at + 86400) as (service, _):
        figures = [Figure("memory: exchanges in the dialogues", len(made.exchanges), "")]
        questions = [
            Wanted(each.user_id, each.text, tuple(frozenset([one]) for one in each.evidence)) for each in made.questions
        ]
        quality = Quality(service, "of dialogue", questions)
        several = [wanted for each, wanted in zip(made.questions, questions, strict=True) if each.kind == "multi"]
        of_several = await Quality(service, "of dialogue that ask two things", several).metrics()
        return [*figures, *await quality.metrics(), *of_several, *await quality.ablation()]


async def _conversations() -> list[Figure]:
    made = read_conversations()
    async with _store_of(made.exchanges, made.exchanges[-1].asked_at + 86400) as (service, _):
        answered = [Wanted(INES, each.text, each.answers) for each in made.questions if each.answers]
        quality = Quality(service, "on conversations", answered)
        silenced = await _silent(service, [each.text for each in answered], INES)
        never_told = [each.text for each in made.questions if not each.answers]
        silent = await _silent(service, never_told, INES)
        return [
            Figure("memory: exchanges in the conversations", len(made.exchanges), ""),
            *await quality.metrics(),
            *await quality.ablation(),
            Figure("memory:   of those that get nothing", silenced, "%", limit=MAX_SILENCED_PERCENT),
            Figure("memory:   questions nobody answered there that get nothing", silent, "%"),
            *await _recalled(service, answered, [*never_told, *UNANSWERABLE, *NEVER_TOLD]),
        ]


async def _recalled(service: EngramService, answered: Sequence[Wanted], unrelated: Sequence[str]) -> list[Figure]:
    """What is put before a model unasked: how much of it is right, how often, and how often something is wrong to say
    at all."""
    shown = right = asked = hits = 0
    for each in answered:
        found = [hit.engram.engram_id for hit in (await service.recall(each.user_id, each.text)).hits]
        good = sum(any(one in either for either in each.answers) for one in found)
        shown, right, asked, hits = shown + len(found), right + good, asked + bool(found), hits + bool(good)
    wrong = sum([bool((await service.recall(INES, text, seconds=PATIENT)).hits) for text in unrelated])
    return [
        Figure("memory:   questions on conversations that recall something", 100 * asked / len(answered), "%"),
        Figure("memory:     that recall an answer", 100 * hits / len(answered), "%"),
        Figure("memory:     share of what is recalled that has an answer", 100 * right / max(1, shown), "%"),
        Figure("memory:   questions nobody answered there that recall something", 100 * wrong / len(unrelated), "%",
               limit=MAX_RECALLED_PERCENT),
    ]  # fmt: skip


@asynccontextmanager
async def _store_of(exchanges: Sequence[EngramDraft], now: float) -> AsyncIterator[tuple[EngramService, Path]]:
    """A store that has settled, and its directory; `now` is the time that it takes it to be, in epoch seconds."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        async with EngramService(Path(folder), PatientEmbedder(), clock=lambda: now) as service:
            for start in range(0, len(exchanges), 256):
                await asyncio.gather(*(service.ingest(each) for each in exchanges[start : start + 256]))
            await service.settled()
            yield service, Path(folder)


async def _seconds(service: EngramService, made: MemorySet) -> list[Figure]:
    taken = []
    for question in made.questions[:200]:
        started = time.perf_counter()
        await service.search(USER, question.text)
        taken.append(time.perf_counter() - started)
    return [Figure("memory: a search, the question embedded, p50", median(taken) * 1e3, "ms")]


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


async def _silent(service: EngramService, questions: Sequence[str], user_id: str = USER) -> float:
    found = [(await service.search(user_id, question)).hits for question in questions]
    return 100 * sum(not hits for hits in found) / len(found)


async def _paraphrased() -> list[Figure]:
    """A small memory, asked in other words than it was told."""
    now = time.time()
    exchanges = [
        EngramDraft(f"query-{number}", f"session-{number}", USER, said, "All right, noted.", now - number * 1000)
        for number, (said, _) in enumerate(PARAPHRASED)
    ]
    async with _store_of(exchanges, now) as (service, _):
        found = [[hit.engram.engram_id for hit in (await service.search(USER, asked)).hits] for _, asked in PARAPHRASED]
        asked = [
            Wanted(USER, asked, (frozenset([each.engram_id]),))
            for each, (_, asked) in zip(exchanges, PARAPHRASED, strict=True)
        ]
        quality = await Quality(service, "in other words", asked).metrics(is_gated=False)
        silent = await _silent(service, [*UNANSWERABLE, *NEVER_TOLD])
    silenced = 100 * sum(not ids for ids in found) / len(found)
    return [
        Figure("memory: questions in other words that get nothing", silenced, "%", limit=MAX_SILENCED_PERCENT),
        Figure("memory:   questions nobody answered there that get nothing", silent, "%"),
        *quality,
    ]


async def _plain() -> list[Figure]:
    """Plain statements among hundreds of exchanges; each was asked about before it was told."""
    made = read_conversations().exchanges[:300]
    now, step = made[-1].asked_at + 86400, len(made) // len(TOLD_PLAINLY)
    added = [
        replace(
            made[step * number], query_id=f"{kind}-{number}", session_id=f"{kind}-{number}", query=text, answer=answer
        )
        for number, (said, asked) in enumerate(TOLD_PLAINLY)
        for kind, text, answer in (("asked", asked, "I do not know that."), ("told", said, "Noted."))
    ]
    async with _store_of([*made, *added], now) as (service, _):
        found = [
            [hit.engram.query for hit in (await service.recall(INES, asked, seconds=PATIENT)).hits]
            for _, asked in TOLD_PLAINLY
        ]
        unrelated = {*UNANSWERABLE, *NEVER_TOLD} - {asked for _, asked in TOLD_PLAINLY}
        wrong = sum([bool((await service.recall(INES, text, seconds=PATIENT)).hits) for text in unrelated])
    told = sum(said in hits for (said, _), hits in zip(TOLD_PLAINLY, found, strict=True))
    empty = sum(asked in hits for (_, asked), hits in zip(TOLD_PLAINLY, found, strict=True))
    return [
        Figure("memory: plain statements among 300 exchanges that are not recalled", len(found) - told, "", limit=3),
        Figure("memory:   questions that recall that they were asked before", empty, "", limit=0),
        Figure("memory:   unrelated questions that recall something", 100 * wrong / len(unrelated), "%",
               limit=MAX_RECALLED_PERCENT),
    ]  # fmt: skip


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
