"""The routine that looks back over conversations and notes what they say together."""

from __future__ import annotations

import asyncio
import logging
import uuid
from functools import partial
from pathlib import Path

from local.agents.reflecting.background_model import BackgroundQuestion
from local.agents.reflecting.recent_exchanges import RecentExchanges, recent_exchanges
from local.agents.reflecting.reflection_config import ReflectionConfig
from local.agents.reflecting.routine import Routine, RoutineContext
from local.agents.reflecting.routine_diary import RoutineDiary
from local.agents.reflecting.skills_at_hand import SkillsAtHand, skills_at_hand
from local.errors import ConfigError
from local.instructions.soul import Soul
from local.instructions.text_proposal import TextProposals
from local.protocol.dream_messages import DreamMade, DreamNote
from local.protocol.envelope import Trace
from local.services.engrams.engram import USERS_RESPONDENT, engram_id
from local.services.reflecting import dream_prompt
from local.services.reflecting.dream_prompt import Dream
from local.services.skills.skill import MOST_NAME, one_line
from local.services.skills.skill_draft import SkillDraft
from local.services.skills.skill_proposal_book import SkillProposalBook

log = logging.getLogger(__name__)

FILE_NAME = "dreams.json"  # in the data directory
MOST_EXCHANGES = 40  # of a dream, the latest
_NAMESPACE = uuid.UUID("b9a0f2d4-6d3e-4a53-9b0b-0f7f3f6f8c11")


class Dreamer(Routine):
    """Reads what the memory has of the owner since its last dream, but for what was said beside words of strangers, and
    tells what it has seen."""

    name = "dreamer"
    publishes = (Routine, DreamMade, "memory.request.list", "skills.request.ready", "skills.request.show")

    def __init__(self, config: ReflectionConfig, context: RoutineContext, data_dir: Path, settings: Path) -> None:
        """`settings` is the folder of the soul and of the owner's skills."""
        super().__init__(context, config.dreaming(), RoutineDiary(data_dir, FILE_NAME))
        self._least_exchanges = config.dream_least_exchanges
        self._soul = Soul(settings, data_dir)
        self._proposals = TextProposals(self._soul)
        self._skills = SkillProposalBook(settings, data_dir)

    async def once(self) -> float:
        """Look back once."""
        recent = await recent_exchanges(self.bus, self.state.read_until, MOST_EXCHANGES)
        if len(recent.exchanges) < self._least_exchanges:
            return self.state.read_until
        soul, skills = await asyncio.to_thread(self._soul.text), await skills_at_hand(self.bus)
        question = BackgroundQuestion(
            partial(dream_prompt.messages, recent.exchanges, soul, skills.drafts if skills else ()),
            dream_prompt.SCHEMA,
            partial(dream_prompt.read, exchanges=recent.exchanges),
        )
        dream = await self.ask(question, _came_of)
        if self.has_forgotten(recent.engram_ids):
            return self.state.read_until  # what is left is looked back at next time
        proposed = await asyncio.to_thread(self._proposals.propose, dream.soul, self.name)
        skill = await asyncio.to_thread(self._propose_skill, dream.skill, skills)
        await self._tell(recent, dream, proposes_soul=proposed, proposes_skill=skill)
        return recent.until

    def _propose_skill(self, draft: SkillDraft | None, skills: SkillsAtHand | None) -> str:
        """The name of the skill of which a change waits now, if there was one to propose."""
        if draft is None or skills is None:
            return ""
        try:
            if draft.name in skills.others:
                raise ConfigError("it was not read whole")
            return draft.name if self._skills.propose(draft, skills.folders.get(draft.name), self.name) else ""
        except ConfigError as error:
            log.warning("no change of the skill %s is proposed: %s", one_line(draft.name)[:MOST_NAME], error)
            return ""

    async def _tell(self, recent: RecentExchanges, dream: Dream, *, proposes_soul: bool, proposes_skill: str) -> None:
        dream_id = _id_of(recent)
        notes = [
            DreamNote(
                engram_id=engram_id(f"{dream_id}:{number}", USERS_RESPONDENT), text=each.text, sources=each.sources
            )
            for number, each in enumerate(dream.seen)
        ]
        made = DreamMade(
            dream_id=dream_id,
            notes=tuple(notes),
            read=len(recent.exchanges),
            left_out=recent.left_out,
            since=self.state.read_until,
            until=recent.until,
            model=self.context.model.name,
            proposes_soul=proposes_soul,
            proposes_skill=proposes_skill,
        )
        await self.bus.publish(made, Trace(dream_id, None, dream_id), envelope_id=dream_id)


def _id_of(recent: RecentExchanges) -> str:
    """The same for the same exchanges, so that a dream that is dreamt again after a crash is one."""
    return uuid.uuid5(_NAMESPACE, "\n".join(recent.engram_ids)).hex


def _came_of(dream: Dream) -> str:
    count = len(dream.seen)
    return f"{count} {'note' if count == 1 else 'notes'}"
