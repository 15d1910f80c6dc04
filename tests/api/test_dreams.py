"""The routes under /dreams, with a dreamer and a memory that are played by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from local.bus.envelope import Envelope
from local.memory.messages import EngramRecord, MemoryRequest, MemoryResult
from local.reflection.messages import RoutineRecord, RoutineRequest, RoutineResult
from local.runtime.participant import on
from tests.api.hand_played import HandPlayed

System = Any  # of conftest.py


class Reflection(HandPlayed):
    """Can be switched."""

    name = "reflection"
    is_on = True

    @on(RoutineRequest)
    async def answer(self, request: RoutineRequest, envelope: Envelope) -> RoutineResult:
        self.is_on = self.is_on if request.verb in ("status", "now") else request.verb == "on"
        assert request.routine == "dreamer"
        return RoutineResult(verb=request.verb, state=RoutineRecord(is_on=self.is_on, tokens_today=7, tokens_per_day=9))


class Memory(HandPlayed):
    """Has a dream and a note."""

    name = "memory"

    @on(MemoryRequest)
    async def answer(self, request: MemoryRequest, envelope: Envelope) -> MemoryResult:
        return MemoryResult(verb=request.verb, engrams=(note("n1", "dream", recalled=("e1",)), note("n2", "cabin")))


def note(engram_id: str, category: str, **fields: Any) -> EngramRecord:
    return EngramRecord(
        engram_id=engram_id, query_id="d:0", respondent_id="A", session_id="d", query=category, answer="The roof.",
        origin="assistant", asked_at=5.0, note_of="d", **fields,
    )  # fmt: skip


@pytest.fixture
async def night(system: System) -> AsyncIterator[None]:
    async with system.host(Reflection()), system.host(Memory()):
        yield


@pytest.mark.usefixtures("night")
async def test_dreams_are_listed_with_their_sources_and_switched(client: httpx.AsyncClient) -> None:
    listed = (await client.get("/dreams")).json()
    assert (listed["is_on"], listed["tokens_today"], listed["tokens_per_day"]) == (True, 7, 9)
    assert listed["dreams"] == [
        {"engram_id": "n1", "dream_id": "d", "text": "The roof.", "sources": ["e1"], "until": 5.0}
    ]
    assert (await client.post("/dreams/off")).json()["is_on"] is False
    assert (await client.post("/dreams/now")).json()["is_on"] is False
    assert (await client.post("/dreams/on")).json()["is_on"] is True
    assert (await client.post("/dreams/never")).status_code == 422


async def test_where_nobody_dreams_the_answer_says_how_to_have_it(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("local.api.clients.UNSEEN_SECONDS", 0.05)
    answer = await client.get("/dreams")
    assert answer.status_code == 503
    assert "`reflection` is among the `participants`" in answer.json()["error"]["message"]
