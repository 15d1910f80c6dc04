"""The latest rating of each answer, what is still to be announced, and how far a critic and users agree."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import pytest

from local.reward.reward import Rating, RatingStore, agreement


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
    await store.mark_published(rated(1, 1.0))
    assert await store.due() == []


async def test_the_same_rating_again_is_nothing_new(store: RatingStore) -> None:
    await store.rate(rated(1, 1.0))
    await store.mark_published(rated(1, 1.0))
    assert await store.rate(rated(1, 1.0)) is None
    assert await store.rate(rated(1, 2.0)) is None
    assert await store.rate(rated(-1, 1.5)) is None, "it was rated again after that"


async def test_taking_back_what_was_never_rated_is_nothing_new(store: RatingStore) -> None:
    assert await store.rate(rated(None, 2.0)) is None
    assert await store.rate(rated(1, 1.0)) is None


async def test_what_is_told_late_leaves_a_later_rating_due(store: RatingStore) -> None:
    await store.rate(rated(1, 1.0))
    await store.rate(rated(-1, 2.0))
    await store.mark_published(rated(1, 1.0))
    assert await store.due() == [rated(-1, 2.0)]


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


def test_one_score_for_everything_is_no_agreement_and_the_opposite_is_none_at_all() -> None:
    assert agreement({3: 7}, {3: 9}).auc == 0.5
    assert agreement({1: 7}, {5: 9}).auc == 0.0


def test_without_answers_of_both_kinds_there_is_nothing_to_compare() -> None:
    found = agreement({4: 30}, {})
    assert (found.auc, found.mean_disliked) == (None, None)
    assert found.in_words(30) == "none to compare over 30 rated answers; mean score 4.0 liked, - disliked"


def test_of_too_few_answers_only_their_number_is_told() -> None:
    assert agreement({5: 20}, {1: 9}).in_words(30) == "29 of 30 rated and graded answers"
    assert agreement({}, {}).in_words(30) == "0 of 30 rated and graded answers"


async def test_the_latest_counts_in_whatever_order_they_come(store: RatingStore) -> None:
    ratings = (rated(1, 1.0), rated(-1, 2.0), rated(None, 3.0), rated(-1, 4.0))
    orders = list(permutations(ratings))
    for number, order in enumerate(orders):
        for rating in order:
            await store.rate(replace(rating, query_id=f"q{number}"))
        await store.grade(f"q{number}", "A", "s", 2)
    found = await store.agreement()
    assert (found.liked, found.disliked) == (0, len(orders))
