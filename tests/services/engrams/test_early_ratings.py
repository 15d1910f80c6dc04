"""A rating that comes before its answer is noted when that is stored."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from local.memory import record as early_ratings
from local.memory.service import EngramService
from local.memory.store import AnswerRating, EngramDraft, Ingested

Make = Callable[..., EngramDraft]


def rating(sentiment: int | None, rated_at: float = 10.0, query_id: str = "q", session_id: str = "s") -> AnswerRating:
    return AnswerRating(query_id, "A", session_id, sentiment, rated_at)


async def test_the_latest_rating_that_came_first_is_noted_with_its_time(opened: Any, exchange: Make) -> None:
    async with opened() as service:
        for each in (rating(1, 10.0), rating(-1, 20.0), rating(1, 15.0)):
            assert not await service.ratings.rate(each)
    async with opened() as service:  # of the next process
        tea = exchange("Tea?", query_id="q")
        assert await service.ingest(tea) is Ingested.RATED
        assert (await service.get("ann", tea.engram_id)).sentiment == -1
        assert [(each.at, each.what, each.value) for each in await service.changes("ann", tea.engram_id)] == [
            (20.0, "sentiment", "-1")
        ]
        assert not await service.ratings.rate(rating(1, 19.0)), "an older one changes nothing"
        assert await service.ratings.rate(rating(1, 21.0))


async def test_one_that_was_taken_back_leaves_none(service: EngramService, exchange: Make) -> None:
    await service.ratings.rate(rating(1, 10.0))
    await service.ratings.rate(rating(None, 20.0))
    tea = exchange("Tea?", query_id="q")
    await service.ingest(tea)
    assert (await service.get("ann", tea.engram_id)).sentiment is None


async def test_the_answer_says_that_it_was_rated_until_that_is_settled(service: EngramService, exchange: Make) -> None:
    tea, theirs = exchange("Tea?", query_id="q"), exchange("Tea?", query_id="q", respondent_id="B")
    await service.ratings.rate(rating(1))
    assert await service.ingest(theirs) is Ingested.NEW
    assert [await service.ingest(tea) for _ in range(2)] == [Ingested.RATED] * 2
    assert await service.ratings.early("q", "A") == rating(1)
    await service.ratings.settle("q", "A")
    assert await service.ingest(tea) is Ingested.KNOWN
    assert await service.ratings.early("q", "A") is None


async def test_nothing_is_kept_of_a_deleted_answer_or_session(
    service: EngramService, exchange: Make, holders: Callable[..., list[str]]
) -> None:
    tea = exchange("Tea?", query_id="deleted")
    await service.ingest(tea)
    await service.delete("ann", tea.engram_id)
    await service.ratings.rate(rating(1, query_id="deleted"))
    assert await service.ratings.early("deleted", "A") is None
    await service.ratings.rate(rating(1, query_id="zanzibar"))
    await service.delete_session("s")
    assert await service.ratings.early("zanzibar", "A") is None
    assert holders("zanzibar") == []
    await service.ratings.rate(rating(1, query_id="zanzibar"))
    assert await service.ratings.early("zanzibar", "A") is None


async def test_what_never_comes_is_not_kept_for_good(directory: Path) -> None:
    now = [0.0]
    async with EngramService(directory, clock=lambda: now[0]) as service:
        await service.ratings.rate(rating(1, query_id="old"))
        now[0] = early_ratings.KEPT_SECONDS
        await service.ratings.rate(rating(1, query_id="young"))
        assert await service.ratings.early("old", "A") is not None
        now[0] += 1.0
        await service.ratings.rate(rating(1, query_id="last"))
        assert await service.ratings.early("old", "A") is None
        assert await service.ratings.early("young", "A") is not None
