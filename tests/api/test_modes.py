"""`mode` of POST /query: elevated modes need the owner's token, and bypassPermissions also the owner's setting."""

from __future__ import annotations

from typing import Any

import pytest

from local.core.users import Users

System = Any  # of conftest.py
TOKEN = {"Authorization": "Bearer the-owners"}


@pytest.fixture(autouse=True)
def token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL2_API_TOKEN", "the-owners")


@pytest.mark.parametrize("mode", ["acceptEdits", "bypassPermissions"])
async def test_a_looser_mode_wants_the_token_whoever_connects(system: System, mode: str) -> None:
    async with system.frontend() as client:
        refused = await client.post("/query", json={"query": "hello", "mode": mode})
    assert (refused.status_code, refused.json()["error"]["kind"]) == (401, "unauthorized")
    assert "the file api_token in the data directory" in refused.json()["error"]["message"]
    assert system.generator.turns == {}


async def test_bypass_wants_the_owners_setting_too(system: System) -> None:
    async with system.frontend() as client:
        body = {"query": "hello", "mode": "bypassPermissions"}
        refused = await client.post("/query", json=body, headers=TOKEN)
    assert (refused.status_code, refused.json()["error"]["kind"]) == (403, "forbidden")
    assert "may_bypass: true" in refused.json()["error"]["message"]
    assert system.generator.turns == {}


async def test_with_the_token_or_stricter_the_turn_has_its_mode(system: System) -> None:
    async with system.frontend() as client:
        for query_id, mode, headers in (("q1", "acceptEdits", TOKEN), ("q2", "plan", {}), ("q3", None, {})):
            body = {"query": "hello", "query_id": query_id, "mode": mode}
            assert (await client.post("/query", json=body, headers=headers)).status_code == 200
    turns = system.generator.turns
    assert [turns[each].options.mode for each in ("q1", "q2", "q3")] == ["acceptEdits", "plan", "dontAsk"]


async def test_only_the_owner_approves_a_plan_so_that_edits_need_no_leave(system: System) -> None:
    user = {"Authorization": f"Bearer {Users(system.journal_file.parent).add('ann')}"}
    body = {"decision": "allow", "mode": "acceptEdits"}
    told = []
    async with system.frontend() as client:
        for headers in ({}, user):
            refused = await client.post("/approvals/q1:0:0", json=body, headers=headers)
            told.append((refused.status_code, refused.json()["error"]["kind"]))
        wrong = await client.post("/approvals/q1:0:0", json={**body, "mode": "bypassPermissions"}, headers=TOKEN)
    assert told == [(401, "unauthorized"), (403, "forbidden")]
    assert wrong.status_code == 422
