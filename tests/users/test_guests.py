"""What users besides the owner may use: models, room and tokens, as far as api.yaml allows."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from local.bus.envelope import Envelope
from local.bus.message import ErrorInfo
from local.core.users import Users
from local.models.messages import ModelRecord, ModelRequest, ModelResult
from local.runtime.participant import on
from tests.api.hand_played import HandPlayed

System = Any  # of conftest.py
HERE = ModelRecord(id="mine", name="mine", server="ollama", provider="ollama")
CLOUD = ModelRecord(id="big:cloud", name="big:cloud", server="ollama", provider="ollama")
PAID = ModelRecord(id="paid/gpt", name="gpt", server="openai", provider="paid")
NEAR = ModelRecord(id="lan/qwen", name="qwen", server="openai", provider="lan")
PROVIDERS = """
providers:
  ollama: {kind: ollama, allow_cloud: true}
  paid: {kind: openai, url: "https://models.example.org/v1", allow_cloud: true}
  lan: {kind: openai, url: "http://192.168.1.9:8000/v1"}
"""


class Keeper(HandPlayed):
    """A model manager with these models, the first of which answers by default."""

    name = "model_keeper"

    def __init__(self, *models: ModelRecord) -> None:
        super().__init__()
        self.models = (models[0].model_copy(update={"default": True}), *models[1:])

    @on(ModelRequest)
    async def answer(self, request: ModelRequest, envelope: Envelope) -> ModelResult:
        if request.verb == "list":
            return ModelResult(verb="list", models=self.models)
        found = tuple(each for each in self.models if each.id == request.model)
        error = None if found else ErrorInfo(kind="not_found", message=f"there is no {request.model}")
        return ModelResult(verb=request.verb, models=found, error=error)


@asynccontextmanager
async def frontend(system: System, *models: ModelRecord, **users: Any) -> AsyncIterator[tuple[httpx.AsyncClient, Any]]:
    """A client, and the headers of the user ann."""
    folder = system.journal_file.parent
    (folder / "models.yaml").write_text(PROVIDERS)
    ann = {"authorization": f"Bearer {Users(folder).add('ann')}"}
    settings = {"users": users} if users else {}
    async with system.frontend(**settings) as client, system.host(Keeper(*models or (HERE,))):
        while not (await client.get("/models")).is_success:  # until the frontend has heard of it
            pass
        yield client, ann


async def statuses(client: httpx.AsyncClient, headers: Any, model: str | None) -> set[int]:
    """How each way of asking a model is answered."""
    said = {"messages": [{"role": "user", "content": "hello"}]}
    bodies = ("/query", {"query": "hello"}), ("/v1/chat/completions", {"model": "local2", **said})
    named = {} if model is None else {"model": model}
    return {(await client.post(path, json=body | named, headers=headers)).status_code for path, body in bodies}


async def test_a_user_may_choose_the_models_of_the_owner_s_machines_and_no_paid_one(system: System) -> None:
    async with frontend(system, HERE, CLOUD, PAID, NEAR) as (client, ann):
        for model, expected in ((None, 200), ("mine", 200), ("lan/qwen", 200), ("paid/gpt", 403), ("big:cloud", 403)):
            assert await statuses(client, ann, model) == {expected}, model
            assert await statuses(client, {}, model) == {200}, model
        listed = (await client.get("/models", headers=ann)).json()
        assert [each["id"] for each in listed["models"]] == ["mine", "lan/qwen"]
        refused = await client.post("/query", json={"query": "hello", "model": "paid/gpt"}, headers=ann)
        assert "users.models in api.yaml" in refused.json()["error"]["message"]


@pytest.mark.parametrize(
    ("allowed", "expected"),
    [(["default", "local"], 200), (["local"], 403), (["*"], 200), (["paid/gpt"], 200), ([], 403)],
)
async def test_a_paid_model_answers_by_default_only_if_it_is_allowed(
    system: System, allowed: list[str], expected: int
) -> None:
    async with frontend(system, PAID, HERE, models=allowed) as (client, ann):
        assert await statuses(client, ann, None) == {expected}
        assert await statuses(client, {}, None) == {200}
        assert await statuses(client, ann, "mine") == {200 if {"local", "*"} & {*allowed} else 403}


async def test_a_user_s_tokens_of_a_day_are_limited_and_the_owner_s_are_not(system: System) -> None:
    async with frontend(system, tokens_a_day=5) as (client, ann):
        for headers, query_id in ((ann, "q1"), ({}, "q2")):
            asked = await client.post("/query", json={"query": "hello", "query_id": query_id}, headers=headers)
            assert asked.status_code == 200
        await system.on_record("q1", "q2")
        assert await statuses(client, ann, None) == {429} and await statuses(client, {}, None) == {200}
        [budget] = (await client.get("/usage", headers=ann)).json()["budgets"]
        assert (budget["of"], budget["spent"], budget["limit"]) == ("user", 10, 5)


async def test_what_is_stored_of_a_user_has_a_limit_whichever_way_it_comes(system: System) -> None:
    picture = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(700_000)).decode()
    parts = [
        {"type": "text", "text": "What is it?"},
        {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{picture}"}},
    ]
    async with frontend(system, megabytes=1) as (client, ann):
        sent = await client.post("/attachments?name=a.txt", content=b"word " * 60_000, headers=ann)
        assert sent.status_code == 201
        over = (
            ("/attachments?name=b.txt", {"content": b"more " * 160_000}),
            ("/v1/chat/completions", {"json": {"model": "local2", "messages": [{"role": "user", "content": parts}]}}),
        )
        for path, body in over:
            refused = await client.post(path, headers=ann, **body)
            assert refused.status_code == 413 and "of your 1 MB" in refused.json()["error"]["message"], path
        assert (await client.post(*over[0][:1], **over[0][1])).status_code == 201  # the owner's
        await client.delete(f"/attachments/{sent.json()['id']}", headers=ann)
        assert (await client.post(over[0][0], headers=ann, **over[0][1])).status_code == 201


async def test_a_small_file_of_large_conversations_is_not_imported_beyond_the_limit(system: System) -> None:
    asked = [{"role": "user", "content": f"{number} " + "x" * 400_000} for number in range(4)]
    content = json.dumps({"id": "w", "title": "Tea", "chat": {"messages": asked}}).encode()
    async with frontend(system, megabytes=1) as (client, ann):
        refused = await client.post("/sessions/import?preview=true", content=content, headers=ann)
        assert refused.status_code == 413 and "this needs 1.6 MB" in refused.json()["error"]["message"]
        assert (await client.post("/sessions/import?preview=true", content=content)).status_code == 200
        fits = json.dumps({"id": "v", "title": "Tea", "chat": {"messages": asked[:2]}}).encode()
        for _ in range(3):  # to look at a file takes no room
            looked = await client.post("/sessions/import?preview=true", content=fits, headers=ann)
            assert looked.status_code == 200 and looked.json()["new"] == 1
