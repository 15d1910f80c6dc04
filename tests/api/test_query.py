"""POST /query and its relatives, without events."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx
import pytest

from local.bus.blobs import BlobStore

System = Any  # of conftest.py
NO_FIELD = "there is no such field; GET /openapi.json describes those there are"


async def test_a_whole_answer_has_everything_that_led_to_it(client: httpx.AsyncClient) -> None:
    answer = await client.post("/query", json={"query": "tool please", "session_id": "s", "query_id": "q"})
    assert answer.status_code == 200
    body = answer.json()
    log = body.pop("event_log")
    assert body == {
        "query_id": "q",
        "session_id": "s",
        "status": "answered",
        "answer": "Hi there.",
        "thinking": "Let me see.",
        "context": None,
        "tool_calls": [
            {
                "call_id": "q:0:0",
                "tool": "dice",
                "args": {"sides": 6},
                "result": "4",
                "error": None,
                "sources": [],
                "links": [],
                "tainted": False,
                "folder": "",
                "whole": None,
                "after_taint": False,
                "recalled": [],
                "undoable": False,
                "denied_by": "",
                "duration_ms": 0.0,
            }
        ],
        "todo": [],
        "plan": None,
        "model": "gemma4:12b",
        "usage": {
            "prompt_tokens": 7,
            "completion_tokens": 3,
            "durations": {},
            "context": None,
            "steps": [],
            "totals": None,
        },
        "degraded": [],
        "error": None,
        "scores": {"critique": None, "pairwise": None, "rating": None},
        "events": [
            "query.received",
            "query.accepted",
            "agent.transition",
            "generation.thinking",
            "tool.request.dice",
            "tool.result.dice",
            "generation.token",
            "response.generation",
        ],
    }
    assert log[6]["subject"] == "generation.token" and log[6]["count"] == 2
    assert sorted(line["t"] for line in log) == [line["t"] for line in log]


async def test_without_ids_they_are_made(client: httpx.AsyncClient) -> None:
    body = (await client.post("/query", json={"query": "hello"})).json()
    assert len(body["query_id"]) == 32 and body["session_id"] == body["query_id"]


@pytest.mark.parametrize("incognito", [True, False])
async def test_a_query_is_incognito_if_it_says_so(client: httpx.AsyncClient, system: System, incognito: bool) -> None:
    await client.post("/query", json={"query": "hello", "query_id": "q"} | ({"incognito": True} if incognito else {}))
    assert system.generator.turns["q"].incognito is incognito


async def test_without_waiting_the_ids_come_as_soon_as_it_is_accepted(client: httpx.AsyncClient) -> None:
    asked = await client.post("/query", json={"query": "hold on", "query_id": "q", "session_id": "s", "wait": False})
    assert (asked.status_code, asked.json()) == (202, {"query_id": "q", "session_id": "s"})
    so_far = (await client.get("/query/q")).json()
    assert (so_far["status"], so_far["query"]) == ("open", "hold on")


async def test_a_query_can_be_looked_at_while_it_runs_and_after(client: httpx.AsyncClient, system: System) -> None:
    asking = asyncio.create_task(client.post("/query", json={"query": "hold on", "query_id": "q"}))
    await system.generator.heard.wait()
    await client.post("/query", json={"query": "hold on", "query_id": "q", "wait": False})
    assert (await client.get("/query/q")).json()["status"] == "open"
    system.generator.release.set()
    answer = (await asking).json()
    assert (await client.get("/query/q")).json() == answer


async def test_a_query_of_an_earlier_process_is_looked_up_in_the_record(system: System) -> None:
    async with system.frontend() as client:
        answer = (await client.post("/query", json={"query": "hello", "query_id": "q", "session_id": "s"})).json()
        await client.post("/query", json={"query": "hold on", "query_id": "open", "wait": False})
    async with system.frontend() as client:
        from_record = (await client.get("/query/q")).json()
        assert from_record == answer | {"events": [], "event_log": []}
        assert (await client.get("/query/open")).json()["status"] == "open"
        assert (await client.get("/query/never")).status_code == 404


async def test_the_same_id_twice_at_once_is_one_turn_and_one_answer(client: httpx.AsyncClient, system: System) -> None:
    body = {"query": "hold on", "query_id": "q"}
    asking = [asyncio.create_task(client.post("/query", json=body)) for _ in range(5)]
    await system.generator.heard.wait()
    system.generator.release.set()
    answers = [(await task).json() for task in asking]
    assert all(answer == answers[0] for answer in answers)
    assert list(system.generator.turns) == ["q"]


async def test_the_same_id_after_a_restart_of_the_frontend_is_the_same_answer(system: System) -> None:
    body = {"query": "hello", "query_id": "q", "session_id": "s"}
    async with system.frontend() as client:
        first = (await client.post("/query", json=body)).json()
    async with system.frontend() as client:
        again = (await client.post("/query", json={"query": "hello", "query_id": "q"})).json()
    for key in ("answer", "session_id", "status", "tool_calls", "usage"):
        assert again[key] == first[key]
    assert list(system.generator.turns) == ["q"]


@pytest.mark.parametrize("known_to", ["this frontend", "the generator"])
async def test_the_same_id_with_another_text_is_a_conflict(system: System, known_to: str) -> None:
    async with system.frontend() as client:
        await client.post("/query", json={"query": "hello", "query_id": "q"})
        if known_to == "this frontend":
            refused = await client.post("/query", json={"query": "hello again", "query_id": "q"})
    if known_to == "the generator":
        async with system.frontend() as client:
            refused = await client.post("/query", json={"query": "hello again", "query_id": "q"})
    assert refused.status_code == 409
    assert refused.json()["error"]["kind"] == "conflict"


async def test_a_failed_turn_is_502_with_what_there_is_of_its_answer(client: httpx.AsyncClient) -> None:
    failed = await client.post("/query", json={"query": "fail now"})
    assert failed.status_code == 502
    body = failed.json()
    assert body["error"] == {"kind": "model_error", "message": "the model server went away"}
    assert (body["status"], body["answer"], body["thinking"]) == ("failed", "Hi there.", "Let me see.")


async def test_a_full_line_is_429_and_says_when_to_come_back(client: httpx.AsyncClient) -> None:
    refused = await client.post("/query", json={"query": "busy"})
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "5")
    assert refused.json()["error"]["kind"] == "busy"


async def test_a_running_query_can_be_cancelled(client: httpx.AsyncClient) -> None:
    await client.post("/query", json={"query": "hold on", "query_id": "q", "wait": False})
    cancelled = await client.post("/query/q/cancel")
    assert (cancelled.status_code, cancelled.json()["status"]) == (202, "cancelling")
    answer = await client.post("/query", json={"query": "hold on", "query_id": "q"})
    assert (answer.status_code, answer.json()["status"], answer.json()["answer"]) == (200, "cancelled", "Hi ")
    assert (await client.post("/query/q/cancel")).json() == {"query_id": "q", "status": "cancelled"}


async def test_a_query_cancelled_before_its_turn_is_answered_as_cancelled(client: httpx.AsyncClient) -> None:
    await client.post("/query", json={"query": "queued", "query_id": "q", "wait": False})
    asking = asyncio.create_task(client.post("/query", json={"query": "queued", "query_id": "q"}))
    await client.post("/query/q/cancel")
    answer = await asking
    assert answer.status_code == 200
    body = answer.json()
    assert (body["status"], body["answer"], body["error"]["kind"]) == ("cancelled", "", "cancelled")
    assert (await client.get("/query/q")).json()["status"] == "cancelled"


async def test_cancelling_an_unknown_query_is_404(client: httpx.AsyncClient) -> None:
    assert (await client.post("/query/never/cancel")).status_code == 404


async def test_a_client_that_leaves_does_not_cancel_its_query(client: httpx.AsyncClient, system: System) -> None:
    async with system.client() as impatient:
        asking = asyncio.create_task(impatient.post("/query", json={"query": "hold on", "query_id": "q"}))
        await system.generator.heard.wait()
        asking.cancel()
        await asyncio.wait({asking})
    system.generator.release.set()
    answer = await client.post("/query", json={"query": "hold on", "query_id": "q"})
    assert answer.json()["answer"] == "Hi there."


async def test_a_wrong_field_is_422_and_named(client: httpx.AsyncClient) -> None:
    for body, field in [
        ({}, "query"),
        ({"query": ""}, "query"),
        ({"query": " \n"}, "query"),
        ({"query": 7}, "query"),
        ({"query": None}, "query"),
        ({"query": "x", "wait": "no"}, "wait"),
        ({"query": "x", "incognito": 1}, "incognito"),
        ({"query": "x", "query_id": "a/b"}, "query_id"),
        ({"query": "x", "query_id": ""}, "query_id"),
        ({"query": "x", "session_id": "x" * 129}, "session_id"),
        ({"query": "x", "user_id": "a b"}, "user_id"),
        ({"query": "x", "sesion_id": "s"}, "sesion_id"),
    ]:
        refused = await client.post("/query", json=body)
        assert refused.status_code == 422
        error = refused.json()["error"]
        assert error["kind"] == "invalid" and error["message"].startswith(f"{field}: ")


async def test_a_wrong_field_is_told_what_would_be_right(client: httpx.AsyncClient) -> None:
    for body, right in [
        ({"query": " "}, "query: is blank; expected a question"),
        ({"query": "x", "query_id": "a/b"}, "query_id: expected 1 to 128 letters, digits and ._:~-"),
        ({"query": "x", "sesion_id": "s"}, f"sesion_id: {NO_FIELD}"),
    ]:
        assert (await client.post("/query", json=body)).json()["error"]["message"] == right


async def test_sessions_are_listed_shown_and_deleted(client: httpx.AsyncClient) -> None:
    assert (await client.get("/sessions")).json()["sessions"][0]["session_id"] == "s1"
    assert (await client.get("/sessions/s1")).json()["verb"] == "session"
    assert (await client.delete("/sessions/s1")).json()["verb"] == "delete"
    missing = await client.get("/sessions/other")
    assert (missing.status_code, missing.json()["error"]["kind"]) == (404, "not_found")


async def test_every_error_has_the_same_shape(client: httpx.AsyncClient) -> None:
    for method, path, status, kind in [
        ("GET", "/nothing", 404, "not_found"),
        ("GET", "/query/", 404, "not_found"),
        ("GET", "/../../etc/passwd", 404, "not_found"),
        ("PUT", "/query", 405, "method_not_allowed"),
        ("GET", "/query/a%20b", 422, "invalid"),
    ]:
        answer = await client.request(method, path)
        assert (answer.status_code, answer.json()["error"]["kind"]) == (status, kind)
        assert answer.json()["error"]["message"]


async def test_a_result_that_was_cut_off_is_given_whole_and_in_parts(client: httpx.AsyncClient, system: System) -> None:
    text = "é" * 1000
    name = BlobStore(system.journal_file.parent / "blobs").put(text.encode())
    system.generator.whole = {"$blob": name, "size": 2000, "characters": 1000}
    answer = (await client.post("/query", json={"query": "tool please", "query_id": "q1"})).json()
    [call] = answer["tool_calls"]
    assert call["whole"]["characters"] == 1000
    path = f"/query/q1/results/{call['call_id']}"
    assert (await client.get(path)).text == text
    part = await client.get(path, headers={"Range": "bytes=10-13"})
    assert (part.status_code, part.text) == (206, "éé")
    assert (await client.get("/query/q1/results/q1:9:9")).status_code == 404


@pytest.mark.parametrize(("tools", "offered"), [({"allow": []}, []), ({"deny": ["b"]}, ["a"]), (None, ["a", "b"])])
async def test_the_tools_that_the_model_is_offered_can_be_narrowed(
    client: httpx.AsyncClient, system: System, tools: dict[str, Any] | None, offered: list[str]
) -> None:
    await client.post("/query", json={"query": "hello", "query_id": "narrow", "tools": tools})
    options = system.generator.turns["narrow"].options
    assert [tool for tool in ("a", "b") if options is None or options.offers(tool)] == offered


async def test_tools_that_can_be_none_are_refused(client: httpx.AsyncClient) -> None:
    refused = await client.post("/query", json={"query": "hello", "tools": {"allow": ["no such name"]}})
    assert (refused.status_code, "tools" in refused.json()["error"]["message"]) == (422, True)
