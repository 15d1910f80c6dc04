"""How far a critic's scores and users' ratings of the same answers agree."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

Scores = Mapping[int, int]  # how many answers have got each score


@dataclass(frozen=True, slots=True)
class Agreement:
    """How many answers that have a score were liked and disliked, and their mean scores, None of no answers.

    `auc` is the probability that a liked answer has a higher score than a disliked one, equal scores counting one half
    (the area under the ROC curve, which is Mann and Whitney's U over the number of pairs): 1 is full agreement, 0.5
    none, 0 the opposite. None without answers of both kinds.
    """

    liked: int
    disliked: int
    mean_liked: float | None
    mean_disliked: float | None
    auc: float | None

    @property
    def rated(self) -> int:
        """Answers that have both a score and a rating."""
        return self.liked + self.disliked

    def in_words(self, least: int) -> str:
        """For a person; with fewer than `least` answers it means nothing yet, and only their number is told."""
        if self.rated < least:
            return f"{self.rated} of {least} rated and graded answers"
        auc = "none to compare" if self.auc is None else f"AUC {self.auc:.2f}"
        liked, disliked = _mean_in_words(self.mean_liked), _mean_in_words(self.mean_disliked)
        return f"{auc} over {self.rated} rated answers; mean score {liked} liked, {disliked} disliked"


def agreement(liked: Scores, disliked: Scores) -> Agreement:
    """Of the scores of liked and of disliked answers."""
    pairs = sum(liked.values()) * sum(disliked.values())
    higher = sum(
        count * other_count * (1.0 if score > other else 0.5 if score == other else 0.0)
        for score, count in liked.items()
        for other, other_count in disliked.items()
    )
    return Agreement(
        liked=sum(liked.values()),
        disliked=sum(disliked.values()),
        mean_liked=_mean(liked),
        mean_disliked=_mean(disliked),
        auc=higher / pairs if pairs else None,
    )


def _mean(scores: Scores) -> float | None:
    answers = sum(scores.values())
    return sum(score * count for score, count in scores.items()) / answers if answers else None


def _mean_in_words(mean: float | None) -> str:
    return "-" if mean is None else f"{mean:.1f}"
