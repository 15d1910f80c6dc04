"""The critic's scores count for something once the user's ratings bear them out, and not before."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from local.memory.service import LEAST_RATED, CriticAgreement, EngramService, of_counts
from local.memory.store import AnswerRating, EngramDraft


def agreement(rated: Iterable[tuple[int, int]]) -> CriticAgreement:
    return of_counts(tuple(sorted(Counter(rated).items())))


def test_a_critic_that_agrees_is_believed_and_one_that_guesses_or_contradicts_is_not() -> None:
    dice = random.Random(2)
    users = [dice.choice([-1, 1]) for _ in range(60)]
    good = agreement((min(5, max(1, 3 + like + dice.choice([-1, 0, 1]))), like) for like in users)
    assert good.is_better_than_chance
    assert 0.5 < good.low < good.auc < good.high <= 1
    bad = agreement((3 - like, like) for like in users)
    assert (bad.auc, bad.is_better_than_chance) == (0, False)
    assert not agreement((4, like) for like in users).is_better_than_chance
    trusted = [
        agreement((dice.randint(1, 5), dice.choice([-1, 1])) for _ in range(60)).is_better_than_chance
        for _ in range(200)
    ]
    assert sum(trusted) <= 12  # of 200 that guess, about one in forty passes for better


def test_few_ratings_or_those_of_one_kind_say_nothing() -> None:
    few = [(5, 1), (1, -1)] * (LEAST_RATED // 2 - 1)
    assert agreement(few) == CriticAgreement(len(few))
    assert agreement([*few, (5, 1), (1, -1)]).is_better_than_chance
    assert not agreement([(5, 1)] * 50).is_better_than_chance
    assert agreement([]) == CriticAgreement(0)


def test_the_area_is_that_of_all_pairs() -> None:
    dice = random.Random(3)
    rated = [(dice.randint(1, 5), dice.choice([-1, 1])) for _ in range(40)]
    liked, disliked = ([score for score, like in rated if like == kind] for kind in (1, -1))
    pairs = [1.0 if a > b else 0.5 if a == b else 0.0 for a in liked for b in disliked]
    assert agreement(rated).auc == pytest.approx(sum(pairs) / len(pairs))


@pytest.mark.parametrize(("agrees", "moves"), [(True, True), (False, False)])
async def test_a_memory_moves_by_its_score_only_once_the_critic_is_believed(
    service: EngramService, exchange: Callable[..., EngramDraft], agrees: bool, moves: bool
) -> None:
    async def judged(text: str, score: int, rating: int | None) -> None:
        said: Any = exchange(text)
        await service.ingest(said)
        await service.grade(said.query_id, "A", score)
        if rating is not None:
            await service.ratings.rate(AnswerRating(said.query_id, "A", said.session_id, rating, 1.0))

    await judged("zebra crossing", 5, None)
    await service.settled()

    async def critic_factor() -> float:
        return (await service.search("ann", "zebra crossing")).hits[0].factors.critic

    assert await critic_factor() == 0.0
    for number in range(LEAST_RATED):
        rating = 1 if number % 2 else -1
        await judged(f"something else {number}", 3 + (2 if agrees else -2) * rating, rating)
    assert (await critic_factor() > 0) is moves
    assert (await service.search("bob", "zebra crossing")).hits == ()
