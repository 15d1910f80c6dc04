"""The routes under /goals and /monologue, with a reflection that is played by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from local.bus.envelope import Envelope, Trace
from local.bus.message import ErrorInfo
from local.core.config import Settings
from local.reflection.messages import (
    GoalRecord,
    GoalRequest,
    GoalResult,
    MonologueThought,
    RoutineRecord,
    RoutineRequest,
    RoutineResult,
)
from local.runtime.participant import Participant, on

System = Any  # of conftest.py
GOAL = GoalRecord(
    goal_id="g", text="Swim", schedule="every 1d", time_zone="UTC", state="active", created_at=1.0, created_by="api",
    words="Swim!", words_at=5.0, is_seen=False,
)  # fmt: skip


class Reflection(Participant):
    """Has one goal and thinks of one thing."""

    name = "reflection"
    publishes = (MonologueThought,)

    def __init__(self) -> None:
        super().__init__(Settings())
        self.asked: list[GoalRequest] = []

    @on(RoutineRequest)
    async def answer(self, request: RoutineRequest, envelope: Envelope) -> RoutineResult:
        state = RoutineRecord(is_on=request.verb != "off", why=request.routine, tokens_today=7, tokens_per_day=9)
        return RoutineResult(verb=request.verb, state=state)

    @on(GoalRequest)
    async def answer_of_goals(self, request: GoalRequest, envelope: Envelope) -> GoalResult:
        self.asked.append(request)
        if request.goal_id == "none":
            return GoalResult(verb=request.verb, error=ErrorInfo(kind="not_found", message="there is no goal 'none'"))
        return GoalResult(verb=request.verb, goals=(GOAL,))


@pytest.fixture
async def reflection(system: System) -> AsyncIterator[Reflection]:
    made = Reflection()
    async with system.host(made):
        yield made


async def test_goals_are_listed_set_changed_and_seen(client: httpx.AsyncClient, reflection: Reflection) -> None:
    listed = (await client.get("/goals")).json()
    assert (listed["why"], listed["tokens_today"], listed["goals"][0]["words"]) == ("heartbeat", 7, "Swim!")
    made = await client.post("/goals", json={"text": "Swim", "schedule": "every 2d", "by": "page"})
    assert (made.status_code, made.json()["goal_id"]) == (201, "g")
    for body in ({"state": "done"}, {"state": "dropped"}, {"state": "active"}, {"seen": 5.0}):
        assert (await client.patch("/goals/g", json=body)).status_code == 200
    said = [(each.verb, each.text, each.schedule, each.by, each.words_at) for each in reflection.asked[1:]]
    assert said == [
        ("set", "Swim", "every 2d", "page", 0.0), ("done", "", "", "api", 0.0), ("drop", "", "", "api", 0.0),
        ("reopen", "", "", "api", 0.0), ("seen", "", "", "", 5.0),
    ]  # fmt: skip
    assert (await client.post("/goals/off")).json()["is_on"] is False


@pytest.mark.usefixtures("reflection")
async def test_what_cannot_be_is_refused_in_one_line(client: httpx.AsyncClient) -> None:
    assert (await client.patch("/goals/none", json={"state": "done"})).status_code == 404
    nothing = await client.patch("/goals/g", json={})
    assert (nothing.status_code, nothing.json()["error"]["message"]) == (
        422,
        "state or seen: one of them is required",
    )
    assert (await client.patch("/goals/g", json={"state": "won"})).status_code == 422
    assert (await client.post("/goals", json={"text": "x" * 1001})).status_code == 422
    assert (await client.post("/goals/never")).status_code == 422


async def test_thoughts_are_read_from_the_record_the_latest_first(
    client: httpx.AsyncClient, reflection: Reflection
) -> None:
    for number in range(3):
        thought = MonologueThought(thought_id=f"t{number}", text=f"{number}", sources=("e",), left_out=1, model="m")
        await reflection.bus.publish(thought, Trace(f"t{number}"))
    listed = (await client.get("/monologue?limit=2")).json()
    assert (listed["why"], [each["text"] for each in listed["thoughts"]]) == ("monologue", ["2", "1"])
    assert (listed["thoughts"][0]["sources"], listed["thoughts"][0]["left_out"]) == (["e"], 1)
    assert (await client.post("/monologue/off")).json()["is_on"] is False
