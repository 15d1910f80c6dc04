"""The system itself over HTTP: participants and models, with the owner's token."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from local.bus.envelope import Envelope
from local.bus.message import ErrorInfo
from local.bus.messages import ChildStatus, ParticipantRequest, ParticipantResult
from local.core.data_dir import make_owner_token
from local.models.messages import ModelProgress, ModelRecord, ModelRequest, ModelResult
from local.runtime.participant import on
from tests.api.hand_played import HandPlayed

System = Any  # of conftest.py
MODEL = ModelRecord(name="gemma4:12b", server="ollama", size=8_000, current=True)


class Supervisor(HandPlayed):
    """Records its requests."""

    name = "supervisor"

    @on(ParticipantRequest)
    async def have(self, request: ParticipantRequest, envelope: Envelope) -> ParticipantResult:
        if request.name == "nobody":
            error = ErrorInfo(kind="unknown_participant", message="there is no participant nobody")
            return ParticipantResult(verb=request.verb, error=error)
        child = ChildStatus(name=request.name, kind="participant", state=request.verb)
        return ParticipantResult(verb=request.verb, child=child)


class Stock(HandPlayed):
    """Has one model, and pulls another."""

    name = "model_keeper"
    publishes = (ModelProgress,)

    @on(ModelRequest)
    async def answer(self, request: ModelRequest, envelope: Envelope) -> ModelResult:
        if request.verb == "find" and request.model == "judge":
            return ModelResult(verb="find", error=ErrorInfo(kind="bad_model", message="it judges answers"))
        if request.verb == "find" and request.model == "small":
            return ModelResult(verb="find", models=(ModelRecord(name="small", server="ollama", id="box/small"),))
        if request.model == "missing":
            return ModelResult(verb=request.verb, error=ErrorInfo(kind="model_missing", message="missing is not here"))
        pull = ModelProgress(model=request.model, status="pulling", completed=1, total=2)
        if request.verb == "pull":
            self.bus.post(pull)
        pulls = (pull,) if request.verb in ("pull", "stop") else ()
        return ModelResult(verb=request.verb, models=(MODEL,), pulls=pulls, chosen="ollama/gemma4:12b")


@pytest.fixture
async def owner(system: System) -> AsyncIterator[httpx.AsyncClient]:
    token = make_owner_token(system.journal_file.parent)
    async with system.frontend() as client, system.host(Supervisor()), system.host(Stock()):
        client.headers["authorization"] = f"Bearer {token}"
        yield client


@pytest.mark.parametrize("verb", ["start", "stop", "restart"])
async def test_the_supervisor_is_asked_and_its_answer_given(owner: httpx.AsyncClient, verb: str) -> None:
    done = await owner.post(f"/participants/web_search/{verb}")
    assert (done.status_code, done.json()["participant"]["state"]) == (200, verb)
    missing = await owner.post(f"/participants/nobody/{verb}")
    assert (missing.status_code, missing.json()["error"]["kind"]) == (404, "not_found")


async def test_models_are_listed_chosen_and_pulled(owner: httpx.AsyncClient) -> None:
    listed = (await owner.get("/models")).json()
    assert (listed["models"][0]["name"], listed["current"], listed["pulls"]) == ("gemma4:12b", "ollama/gemma4:12b", [])
    chosen = await owner.put("/models/current", json={"name": "gemma4:12b"})
    assert (chosen.json()["model"]["name"], chosen.json()["restart_needed"]) == ("gemma4:12b", ["system"])
    stopped = await owner.post("/models/pull/stop", json={"name": "gemma4:e2b"})
    assert stopped.json()["pull"]["model"] == "gemma4:e2b"
    for method, path in (("PUT", "/models/current"), ("POST", "/models/pull"), ("POST", "/models/pull/stop")):
        missing = await owner.request(method, path, json={"name": "missing"})
        assert (missing.status_code, missing.json()["error"]["kind"]) == (404, "not_found")
        assert (await owner.request(method, path, json={"name": " "})).status_code == 422


async def test_how_a_pull_goes_on_is_told_on_the_owner_s_streams(owner: httpx.AsyncClient, events_of: Any) -> None:
    async with owner.stream("GET", "/stream?id=stream-of-a-test") as response:
        events = events_of(response)
        assert (await anext(events))[0] == "hello"
        await owner.post("/stream/stream-of-a-test", json={"list": True})
        assert (await owner.post("/models/pull", json={"name": "gemma4:e2b"})).status_code == 202
        name, _, data = await anext(events)
    assert (name, data["name"], data["completed"], data["total"]) == ("pull", "gemma4:e2b", 1, 2)


async def test_a_query_names_its_model_and_is_refused_before_it_is_asked(
    owner: httpx.AsyncClient, system: System
) -> None:
    asked = {"query": "hello", "wait": False}
    for name, status, kind in (("missing", 404, "not_found"), ("judge", 422, "bad_model")):
        refused = await owner.post("/query", json={**asked, "model": name})
        assert (refused.status_code, refused.json()["error"]["kind"]) == (status, kind)
        assert refused.json()["error"]["message"].startswith("model: ")
    assert not system.generator.turns
    for name, chosen in (("small", "box/small"), ("default", "default")):
        answered = await owner.post("/query", json={**asked, "model": name, "wait": True})
        options = system.generator.turns[answered.json()["query_id"]].options
        assert options is not None and options.model == chosen


async def test_a_completion_names_its_model_by_an_alias_too(system: System) -> None:
    chat = {"messages": [{"role": "user", "content": "hello"}]}
    aliases = {"gpt-4o": "default", "gpt-4o-mini": "small"}
    async with system.frontend(openai_aliases=aliases) as client, system.host(Stock()):
        refused = await client.post("/v1/chat/completions", json={**chat, "model": "missing"})
        assert (refused.status_code, refused.json()["error"]["code"]) == (404, "not_found")
        wanted = (("small", "box/small"), ("gpt-4o", "default"), ("gpt-4o-mini", "box/small"), ("local2", None))
        for name, chosen in wanted:
            system.generator.turns.clear()
            answer = (await client.post("/v1/chat/completions", json={**chat, "model": name})).json()
            assert answer["model"] == "gemma4:12b", "the one that has answered"
            [asked] = system.generator.turns.values()
            assert asked.options is not None and asked.options.model == chosen
        chunks = (await client.post("/v1/chat/completions", json={**chat, "model": "small", "stream": True})).text
        named = [json.loads(line[6:])["model"] for line in chunks.splitlines() if line.startswith("data: {")]
        assert (named[0], named[-1]) == ("box/small", "gemma4:12b")


async def test_without_a_keeper_models_are_not_to_be_had(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("local.api.clients.UNSEEN_SECONDS", 0.05)
    refused = await client.get("/models")
    assert (refused.status_code, refused.json()["error"]["kind"]) == (503, "unavailable")


async def test_settings_are_listed_shown_and_changed(owner: httpx.AsyncClient, system: System) -> None:
    listed = {row["name"]: row["read_by"] for row in (await owner.get("/settings")).json()["settings"]}
    assert listed["generator"][0] == "generator" and listed["system"] == ["system"]
    changed = await owner.put("/settings/generator", json={"values": {"num_ctx": 16_000}})
    assert (changed.status_code, changed.json()["values"]["num_ctx"]) == (200, 16_000)
    assert (system.journal_file.parent / "generator.yaml").read_text() == "num_ctx: 16000\n"
    shown = (await owner.get("/settings/generator")).json()
    assert shown["values"]["num_ctx"] == 16_000 and shown["schema"]["properties"]["num_ctx"]
    for body, status in (({"values": {"num_ctx": "many"}}, 422), ({"values": {}}, 422), ({}, 422)):
        assert (await owner.put("/settings/generator", json=body)).status_code == status
    assert (await owner.get("/settings/nobody")).status_code == 404
    del owner.headers["authorization"]
    assert (await owner.put("/settings/generator", json={"values": {"num_ctx": 1}})).status_code == 401


async def test_secrets_are_stored_and_removed_and_never_told(owner: httpx.AsyncClient, system: System) -> None:
    assert (
        await owner.put("/settings/web_search", json={"values": {"brave_api_key": "secret:brave"}})
    ).status_code == 200
    [missing] = (await owner.get("/secrets")).json()["secrets"]
    assert missing == {"name": "brave", "set_at": None, "used_by": ["web_search.brave_api_key"]}
    stored = await owner.put("/secrets/brave", json={"value": "canary-1234"})
    listed = await owner.get("/secrets")
    assert stored.json() == {"name": "brave"} and listed.json()["secrets"][0]["set_at"]
    short = await owner.put("/secrets/brave", json={"value": "canary"})
    assert (short.status_code, short.json()["error"]["message"].count("canary")) == (422, 0)
    shown = await owner.get("/settings/web_search")
    assert not [each for each in (stored, listed, shown) if "canary" in each.text]
    assert (await owner.delete("/secrets/brave")).status_code == 200
    assert (await owner.delete("/secrets/brave")).status_code == 404
    reset = await owner.put("/settings/web_search", json={"reset": ["brave_api_key"]})
    assert reset.json()["values"]["brave_api_key"] is None and (await owner.get("/secrets")).json() == {"secrets": []}
    del owner.headers["authorization"]
    assert (await owner.put("/secrets/brave", json={"value": "canary-1234"})).status_code == 401
