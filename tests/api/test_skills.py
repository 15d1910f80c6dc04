"""The routes under /skills, with a test double of the skill service."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from local.bus.envelope import Envelope
from local.bus.message import ErrorInfo
from local.core.data_dir import make_owner_token
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


async def test_a_skill_of_the_owner_s_is_edited_and_its_versions_are_kept(
    client: httpx.AsyncClient, system: System
) -> None:
    client.headers["authorization"] = f"Bearer {make_owner_token(system.journal_file.parent)}"
    assert (await client.post("/skills", json={"name": "tides", "description": "Tell the tides."})).status_code == 201
    text = (await client.get("/skills/tides/source")).json()["text"]
    assert text.startswith("---\nname: tides\n")
    for wrong in ("nothing", text.replace("tides", "other", 1), "---\nname: tides\ndescription: d\n---"):
        refused = await client.put("/skills/tides/source", json={"text": wrong})
        assert (refused.status_code, refused.json()["error"]["kind"]) == (422, "invalid")
    changed = text.replace("What to do first.", "Look at the moon.")
    assert (await client.put("/skills/tides/source", json={"text": changed})).json()["text"] == changed
    assert (await client.get("/skills/tides/source")).json()["text"] == changed
    versions = (await client.get("/skills/tides/proposal")).json()["versions"]
    assert [version["text"] for version in versions] == [changed, text]
    assert (await client.get("/skills/..%2Ftides/source")).status_code == 404
    assert (await client.put("/skills/none/source", json={"text": changed})).status_code == 404
