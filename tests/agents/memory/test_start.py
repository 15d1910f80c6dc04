"""The memory's start does not hold up the others'."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agent_stage.door import SECONDS

from local.memory.agent import EmbeddingChoice, MemoryAgent, MemoryConfig
from local.memory.service import EngramService

pytestmark = pytest.mark.usefixtures("stage")


async def test_models_are_left_alone_until_the_memory_is_announced(remembering: Any) -> None:
    order: list[str] = []
    is_chosen = asyncio.Event()

    class Choice(EmbeddingChoice):
        def __init__(self) -> None:
            self.problem = ""

        async def run(self, engrams: EngramService) -> None:
            order.append("chosen")
            is_chosen.set()

    class Memory(MemoryAgent):
        async def announce(self) -> None:
            await super().announce()
            order.append("announced")

    engrams = EngramService(remembering.stage.database.parent / "engrams")
    memory = Memory(MemoryConfig(classify=False), remembering.stage.model, "gemma", engrams, Choice())
    await remembering.stage.serve(memory)
    await asyncio.wait_for(is_chosen.wait(), SECONDS)
    assert order == ["announced", "chosen"]
