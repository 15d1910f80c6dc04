"""The routes under /skills, with a test double of the skill service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from local.bus.envelope import Envelope
from local.bus.message import ErrorInfo
from local.runtime.participant import on
from local.skills.messages import SkillRecord, SkillRequest, SkillResult
from tests.api.hand_played import HandPlayed

System = Any  # of conftest.py
TIDES: dict[str, Any] = {
    "name": "tides", "status": "ready", "place": "settings", "folder": "/s/tides", "description": "Tell the tides.",
    "error": "", "missing": [], "compatibility": "", "license": "", "tools": "",
}  # fmt: skip


class Holder(HandPlayed):
    """Holds one skill that is ready."""

    name = "files"

    @on(SkillRequest)
    async def answer(self, request: SkillRequest, envelope: Envelope) -> SkillResult:
        if request.verb == "show" and request.name != "tides":
            return SkillResult(verb="show", error=ErrorInfo(kind="not_found", message="there is no such skill"))
        skill = SkillRecord.model_validate(TIDES)
        text = "Look at the moon." if request.verb == "show" else ""
        return SkillResult(verb=request.verb, skills=(skill,), places=("/s",), text=text)


@pytest.fixture
async def holder(system: System) -> AsyncIterator[None]:
    async with system.host(Holder()):
        yield


@pytest.mark.usefixtures("holder")
async def test_skills_are_listed_and_one_is_shown(client: httpx.AsyncClient) -> None:
    listed = await client.get("/skills")
    assert (listed.status_code, listed.json()) == (
        200,
        {"skills": [TIDES], "places": ["/s"], "proposed": [], "versioned": []},
    )
    shown = await client.get("/skills/tides")
    assert (shown.status_code, shown.json()) == (200, {**TIDES, "text": "Look at the moon.", "files": []})
    missing = await client.get("/skills/nothing")
    assert (missing.status_code, missing.json()["error"]["kind"]) == (404, "not_found")


async def test_where_nobody_holds_skills_the_answer_says_how_to_have_it(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("local.api.clients.UNSEEN_SECONDS", 0.05)
    answer = await client.get("/skills")
    assert answer.status_code == 503
    assert "`files` is among the `participants`" in answer.json()["error"]["message"]
