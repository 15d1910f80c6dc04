"""The routine that thinks about what has happened lately."""

from __future__ import annotations

import uuid
from functools import partial
from pathlib import Path

from local.agents.reflecting.background_model import BackgroundQuestion
from local.agents.reflecting.recent_exchanges import RecentExchanges, recent_exchanges
from local.agents.reflecting.reflection_config import ReflectionConfig
from local.agents.reflecting.routine import Routine, RoutineContext
from local.agents.reflecting.routine_diary import RoutineDiary
from local.protocol.envelope import Trace
from local.protocol.reflection_messages import MonologueThought
from local.services.reflecting import thought_prompt

FILE_NAME = "monologue.json"  # in the data directory
MOST_EXCHANGES = 10  # for one thought, the latest
_NAMESPACE = uuid.UUID("1f1d6f0e-6f6a-4b1e-9d55-0a6c0f9f7e21")


class InnerMonologue(Routine):
    """Says its thoughts on the bus and nowhere else: no model is shown them, and nothing is done because of them."""

    name = "monologue"
    publishes = (Routine, MonologueThought, "memory.request.list")

    def __init__(self, config: ReflectionConfig, context: RoutineContext, data_dir: Path) -> None:
        super().__init__(context, config.thinking(), RoutineDiary(data_dir, FILE_NAME))

    async def once(self) -> float:
        """Think of what is new, if anything is."""
        recent = await recent_exchanges(self.bus, self.state.read_until, MOST_EXCHANGES)
        if recent.exchanges:
            messages = partial(thought_prompt.messages, recent.exchanges)
            question = BackgroundQuestion(messages, thought_prompt.SCHEMA, thought_prompt.read)
            thought = await self.ask(question, lambda thought: "a thought" if thought else "no thought")
            if thought and not self.has_forgotten(recent.engram_ids):
                await self._tell(recent, thought)
        return recent.until

    async def _tell(self, recent: RecentExchanges, thought: str) -> None:
        """Once for the same exchanges, whatever has died in between."""
        thought_id = uuid.uuid5(_NAMESPACE, "\n".join(recent.engram_ids)).hex
        said = MonologueThought(
            thought_id=thought_id, text=thought, sources=recent.engram_ids, left_out=recent.left_out,
            model=self.context.model.name,
        )  # fmt: skip
        await self.bus.publish(said, Trace(thought_id, None, thought_id), envelope_id=thought_id)
