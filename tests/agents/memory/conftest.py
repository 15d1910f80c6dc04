"""A memory on the stage, with a journal, a door, and a model that plays a script."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agent_stage.door import SECONDS
from agent_stage.night import Night
from agent_stage.served import Served
from agent_stage.skill_holder import SkillHolder
from agent_stage.stage import Stage

from local.bus.envelope import Envelope, Trace
from local.bus.message import Message
from local.bus.messages import ResponseGeneration
from local.generator.output import response_id
from local.memory.agent import EmbeddingChoice, MemoryAgent, MemoryConfig
from local.memory.messages import MemoryRequest, MemoryResult
from local.memory.service import EngramService
from local.models import arbiter as quiet_period
from local.models import leases


class NoEmbedding(EmbeddingChoice):
    """Leaves the search to the words."""

    def __init__(self) -> None:
        self.problem = ""

    async def run(self, engrams: EngramService) -> None:
        pass


class Remembering:
    """What a test says to a memory and asks of it."""

    def __init__(self, stage: Stage) -> None:
        self.stage, self.door = stage, stage.door
        self._directory = stage.database.parent / "engrams"

    async def serve(self, *, classify: bool = False, signs_as: str | None = None) -> Served:
        """A process of the memory on the stage's one store."""
        config = MemoryConfig(classify=classify)
        engrams = EngramService(self._directory)
        agent = MemoryAgent(config, self.stage.model, "gemma", engrams, NoEmbedding(), signs_as=signs_as)
        return await self.stage.serve(agent)

    async def publish(self, message: Message, trace: Trace, envelope_id: str | None = None) -> Envelope:
        return await self.door.bus.publish(message, trace, envelope_id=envelope_id)

    async def answered(
        self, query_id: str, query: str, answer: str = "Noted.", *, session: str = "s", user: str | None = None,
        **fields: Any,
    ) -> Envelope:  # fmt: skip
        """A turn has ended."""
        told: dict[str, Any] = {"status": "answered", "respondent_id": "A"} | fields
        response = ResponseGeneration(query_id=query_id, query=query, answer=answer, **told)
        trace = Trace(query_id, None, session, user)
        return await self.publish(response, trace, response_id(query_id, told["respondent_id"]))

    async def ask(self, verb: Any, *, user: str | None = None, **fields: Any) -> MemoryResult:
        request = MemoryRequest(verb=verb, **fields)
        trace = Trace("asked", None, "asking", user)
        return await self.door.bus.request(request, MemoryResult, SECONDS, trace)

    def classification(self, *facts: dict[str, Any], intent: str = "statement") -> str:
        """What a model replies that obeys the form."""
        whole = [{"certain": True, "retracts": False} | fact for fact in facts]
        return json.dumps({"intent": intent, "entities": [], "facts": whole})


@pytest.fixture
def remembering(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> Remembering:
    monkeypatch.setattr(leases, "ALONE_SECONDS", 0.0)  # there is no arbiter to wait for
    monkeypatch.setattr(leases, "BEAT_SECONDS", 0.001)
    monkeypatch.setattr(quiet_period, "QUIET_SECONDS", 0.0)
    return Remembering(stage)


@pytest.fixture
async def night(remembering: Remembering, tmp_path: Path) -> Night:
    await remembering.serve()
    await remembering.stage.serve(SkillHolder(tmp_path / "settings"))
    return Night(remembering, tmp_path)
