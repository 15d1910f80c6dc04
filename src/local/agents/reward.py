"""Turns users' ratings into rewards for the respondents that gave the answers, and compares them with the critic."""

from __future__ import annotations

import asyncio
import logging
import math
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Self

from pydantic import Field

from local import failpoints
from local.bus.bus import CONFIRM_SECONDS
from local.config import Settings
from local.errors import LocalError
from local.protocol.envelope import Envelope, Trace, session_of
from local.protocol.judgement_messages import CritiqueResult, RewardEvent, UserFeedback
from local.protocol.memory_messages import MemoryDeleted
from local.protocol.messages import SessionDeleted
from local.runtime.participant import Kind, Participant, Resources, on
from local.services.ratings import Rating, RatingStore

log = logging.getLogger(__name__)

CONSUMER = "reward"
AT_ONCE = 16
_NAMESPACE = uuid.UUID("0b8c52ce-3f0e-4f0b-8f6b-7a2f6f5f3f7e")


def reward_id(rating: Rating) -> str:
    """The id of the envelope that tells of a rating: always the same, so that telling twice is one reward."""
    return uuid.uuid5(_NAMESPACE, f"{rating.query_id}\n{rating.respondent_id}\n{rating.rated_at!r}").hex


def rating_of(feedback: UserFeedback, envelope: Envelope) -> Rating:
    """What a user has said of an answer, as it is stored."""
    return Rating(
        query_id=feedback.query_id,
        respondent_id=feedback.respondent_id,
        session_id=session_of(envelope, feedback.query_id),
        user_id=envelope.user_id,
        feedback_id=envelope.id,
        rating=feedback.rating,
        rated_at=feedback.rated_at,
    )


class RewardConfig(Settings):
    """`reward.yaml`; the comments there say what each key means."""

    least_rated: int = Field(30, ge=1)


class RewardService(Participant):
    """Keeps the latest rating of each answer. A respondent is told of each change; what was not told yet when the
    process died is told at the next start."""

    name = "reward"
    linger_ms = 200
    kind = Kind.OBSERVER
    Config = RewardConfig
    publishes = (RewardEvent,)

    def __init__(self, config: RewardConfig, ratings: RatingStore) -> None:
        super().__init__(config)
        self._settings, self._ratings = config, ratings

    @classmethod
    def build(cls, config: RewardConfig, resources: Resources) -> Self:
        """With a file of its own."""
        return cls(config, RatingStore(resources.data_dir / "reward.db"))

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Open the file, and tell what is due."""
        async with self._ratings:
            await self._compare()
            telling = asyncio.create_task(self._tell_what_is_due(), name="tell rewards that are due")
            try:
                yield
            finally:
                telling.cancel()

    @on(UserFeedback, durable=CONSUMER, concurrency=AT_ONCE)
    async def rate(self, feedback: UserFeedback, envelope: Envelope) -> None:
        """A user rates an answer, or takes a rating back. Nobody is told the same rating again."""
        due = await self._ratings.rate(rating_of(feedback, envelope))
        if due is not None:
            failpoints.reach("reward.stored")
            await self._tell(due)
        await self._compare()

    @on(CritiqueResult, durable=CONSUMER, concurrency=AT_ONCE)
    async def grade(self, critique: CritiqueResult, envelope: Envelope) -> None:
        """The critic has read an answer."""
        session_id = session_of(envelope, critique.query_id)
        await self._ratings.grade(critique.query_id, critique.respondent_id, session_id, critique.score)
        await self._compare()

    @on(SessionDeleted, durable=CONSUMER)
    async def forget_session(self, deleted: SessionDeleted, envelope: Envelope) -> None:
        """A session is gone."""
        await self._ratings.forget_session(deleted.deleted_session_id)
        await self._compare()

    @on(MemoryDeleted, durable=CONSUMER)
    async def forget_answer(self, deleted: MemoryDeleted, envelope: Envelope) -> None:
        """An exchange is gone."""
        await self._ratings.forget_answer(deleted.query_id, deleted.respondent_id)
        await self._compare()

    def details(self) -> dict[str, str]:
        """How far the critic and the users agree, once that can be told."""
        return {"agreement": self._agreement.in_words(self._settings.least_rated)}

    async def _compare(self) -> None:
        self._agreement = await self._ratings.agreement()

    async def _tell_what_is_due(self) -> None:
        try:
            for rating in await self._ratings.due():
                await self._tell(rating, seconds=math.inf)
        except LocalError as error:
            log.error("rewards are due, and told at the next start: %s", error)

    async def _tell(self, rating: Rating, seconds: float = CONFIRM_SECONDS) -> None:
        event = RewardEvent(
            query_id=rating.query_id,
            respondent_id=rating.respondent_id,
            reward=float(rating.rating or 0),
            rated_at=rating.rated_at,
        )
        trace = Trace(rating.query_id, rating.feedback_id, rating.session_id, rating.user_id)
        await self.bus.publish(event, trace, envelope_id=reward_id(rating), seconds=seconds)
        failpoints.reach("reward.told")
        await self._ratings.told(rating)
