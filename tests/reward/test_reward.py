"""Users' ratings on their way to the respondents, and back into what is known of the critic."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, Literal

import pytest

from local.bus.envelope import Trace, decode
from local.bus.message import Message
from local.bus.messages import SessionDeleted
from local.critic.messages import CritiqueResult, RewardEvent, UserFeedback
from local.journal.messages import JournalAck
from local.memory.messages import MemoryDeleted
from local.reward.reward import CONSUMER, Rating, RatingStore, RewardConfig, RewardService

Serve = Callable[..., Awaitable[Any]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "reward.db"


@pytest.fixture
def serve(stage: Any, path: Path) -> Serve:
    async def serve(ratings: RatingStore | None = None) -> Any:
        return await stage.serve(RewardService(RewardConfig(least_rated=2), ratings or RatingStore(path)))

    return serve


@pytest.fixture
async def service(serve: Serve) -> AsyncIterator[RewardService]:
    yield (await serve()).participant


def of_query(query_id: str) -> Trace:
    return Trace(query_id, "the answer", "s", "user")


async def rate(stage: Any, rating: Literal[-1, 1] | None, at: float, query_id: str = "q") -> str:
    feedback = UserFeedback(query_id=query_id, rating=rating, rated_at=at)
    return str((await stage.frontend.bus.publish(feedback, of_query(query_id))).id)


async def grade(stage: Any, score: int, query_id: str) -> None:
    critique = CritiqueResult(query_id=query_id, score=score, status="graded")
    await stage.frontend.bus.publish(critique, of_query(query_id))


async def handled(stage: Any, times: int) -> None:
    """So many messages have been dealt with."""

    def numbers() -> set[int]:
        return {number for ack in stage.frontend.of(JournalAck, consumer=CONSUMER) for number in ack.numbers}

    await stage.frontend.until(lambda: len(numbers()) >= times)


async def rewards_on_record(stage: Any, query_id: str = "q") -> list[tuple[float, float]]:
    entries = await stage.on_record(query_id, RewardEvent)
    events = [RewardEvent.decode(decode(entry.frame.encode()).payload) for entry in entries]
    return [(event.reward, event.rated_at) for event in events]


async def test_a_rating_becomes_a_reward_for_the_respondent_that_answered(stage: Any, service: RewardService) -> None:
    feedback = UserFeedback(query_id="q", respondent_id="B", rating=-1, comment="Wrong.", rated_at=7.5)
    said = await stage.frontend.bus.publish(feedback, of_query("q"))
    event = await stage.frontend.hears(RewardEvent)
    assert event == RewardEvent(query_id="q", respondent_id="B", reward=-1.0, rated_at=7.5)
    [envelope] = stage.frontend.envelopes(RewardEvent)
    assert envelope.trace()._replace(cause_id=envelope.cause_id) == Trace("q", said.id, "s", "user")


async def test_each_change_is_told_once_and_a_rating_taken_back_is_none(stage: Any, service: RewardService) -> None:
    for number, rating in enumerate((1, 1, -1, None, None, 1)):
        await rate(stage, rating, float(number))
    await handled(stage, 6)
    assert await rewards_on_record(stage) == [(1.0, 0.0), (-1.0, 2.0), (0.0, 3.0), (1.0, 5.0)]


class Doomed(RatingStore):
    """Its process dies after the commit of what is named."""

    deadly = ""
    process: Any = None

    async def rate(self, rating: Rating) -> Rating | None:
        due = await super().rate(rating)
        await self._pass("rate")
        return due

    async def mark_published(self, rating: Rating) -> None:
        await self._pass("told")
        await super().mark_published(rating)

    async def _pass(self, point: str) -> None:
        if point == self.deadly:
            self.process.die()
            await asyncio.Event().wait()


@pytest.mark.parametrize("deadly", ["rate", "told"])
async def test_a_death_after_the_commit_loses_no_reward_and_doubles_none(
    stage: Any, path: Path, serve: Serve, deadly: str
) -> None:
    doomed = Doomed(path)
    doomed.deadly, doomed.process = deadly, await serve(doomed)
    await rate(stage, 1, 1.0)
    await doomed.process.dead()
    await serve()
    await handled(stage, 1)
    assert await rewards_on_record(stage) == [(1.0, 1.0)]


async def test_what_is_due_is_told_at_the_start(stage: Any, path: Path, serve: Serve) -> None:
    async with RatingStore(path) as ratings:
        await ratings.rate(Rating("q", "A", "s", "user", "feedback", 1, 3.0))
    await serve()
    assert (await stage.frontend.hears(RewardEvent)).rated_at == 3.0


async def test_agreement_is_told_once_there_are_enough_rated_answers_with_a_grade(
    stage: Any, service: RewardService
) -> None:
    assert service.details() == {"agreement": "0 of 2 rated and graded answers"}
    await rate(stage, 1, 1.0, "liked")
    await grade(stage, 4, "liked")
    await grade(stage, 2, "disliked")
    await handled(stage, 3)
    assert service.details() == {"agreement": "1 of 2 rated and graded answers"}
    await rate(stage, -1, 1.0, "disliked")
    await handled(stage, 4)
    assert service.details() == {"agreement": "AUC 1.00 over 2 rated answers; mean score 4.0 liked, 2.0 disliked"}
    await rate(stage, None, 2.0, "disliked")
    await handled(stage, 5)
    assert service.details() == {"agreement": "1 of 2 rated and graded answers"}


@pytest.mark.parametrize(
    "deletion", [SessionDeleted(deleted_session_id="s"), MemoryDeleted(engram_id="e", query_id="liked")]
)
async def test_what_was_deleted_counts_no_more(stage: Any, service: RewardService, deletion: Message) -> None:
    await rate(stage, 1, 1.0, "liked")
    await grade(stage, 4, "liked")
    await handled(stage, 2)
    assert service.details() == {"agreement": "1 of 2 rated and graded answers"}
    await stage.frontend.bus.publish(deletion)
    await handled(stage, 3)
    assert service.details() == {"agreement": "0 of 2 rated and graded answers"}
