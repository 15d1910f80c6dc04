"""What a respondent is taught while it works: users' ratings of its answers, and what they have pinned."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import ClassVar

from local.agents.answering.known_facts import KnownFacts
from local.config import Settings
from local.errors import LocalError
from local.protocol.envelope import Envelope, Trace, new_id
from local.protocol.judgement_messages import RewardEvent
from local.protocol.memory_messages import MemoryRequest, MemoryResult, UserFacts
from local.protocol.message import MAIN_RESPONDENT
from local.protocol.messages import ParticipantStatus
from local.runtime.participant import Participant, on
from local.services.conversation import ConversationService
from local.services.running_reward import PromptReward, RunningReward

log = logging.getLogger(__name__)

FACTS_SECONDS = 0.5  # that a user's first turn waits for the memory at most


class Learning(Participant):
    """Base of a respondent. It hears the memory by itself; the handler of `RewardEvent` is the respondent's, as it
    belongs to its own durable consumer."""

    respondent_id: ClassVar[str] = MAIN_RESPONDENT

    def __init__(self, config: Settings, conversation: ConversationService) -> None:
        super().__init__(config)
        self._facts = KnownFacts(self._ask_memory)
        self._running_reward = RunningReward(conversation, self.respondent_id)
        self._rewards: Sequence[PromptReward] = ()

    @on(UserFacts)
    async def hear_facts(self, facts: UserFacts, envelope: Envelope) -> None:
        """The memory says what a user has pinned now."""
        self._facts.told(facts)

    @on(ParticipantStatus)
    async def watch_memory(self, status: ParticipantStatus, envelope: Envelope) -> None:
        """A participant lives, the memory perhaps."""
        self._facts.heard(status)

    async def announce(self) -> None:
        """What was said before, or while there was no connection, was not heard."""
        self._facts.ask_again()

    def details(self) -> dict[str, str]:
        """What users make of its answers, for each prompt."""
        return {"reward": ", ".join(map(_in_words, self._rewards))} if self._rewards else {}

    async def _recall_rewards(self) -> None:
        self._rewards = await self._running_reward.by_prompt()

    async def _take_reward(self, event: RewardEvent) -> None:
        if event.respondent_id == self.respondent_id:
            await self._running_reward.note(event.query_id, event.reward, event.rated_at)
            await self._recall_rewards()

    async def _ask_memory(self, user: str) -> Sequence[str] | None:
        request, trace = MemoryRequest(verb="facts"), Trace(new_id(), user_id=user)
        try:
            result = await self.bus.request(request, MemoryResult, FACTS_SECONDS, trace)
        except LocalError as error:
            log.warning("what the user has pinned is not known now: %s", error)
            return None
        return None if result.error else result.lines


def _in_words(reward: PromptReward) -> str:
    plural = "" if reward.ratings == 1 else "s"
    return f"{reward.prompt} {reward.mean:+.2f} ({reward.ratings} rating{plural})"
