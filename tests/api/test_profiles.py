"""A query may name a profile; what that says travels with it."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from local.api.profiles import with_profile
from local.bus.messages import AnswerOptions, ParticipantStatus
from local.core.data_dir import make_owner_token
from local.core.profiles import AssistantProfile
from local.core.users import Users

System = Any  # of conftest.py
OWN = "---\nname: reviewer\ndescription: It reviews.\ntools: [read_file]\ntemperature: 0.1\nmax_tokens: 50\n---\nOK."


@pytest.fixture
def reviewer(system: System) -> None:
    folder = system.journal_file.parent / "agents"
    folder.mkdir()
    (folder / "reviewer.md").write_text(OWN)
    (folder / "broken.md").write_text("---\nname: broken\n---\n")


async def test_what_a_profile_says_is_in_the_query(client: httpx.AsyncClient, system: System, reviewer: None) -> None:
    body = {"query": "hello", "query_id": "q1", "profile": "reviewer"}
    assert (await client.post("/query", json=body)).status_code == 200
    options = system.generator.turns["q1"].options
    profile = options.profile
    assert (profile.name, profile.tools, profile.instructions) == ("reviewer", ("read_file",), "OK.")
    assert (options.temperature, options.max_tokens, options.mode) == (0.1, 50, "dontAsk")


async def test_a_name_that_there_is_not_is_refused_with_the_one_that_was_meant(
    client: httpx.AsyncClient, system: System
) -> None:
    refused = await client.post("/query", json={"query": "hello", "profile": "genral"})
    error = refused.json()["error"]
    assert (refused.status_code, error["kind"]) == (422, "invalid")
    assert error["message"] == "profile: there is no profile 'genral'; did you mean general?"
    assert system.generator.turns == {}


async def test_profiles_are_listed_with_what_is_wrong_with_the_others(
    client: httpx.AsyncClient, reviewer: None
) -> None:
    found = (await client.get("/profiles")).json()
    assert {"general", "code", "reviewer"} <= {each["name"] for each in found["profiles"]}
    assert [each["aliases"] for each in found["profiles"] if each["name"] == "general"] == [
        ["general-purpose", "generalist"]
    ]
    [problem] = found["problems"]
    assert "broken.md:1: " in problem


async def test_each_profile_is_a_model_s_name_for_clients_of_openai_s_api(
    client: httpx.AsyncClient, system: System, reviewer: None
) -> None:
    async with system.bus("generator") as bus:
        await bus.ready()
        details = {"model": "gemma4:12b"}
        beat = ParticipantStatus(name="generator", kind="agent", pid=1, instance="i", state="ready", details=details)
        assert bus.post(beat)
        names = {each["id"] for each in (await client.get("/v1/models")).json()["data"]}
        assert {"local2:remember", "local2:reviewer", "local2:web"} <= names
        assert (await client.get("/v1/models/local2:reviewer")).status_code == 200
    asked = {"messages": [{"role": "user", "content": "hello"}]}
    assert (await client.post("/v1/chat/completions", json={"model": "local2:generalist", **asked})).status_code == 200
    answered = await client.post("/v1/chat/completions", json={"model": "local2:reviewer", "max_tokens": 20, **asked})
    assert answered.status_code == 200
    general, options = (turn.options for turn in system.generator.turns.values())
    assert general.profile.name == "general" and general.profile.tools is None
    assert (options.profile.name, options.max_tokens, options.remember) == ("reviewer", 20, False)
    refused = await client.post("/v1/chat/completions", json={"model": "local2:nobody", **asked})
    assert (refused.status_code, refused.json()["error"]["param"]) == (404, "model")


def test_what_the_asker_says_comes_before_what_a_profile_says() -> None:
    profile = AssistantProfile("x", "It is.", None, temperature=0.1, max_tokens=100)
    options = with_profile(AnswerOptions(temperature=0.9, max_tokens=500), profile)
    assert (options.temperature, options.max_tokens) == (0.9, 100)


async def test_another_user_meets_no_profile_of_the_owner_s_that_is_not_shared(
    client: httpx.AsyncClient, system: System, reviewer: None
) -> None:
    folder = system.journal_file.parent
    garden = OWN.replace("reviewer", "garden").replace("tools:", "shared: true\ntools:")
    (folder / "agents" / "garden.md").write_text(garden)
    ann = {"authorization": f"Bearer {Users(folder).add('ann')}"}
    said = [{"role": "user", "content": "hello"}]
    for path, body in (
        ("/query", {"query": "hello", "profile": "reviewer"}),
        ("/v1/chat/completions", {"model": "local2:reviewer", "messages": said}),
        ("/query", {"query": "hello", "profile": "garden", "query_id": "q1"}),
    ):
        answered = await client.post(path, json=body, headers=ann)
        assert (answered.status_code == 200) == ("garden" in str(body)), answered.text
        assert "OK." not in answered.text
    listed = await client.get("/profiles", headers=ann)
    assert "garden" in listed.text and "reviewer" not in listed.text and str(folder) not in listed.text
    assert "reviewer" not in (await client.get("/v1/models", headers=ann)).text
    assert [turn.options.profile.name for turn in system.generator.turns.values()] == ["garden"]
    assert str(folder) not in (await client.get("/journal?query=q1", headers=ann)).text


async def test_the_owner_writes_a_profile_and_removes_it(client: httpx.AsyncClient, system: System) -> None:
    body = {"description": "It reviews.", "tools": ["read_file"], "instructions": "Be brief."}
    assert (await client.put("/profiles/reviewer", json=body)).status_code == 401
    client.headers["authorization"] = f"Bearer {make_owner_token(system.journal_file.parent)}"
    assert (await client.put("/profiles/reviewer", json=body)).json()["is_own"] is True
    shown = (await client.get("/profiles/reviewer")).json()
    assert (shown["instructions"], shown["tools"], shown["model"]) == ("Be brief.", ["read_file"], None)
    assert (await client.put("/profiles/remember", json=body)).status_code == 422
    assert (await client.put("/profiles/Not A Name", json=body)).status_code == 422
    assert (await client.delete("/profiles/reviewer")).json() == {"name": "reviewer", "removed": True}
    assert (await client.get("/profiles/reviewer")).status_code == 404
