"""Whether a user's ratings bear out the critic's scores: as long as they do not, the scores move nothing."""

from __future__ import annotations

import sqlite3
from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache

from local.services.engrams.ranking import Weights

LEAST_RATED = 20  # answers with a score and a rating; of fewer, an interval says little
RESAMPLES = 2_000
SURE = 0.95  # of the interval


@dataclass(frozen=True, slots=True)
class CriticAgreement:
    """How far critic and user agree, over `rated` answers that have a score and a rating.

    `auc` is the probability that a liked answer has a higher score than a disliked one, equal scores counting one half:
    0.5 is chance. `low` and `high` are the ends of its bootstrap interval (Efron 1979, percentiles). All of them are
    0.5 where nothing can be said.
    """

    rated: int
    auc: float = 0.5
    low: float = 0.5
    high: float = 0.5

    @property
    def is_better_than_chance(self) -> bool:
        """Whether the whole interval lies above chance."""
        return self.low > 0.5


def critic_agreement(db: sqlite3.Connection, user_id: str) -> CriticAgreement:
    """The agreement about a user's answers in store."""
    sql = (
        "SELECT round(score) AS score, sentiment FROM engrams"
        " WHERE user_id = ? AND sentiment IS NOT NULL AND sentiment != 0 AND score IS NOT NULL"
    )
    counts = Counter((int(row["score"]), int(row["sentiment"])) for row in db.execute(sql, (user_id,)))
    return of_counts(tuple(sorted(counts.items())))


def borne_out(db: sqlite3.Connection, user_id: str, weights: Weights) -> Weights:
    """The weights, the critic's 0 as long as its agreement with the user is not better than chance."""
    return weights if critic_agreement(db, user_id).is_better_than_chance else replace(weights, critic=0.0)


@lru_cache(maxsize=64)
def of_counts(counts: tuple[tuple[tuple[int, int], int], ...]) -> CriticAgreement:
    """The agreement about so many answers with each score, 1 to 5, and rating, 1 or -1; always the same for the same
    counts."""
    rated = sum(number for _, number in counts)
    if rated < LEAST_RATED:
        return CriticAgreement(rated)
    import numpy as np  # the first search loads it in any case

    cells = np.zeros((2, 5))
    for (score, rating), number in counts:
        cells[int(rating > 0), score - 1] += number
    drawn = np.random.default_rng(rated).multinomial(rated, cells.ravel() / rated, size=RESAMPLES)
    disliked, liked = np.moveaxis(np.concatenate([cells[None], drawn.reshape(-1, 2, 5)]), 1, 0)
    below = np.cumsum(disliked, axis=1) - disliked / 2  # of each score: those disliked with less, and half of its own
    pairs = liked.sum(axis=1) * disliked.sum(axis=1)
    aucs = np.divide((liked * below).sum(axis=1), pairs, out=np.full(len(pairs), 0.5), where=pairs > 0)
    low, high = np.quantile(aucs[1:], [(1 - SURE) / 2, (1 + SURE) / 2])
    return CriticAgreement(rated, float(aucs[0]), float(low), float(high))
