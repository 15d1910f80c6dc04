"""A rubric, and a critic on the stage whose judge plays a script."""

from __future__ import annotations

from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from local.bus.envelope import Trace
from local.bus.messages import ResponseGeneration
from local.core import config
from local.critic.agent import CriticAgent, CriticConfig
from local.critic.judge import PROFILES, Judge
from local.critic.judging import Profile, Rubric
from local.critic.messages import CritiqueResult
from local.critic.self_test import JudgeFitness
from local.journal.messages import JournalAck
from local.models import arbiter as quiet_period
from local.models import leases
from local.models.arbiter import Arbiter, ArbiterConfig
from tests.agents import conftest as agents

SHIPPED = Path(__file__).parents[2] / "config"
stage = agents.stage


@pytest.fixture
def rubric() -> Rubric:
    scores = ("All of it is wrong.", "Much is wrong.", "Half is right.", "Nearly all is right.", "All of it is right.")
    return Rubric(criteria="Is the answer correct?", scores=scores)


@pytest.fixture(params=list(PROFILES))
def profile(request: pytest.FixtureRequest) -> Profile:
    return PROFILES[request.param]


class Critics:
    """Serves critics, one in the place of the other, and gives them answers to judge."""

    def __init__(self, stage: Any) -> None:
        self.stage, self.frontend, self.model = stage, stage.frontend, stage.model
        self.waits: list[float] = []

    async def serve(self, profile: str = "prometheus2", tested_in: Path | None = None, **settings: Any) -> Any:
        """A critic whose model is `judge`, ready; it has to pass its self-test where there is a folder for that."""
        found = config.load("critic", CriticConfig, [SHIPPED], settings)
        judge = Judge(self.model, "judge", PROFILES[profile], num_ctx=found.num_ctx or 32_000, sleep=self._sleep)  # type: ignore[index]
        fitness = None if tested_in is None else JudgeFitness(judge, tested_in)
        return await self.stage.serve(CriticAgent(found, judge, fitness))

    async def answered(self, answer: str = "1308 metres.", query_id: str = "q", **fields: Any) -> ResponseGeneration:
        """Somebody has answered a query."""
        session = f"session of {query_id}"
        told = {"query_id": query_id, "query": "How deep is it?", "answer": answer, "status": "answered"}
        response = ResponseGeneration(**{**told, "model": "gemma", "session_id": session, **fields})
        await self.frontend.bus.publish(response, Trace(query_id, None, session, "user"))
        return response

    async def critique(self, query_id: str = "q", **fields: Any) -> CritiqueResult:
        found: CritiqueResult = await self.frontend.hears(CritiqueResult, query_id=query_id, **fields)
        return found

    async def done(self, answers: int) -> None:
        """The critic is through with so many answers."""
        await self.frontend.until(
            lambda: answers == sum(len(ack.numbers) for ack in self.frontend.of(JournalAck, consumer="critic"))
        )

    def _sleep(self, seconds: float) -> Awaitable[None]:
        self.waits.append(seconds)
        return _nothing()


async def _nothing() -> None:
    pass


@pytest.fixture
async def critics(stage: Any, monkeypatch: pytest.MonkeyPatch) -> Critics:
    monkeypatch.setattr(quiet_period, "QUIET_SECONDS", 0.0)
    for module in (leases, quiet_period):
        monkeypatch.setattr(module, "BEAT_SECONDS", 0.02)
    monkeypatch.setattr(quiet_period, "SILENT_SECONDS", 0.5)  # until the claim of a killed critic lapses
    await stage.serve(Arbiter(ArbiterConfig(slots=1)))
    return Critics(stage)
