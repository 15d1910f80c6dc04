"""Turns users' ratings into rewards for the respondents that gave the answers, and compares them with the critic."""

from __future__ import annotations

import asyncio
import logging
import math
import sqlite3
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pydantic import Field

from local.bus.bus import CONFIRM_SECONDS
from local.bus.envelope import Envelope, Trace, session_of
from local.bus.messages import SessionDeleted
from local.core import failpoints
from local.core.config import Settings
from local.core.database import Database
from local.core.errors import LocalError
from local.critic.messages import CritiqueResult, RewardEvent, UserFeedback
from local.memory.messages import MemoryDeleted
from local.runtime.participant import Kind, Participant, Resources, on

# The users' ratings and the critic's scores of each answer, and the unpublished rewards, in one SQLite file.

Scores = Mapping[int, int]  # how many answers have got each score


@dataclass(frozen=True, slots=True)
class Agreement:
    """The agreement between the critic and the users: how many graded answers were liked and disliked, and their mean
    scores, None without answers.

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
        """Return the agreement in words; with fewer than `least` answers only their number, because the figure is not
        significant yet.
        """
        if self.rated < least:
            return f"{self.rated} of {least} rated and graded answers"
        auc = "none to compare" if self.auc is None else f"AUC {self.auc:.2f}"
        liked, disliked = _mean_in_words(self.mean_liked), _mean_in_words(self.mean_disliked)
        return f"{auc} over {self.rated} rated answers; mean score {liked} liked, {disliked} disliked"


def agreement(liked: Scores, disliked: Scores) -> Agreement:
    """The agreement of the scores of liked and of disliked answers."""
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


_MIGRATIONS = (
    """
    CREATE TABLE answers (
        query_id TEXT NOT NULL,
        respondent_id TEXT NOT NULL,
        session_id TEXT NOT NULL,
        score INTEGER,
        rating INTEGER,
        rated_at REAL,
        feedback_id TEXT,
        user_id TEXT,
        is_due INTEGER NOT NULL DEFAULT 0,
        PRIMARY KEY (query_id, respondent_id)
    ) WITHOUT ROWID;
    CREATE INDEX answers_by_session ON answers (session_id);
    CREATE INDEX answers_rated ON answers (rating, score) WHERE rating IS NOT NULL;
    CREATE INDEX answers_due ON answers (is_due) WHERE is_due;
    """,
)


@dataclass(frozen=True, slots=True)
class Rating:
    """A user's rating of an answer: 1, -1, or None for a withdrawn one. `rated_at` is in seconds since 1970,
    `feedback_id` the envelope with the rating.
    """

    query_id: str
    respondent_id: str
    session_id: str
    user_id: str | None
    feedback_id: str
    rating: int | None
    rated_at: float


class RatingStore(Database):
    """The ratings and scores of answers in one SQLite file. Use as `async with`. Every coroutine returns after its
    commit; raises `StoreFailed`.

    The rating of an answer is the one with the latest `rated_at`, in whatever order they come. One that changes it is
    due until `mark_published`.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, _MIGRATIONS)

    async def rate(self, rating: Rating) -> Rating | None:
        """Note a rating; returns the answer's rating if it is due."""
        sql = (
            "INSERT INTO answers (query_id, respondent_id, session_id, user_id, feedback_id, rating, rated_at, is_due)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET rating = excluded.rating,"
            " rated_at = excluded.rated_at, feedback_id = excluded.feedback_id, user_id = excluded.user_id,"
            " is_due = is_due OR rating IS NOT excluded.rating WHERE rated_at IS NULL OR excluded.rated_at > rated_at"
        )
        key = (rating.query_id, rating.respondent_id)
        values = (
            *key, rating.session_id, rating.user_id, rating.feedback_id, rating.rating, rating.rated_at,
            rating.rating is not None,
        )  # fmt: skip

        def work(db: sqlite3.Connection) -> Rating | None:
            db.execute(sql, values)
            return next(iter(_due(db, "query_id = ? AND respondent_id = ?", *key)), None)

        return await self.run(work)

    async def grade(self, query_id: str, respondent_id: str, session_id: str, score: int | None) -> None:
        """Note the critic's score of an answer; None where it has none."""
        sql = (
            "INSERT INTO answers (query_id, respondent_id, session_id, score) VALUES (?, ?, ?, ?)"
            " ON CONFLICT DO UPDATE SET score = excluded.score"
        )
        await self.run(lambda db: db.execute(sql, (query_id, respondent_id, session_id, score)))

    async def due(self) -> list[Rating]:
        """Return every rating that was not published to its respondent."""
        return await self.run(lambda db: _due(db, "true"))

    async def mark_published(self, rating: Rating) -> None:
        """Mark a rating as published, unless there is a later one."""
        sql = "UPDATE answers SET is_due = 0 WHERE query_id = ? AND respondent_id = ? AND rated_at = ?"
        key = (rating.query_id, rating.respondent_id, rating.rated_at)
        await self.run(lambda db: db.execute(sql, key))

    async def forget_session(self, session_id: str) -> None:
        """Remove all answers of a session."""
        sql = "DELETE FROM answers WHERE session_id = ?"
        await self.run(lambda db: db.execute(sql, (session_id,)))

    async def forget_answer(self, query_id: str, respondent_id: str) -> None:
        """Remove one answer."""
        sql = "DELETE FROM answers WHERE query_id = ? AND respondent_id = ?"
        await self.run(lambda db: db.execute(sql, (query_id, respondent_id)))

    async def agreement(self) -> Agreement:
        """Between the critic and the users, over the answers that have a score and a rating."""
        sql = "SELECT score, count(*) FROM answers WHERE rating = ? AND score IS NOT NULL GROUP BY score"

        def work(db: sqlite3.Connection) -> Agreement:
            liked, disliked = (dict(map(tuple, db.execute(sql, (rating,)))) for rating in (1, -1))
            return agreement(liked, disliked)

        return await self.run(work)


def _due(db: sqlite3.Connection, condition: str, *values: str) -> list[Rating]:
    sql = (
        "SELECT query_id, respondent_id, session_id, user_id, feedback_id, rating, rated_at FROM answers"
        f" WHERE is_due AND {condition}"
    )
    return [Rating(*row) for row in db.execute(sql, values)]


log = logging.getLogger(__name__)

CONSUMER = "reward"
AT_ONCE = 16
_NAMESPACE = uuid.UUID("0b8c52ce-3f0e-4f0b-8f6b-7a2f6f5f3f7e")


def reward_id(rating: Rating) -> str:
    """Return the id of a rating's reward: always the same, so that publishing twice is one reward."""
    return uuid.uuid5(_NAMESPACE, f"{rating.query_id}\n{rating.respondent_id}\n{rating.rated_at!r}").hex


def rating_of(feedback: UserFeedback, envelope: Envelope) -> Rating:
    """Return a user's feedback as a stored rating."""
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
    """The settings in `reward.yaml`; the comments there say what each key means."""

    least_rated: int = Field(30, ge=1)


class RewardService(Participant):
    """The participant that keeps the latest rating of each answer and publishes each change as a reward for the
    respondent. What was not published when the process died is published at the next start."""

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
        """Build the service with its file."""
        return cls(config, RatingStore(resources.data_dir / "reward.db"))

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Open the file, and publish the due rewards."""
        async with self._ratings:
            await self._compare()
            telling = asyncio.create_task(self._publish_due(), name="tell rewards that are due")
            try:
                yield
            finally:
                telling.cancel()

    @on(UserFeedback, durable=CONSUMER, concurrency=AT_ONCE)
    async def rate(self, feedback: UserFeedback, envelope: Envelope) -> None:
        """Store a user's rating or its withdrawal. An unchanged rating is not published again."""
        due = await self._ratings.rate(rating_of(feedback, envelope))
        if due is not None:
            failpoints.reach("reward.stored")
            await self._publish(due)
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
        """Return the agreement of the critic and the users, if there is enough data."""
        return {"agreement": self._agreement.in_words(self._settings.least_rated)}

    async def _compare(self) -> None:
        self._agreement = await self._ratings.agreement()

    async def _publish_due(self) -> None:
        try:
            for rating in await self._ratings.due():
                await self._publish(rating, seconds=math.inf)
        except LocalError as error:
            log.error("rewards could not be published and are sent at the next start: %s", error)

    async def _publish(self, rating: Rating, seconds: float = CONFIRM_SECONDS) -> None:
        event = RewardEvent(
            query_id=rating.query_id,
            respondent_id=rating.respondent_id,
            reward=float(rating.rating or 0),
            rated_at=rating.rated_at,
        )
        trace = Trace(rating.query_id, rating.feedback_id, rating.session_id, rating.user_id)
        await self.bus.publish(event, trace, envelope_id=reward_id(rating), seconds=seconds)
        failpoints.reach("reward.told")
        await self._ratings.mark_published(rating)
