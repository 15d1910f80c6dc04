"""Users' rewards of one respondent's answers, by the prompt of the answer."""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from local.generator.history import ConversationService

DEFAULT_PROMPT = "default"


class PromptReward(NamedTuple):
    """The rewards of the answers to one prompt: their number and their mean, from -1 to 1."""

    prompt: str
    ratings: int
    mean: float

    def in_words(self) -> str:
        """Return the rewards as text for a person."""
        plural = "" if self.ratings == 1 else "s"
        return f"{self.prompt} {self.mean:+.2f} ({self.ratings} rating{plural})"


class RunningReward:
    """The rewards of one respondent, stored beside its turns, and deleted with them. Raises as `ConversationService`
    does.
    """

    def __init__(self, conversation: ConversationService, respondent_id: str = "A") -> None:
        self._conversation, self._respondent_id = conversation, respondent_id
        self.latest: list[PromptReward] = []  # the last result of `by_prompt`

    async def note(self, query_id: str, reward: float, rated_at: float) -> None:
        """Store an answer's current reward, 0 for none, unless a later rating is known; without effect if there is no
        such answer. `rated_at` is in seconds since 1970.
        """
        sql = (
            "INSERT INTO rewards SELECT query_id, respondent_id, coalesce(json_extract(outcome, '$.prompt'), ?), ?, ?"
            " FROM turns WHERE query_id = ? AND respondent_id = ? AND status = 'answered'"
            " ON CONFLICT DO UPDATE SET reward = excluded.reward, rated_at = excluded.rated_at"
            " WHERE excluded.rated_at > rated_at"
        )
        values = (DEFAULT_PROMPT, reward, rated_at, query_id, self._respondent_id)
        await self._conversation.write(lambda db: db.execute(sql, values))

    async def by_prompt(self) -> list[PromptReward]:
        """The rewards of all answers that have one, the prompt with the most ratings first."""
        sql = (
            "SELECT prompt, count(*) AS ratings, avg(reward) FROM rewards WHERE respondent_id = ? AND reward != 0"
            " GROUP BY prompt ORDER BY ratings DESC, prompt"
        )

        def work(db: sqlite3.Connection) -> list[PromptReward]:
            return [PromptReward(*row) for row in db.execute(sql, (self._respondent_id,))]

        self.latest = await self._conversation.write(work)
        return self.latest
