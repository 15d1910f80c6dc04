"""A finer score than an integer: the mean over what the judge might have written in its place."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MIN_MASS = 0.5  # of the probability that has to lie on the five scores, or the place is not that of the score


@dataclass(frozen=True, slots=True)
class Token:
    """A generated token, and the natural logarithms of the probabilities of what might have stood in its place."""

    text: str
    alternatives: Mapping[str, float]


def expected_score(tokens: Sequence[Token], generated: str, at: int | None) -> float | None:
    """Σ n·p(n) / Σ p(n) over the scores n from 1 to 5 (G-Eval, Liu et al. 2023), at the token that wrote the score.

    `at` is that score's place in `generated`. None where the tokens are not those of the text, where the score shares
    its token with other characters than blanks, or where less than half of the probability lies on scores.
    """
    token = _token_at(tokens, at) if at is not None and "".join(token.text for token in tokens) == generated else None
    if at is None or token is None or token.text.strip() != generated[at]:
        return None
    weights = [0.0] * 6
    for text, logarithm in token.alternatives.items():
        if text.strip() in ("1", "2", "3", "4", "5") and logarithm <= 0:
            weights[int(text)] += math.exp(logarithm)
    mass = math.fsum(weights)
    return math.fsum(score * weight for score, weight in enumerate(weights)) / mass if mass >= MIN_MASS else None


def _token_at(tokens: Sequence[Token], at: int) -> Token | None:
    end = 0
    for token in tokens:
        end += len(token.text)
        if at < end:
            return token
    return None
