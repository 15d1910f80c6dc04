"""Ratings that come before their answers, and what a user's ratings make of the critic's scores."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from local.memory import record as early_ratings
from local.memory.service import LEAST_RATED, CriticAgreement, EngramService, of_counts
from local.memory.store import AnswerRating, EngramDraft, Ingested

Make = Callable[..., EngramDraft]


def rating(sentiment: int | None, rated_at: float = 10.0, query_id: str = "q", session_id: str = "s") -> AnswerRating:
    return AnswerRating(query_id, "A", session_id, sentiment, rated_at)


async def test_the_latest_rating_that_came_first_is_noted_with_its_time(opened: Any, exchange: Make) -> None:
    async with opened() as service:
        for each in (rating(1, 10.0), rating(-1, 20.0), rating(1, 15.0)):
            assert not await service.rate(each)
    async with opened() as service:  # of the next process
        tea = exchange("Tea?", query_id="q")
        assert await service.ingest(tea) is Ingested.RATED
        assert (await service.get("ann", tea.engram_id)).sentiment == -1
        assert [(each.at, each.what, each.value) for each in await service.changes("ann", tea.engram_id)] == [
            (20.0, "sentiment", "-1")
        ]
        assert not await service.rate(rating(1, 19.0)), "an older one changes nothing"
        assert await service.rate(rating(1, 21.0))


async def test_the_answer_says_that_it_was_rated_until_that_is_settled(service: EngramService, exchange: Make) -> None:
    tea, theirs = exchange("Tea?", query_id="q"), exchange("Tea?", query_id="q", respondent_id="B")
    await service.rate(rating(1))
    assert await service.ingest(theirs) is Ingested.NEW
    assert [await service.ingest(tea) for _ in range(2)] == [Ingested.RATED] * 2
    assert await service.early_rating("q", "A") == rating(1)
    await service.settle_rating("q", "A")
    assert await service.ingest(tea) is Ingested.KNOWN
    assert await service.early_rating("q", "A") is None


async def test_nothing_is_kept_of_a_deleted_answer_or_session(
    service: EngramService, exchange: Make, holders: Callable[..., list[str]]
) -> None:
    tea = exchange("Tea?", query_id="deleted")
    await service.ingest(tea)
    await service.delete("ann", tea.engram_id)
    await service.rate(rating(1, query_id="deleted"))
    assert await service.early_rating("deleted", "A") is None
    await service.rate(rating(1, query_id="zanzibar"))
    await service.delete_session("s")
    assert await service.early_rating("zanzibar", "A") is None
    assert holders("zanzibar") == []
    await service.rate(rating(1, query_id="zanzibar"))
    assert await service.early_rating("zanzibar", "A") is None


async def test_what_never_comes_is_not_kept_for_good(directory: Path) -> None:
    now = [0.0]
    async with EngramService(directory, clock=lambda: now[0]) as service:
        await service.rate(rating(1, query_id="old"))
        now[0] = early_ratings.KEPT_SECONDS
        await service.rate(rating(1, query_id="young"))
        assert await service.early_rating("old", "A") is not None
        now[0] += 1.0
        await service.rate(rating(1, query_id="last"))
        assert await service.early_rating("old", "A") is None
        assert await service.early_rating("young", "A") is not None


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
        for _ in range(40)
    ]
    assert sum(trusted) <= 4  # of 40 that guess, about one passes for better


def test_few_ratings_or_those_of_one_kind_say_nothing() -> None:
    few = [(5, 1), (1, -1)] * (LEAST_RATED // 2 - 1)
    assert agreement(few) == CriticAgreement(len(few))
    assert agreement([*few, (5, 1), (1, -1)]).is_better_than_chance
    assert not agreement([(5, 1)] * 50).is_better_than_chance
    assert agreement([]) == CriticAgreement(0)


@pytest.mark.parametrize(("agrees", "moves"), [(True, True), (False, False)])
async def test_a_memory_moves_by_its_score_only_once_the_critic_is_believed(
    service: EngramService, exchange: Callable[..., EngramDraft], agrees: bool, moves: bool
) -> None:
    async def judged(text: str, score: int, rating: int | None) -> None:
        said: Any = exchange(text)
        await service.ingest(said)
        await service.grade(said.query_id, "A", score)
        if rating is not None:
            await service.rate(AnswerRating(said.query_id, "A", said.session_id, rating, 1.0))

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
