"""How well the memory finds what answers a question: the whole search beside its halves, and beside itself with one of
its weights changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from statistics import fmean

from benchmarks.figure import BenchmarkFailed, Figure
from local.core.words import Language, terms_of
from local.memory.search import WEIGHTS, Weights
from local.memory.service import EngramService

CUTOFFS = (1, 5, 10)
MARGIN = 0.005  # by which the whole may be worse than its better half at 5 and at 10
RESAMPLES = 2_000
SECONDS = 60.0  # until a search by meaning has failed
HALVES = ("BM25", "words", "meaning")
ABLATION: Mapping[str, Weights] = {
    "as it is": WEIGHTS,
    "words 0.3": replace(WEIGHTS, words=0.3),
    "words 0.7": replace(WEIGHTS, words=0.7),
    "no context": replace(WEIGHTS, context=0.0),
    "no period": replace(WEIGHTS, period=0.0),
    "no recency": replace(WEIGHTS, recency=0.0),
    "no threshold": replace(WEIGHTS, stands_out=0.0, crowd_share=0.0),
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """A question, whose memory it is asked of, and what answers it: of each of these sets one engram."""

    user_id: str
    text: str
    answers: tuple[frozenset[str], ...]


class Quality:
    """One set of questions on a memory that holds what they are about. `name` is the set's in the figures."""

    def __init__(self, service: EngramService, name: str, questions: Sequence[Wanted]) -> None:
        self._service, self._name, self._questions = service, name, questions

    async def metrics(self, *, is_gated: bool = True) -> list[Figure]:
        """Recall of the halves and of the whole at each cutoff. If `is_gated`, the whole has to be as good as the
        better half, which it is not where all questions are in other words: there meaning alone is best."""
        lists = {**await self._halves(), "hybrid": await self._hybrid(WEIGHTS)}
        figures: list[Figure] = []
        for cutoff in CUTOFFS:
            shares = {name: self._shares(found, cutoff) for name, found in lists.items()}
            for name in HALVES:
                figures.append(Figure(f"memory: recall@{cutoff} of {self._told}, {name}", fmean(shares[name]), ""))
            better = max((shares[name] for name in HALVES), key=fmean)
            if is_gated:
                figures += self._gates(cutoff, shares["hybrid"], better)
                figures += self._beside_fts5(cutoff, shares["hybrid"], shares["BM25"])
            else:
                name, hybrid = f"memory: recall@{cutoff} of {self._told}, hybrid", fmean(shares["hybrid"])
                figures.append(Figure(name, hybrid, "", fmean(better)))
        return figures

    async def ablation(self) -> list[Figure]:
        """Recall at 1 and at 10 with other weights."""
        made = {name: await self._hybrid(weights) for name, weights in ABLATION.items()}
        return [
            Figure(f"memory:   {self._name}, {name}: recall@{cutoff}", fmean(self._shares(found, cutoff)), "")
            for name, found in made.items()
            for cutoff in (CUTOFFS[0], CUTOFFS[-1])
        ]

    @property
    def _told(self) -> str:
        return f"{len(self._questions)} {self._name}"

    def _gates(self, cutoff: int, hybrid: Sequence[float], better: Sequence[float]) -> list[Figure]:
        name, value, baseline = f"memory: recall@{cutoff} of {self._told}, hybrid", fmean(hybrid), fmean(better)
        if cutoff > 1:
            return [Figure(name, value, "", baseline, limit=baseline - MARGIN, at_least=True)]
        low, high = interval([ours - theirs for ours, theirs in zip(hybrid, better, strict=True)])
        return [
            Figure(name, value, "", baseline),
            Figure("memory:   less the better half's: lower end of its 95 %", low, ""),
            Figure("memory:   and upper end", high, "", limit=0.0, at_least=True),
        ]

    def _beside_fts5(self, cutoff: int, hybrid: Sequence[float], bm25: Sequence[float]) -> list[Figure]:
        """The whole beside SQLite's own ranking, which it must not be worse than on any set."""
        low, high = interval([ours - theirs for ours, theirs in zip(hybrid, bm25, strict=True)])
        return [
            Figure(f"memory:   recall@{cutoff} less FTS5's: lower end of its 95 %", low, ""),
            Figure("memory:     and upper end", high, "", limit=0.0, at_least=True),
        ]

    def _shares(self, found: Sequence[Sequence[str]], cutoff: int) -> list[float]:
        """Of each question: how much of what answers it is among the first."""
        return [
            fmean(not either.isdisjoint(ids[:cutoff]) for either in question.answers)
            for question, ids in zip(self._questions, found, strict=True)
        ]

    async def _hybrid(self, weights: Weights) -> list[list[str]]:
        self._service._weights = weights
        try:
            return [
                [hit.engram.engram_id for hit in (await self._service.search(each.user_id, each.text, limit=10)).hits]
                for each in self._questions
            ]
        finally:
            self._service._weights = WEIGHTS

    async def _halves(self) -> dict[str, list[list[str]]]:
        """The halves are asked where the service itself asks them: they have no door of their own."""
        ids, keys = await self._service._store.read(_names)
        lists: dict[str, list[list[str]]] = {name: [] for name in HALVES}
        for each in self._questions:
            by_bm25 = await self._service._store.read(lambda db, each=each: _by_bm25(db, each))  # type: ignore[misc]
            by_words = await self._service._by_words(each.user_id, each.text)
            by_meaning, _, degraded = await self._service._by_meaning(each.user_id, each.text, SECONDS)
            if degraded:
                raise BenchmarkFailed(f"vectors were not searched: {degraded[0]}")
            found = {*by_words.own, *by_words.before}
            best = sorted(found, key=lambda number: (-_weighed(by_words.of(number)), -number))
            lists["BM25"].append([ids[number] for number in by_bm25])
            lists["words"].append([ids[number] for number in best[: CUTOFFS[-1]]])
            lists["meaning"].append([ids[keys[key]] for key in by_meaning])
        return lists


def interval(differences: Sequence[float], seed: int = 1) -> tuple[float, float]:
    """The middle 95 % of the means of samples drawn with replacement (Efron's percentile bootstrap)."""
    random = Random(seed)
    means = sorted(fmean(random.choices(differences, k=len(differences))) for _ in range(RESAMPLES))
    return means[round(0.025 * RESAMPLES)], means[round(0.975 * RESAMPLES) - 1]


def _weighed(coverage: tuple[float, float]) -> float:
    return coverage[0] + WEIGHTS.context * coverage[1]


def _by_bm25(db: sqlite3.Connection, asked: Wanted) -> list[int]:
    """What FTS5 itself finds, best first: each exchange with the two before it at three tenths."""
    match = " OR ".join(f'"{term}"' for term in terms_of(asked.text))
    found = [
        (row["bm25"], row["number"])
        for table in Language
        for row in db.execute(
            f"SELECT number, bm25({table}, 1.0, 0.3) AS bm25 FROM {table} JOIN engrams ON number = {table}.rowid"
            f" WHERE {table} MATCH ? AND user_id = ? ORDER BY bm25 LIMIT {CUTOFFS[-1]}",
            (match, asked.user_id),
        )
    ]
    return [number for _, number in sorted(found)][: CUTOFFS[-1]]


def _names(db: sqlite3.Connection) -> tuple[dict[int, str], dict[str, int]]:
    """Engrams' ids by number, and numbers by their vectors' keys."""
    ids = {row["number"]: row["engram_id"] for row in db.execute("SELECT number, engram_id FROM engrams")}
    return ids, {row["key"]: row["number"] for row in db.execute("SELECT key, number FROM vectors")}
