"""The latest rating of each answer, the critic's score, and what is still to be told."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import permutations
from pathlib import Path

import pytest

from local.reward.reward import Rating, RatingStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "reward.db"


@pytest.fixture
async def store(path: Path) -> AsyncIterator[RatingStore]:
    async with RatingStore(path) as store:
        yield store


def rated(
    rating: int | None, at: float, query_id: str = "q", session_id: str = "s", respondent_id: str = "A"
) -> Rating:
    return Rating(query_id, respondent_id, session_id, "user", f"feedback {at}", rating, at)


async def test_a_rating_is_due_until_it_is_told(store: RatingStore) -> None:
    assert await store.rate(rated(1, 1.0)) == rated(1, 1.0)
    assert await store.due() == [rated(1, 1.0)]
    await store.told(rated(1, 1.0))
    assert await store.due() == []


async def test_the_same_rating_again_is_nothing_new(store: RatingStore) -> None:
    await store.rate(rated(1, 1.0))
    await store.told(rated(1, 1.0))
    assert await store.rate(rated(1, 1.0)) is None
    assert await store.rate(rated(1, 2.0)) is None
    assert await store.rate(rated(-1, 1.5)) is None, "it was rated again after that"


async def test_a_rating_taken_back_is_due_as_none(store: RatingStore) -> None:
    await store.rate(rated(1, 1.0))
    await store.told(rated(1, 1.0))
    assert await store.rate(rated(None, 2.0)) == rated(None, 2.0)


async def test_taking_back_what_was_never_rated_is_nothing_new(store: RatingStore) -> None:
    assert await store.rate(rated(None, 2.0)) is None
    assert await store.rate(rated(1, 1.0)) is None


@pytest.mark.parametrize("order", list(permutations((rated(1, 1.0), rated(-1, 2.0), rated(None, 3.0), rated(-1, 4.0)))))
async def test_the_latest_counts_in_whatever_order_they_come(store: RatingStore, order: tuple[Rating, ...]) -> None:
    for rating in order:
        if due := await store.rate(rating):
            await store.told(due)
    await store.grade("q", "A", "s", 2)
    found = await store.agreement()
    assert (found.liked, found.disliked) == (0, 1)


async def test_what_is_told_late_leaves_a_later_rating_due(store: RatingStore) -> None:
    await store.rate(rated(1, 1.0))
    await store.rate(rated(-1, 2.0))
    await store.told(rated(1, 1.0))
    assert await store.due() == [rated(-1, 2.0)]


async def test_what_was_not_told_is_due_after_a_restart(path: Path) -> None:
    async with RatingStore(path) as killed:
        await killed.rate(rated(1, 1.0))
        async with RatingStore(path) as store:
            assert await store.due() == [rated(1, 1.0)]


async def test_scores_and_ratings_meet_whichever_comes_first(store: RatingStore) -> None:
    await store.grade("graded first", "A", "s", 5)
    await store.rate(rated(1, 1.0, "graded first"))
    await store.rate(rated(-1, 1.0, "rated first"))
    await store.grade("rated first", "A", "s", 1)
    await store.grade("not read", "A", "s", None)
    await store.rate(rated(-1, 1.0, "not read"))
    await store.rate(rated(-1, 1.0, "not graded"))
    await store.grade("not rated", "A", "s", 3)
    found = await store.agreement()
    assert (found.liked, found.disliked, found.auc) == (1, 1, 1.0)


async def test_the_answers_of_a_session_and_single_ones_are_forgotten_with_what_was_due(store: RatingStore) -> None:
    await store.rate(rated(1, 1.0, "of s"))
    await store.rate(rated(1, 1.0, "of t", "t"))
    await store.rate(rated(1, 1.0, "of t", "t", "B"))
    await store.rate(rated(1, 1.0, "other", "t"))
    await store.forget_session("s")
    await store.forget_answer("of t", "B")
    assert {(rating.query_id, rating.respondent_id) for rating in await store.due()} == {("of t", "A"), ("other", "A")}
