"""Recorded messages over HTTP: of one query with its times, of all, and each respondent's answer to a query."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest

from local.bus.envelope import Trace
from local.bus.messages import ResponseGeneration
from local.cli.entry import main
from local.core.data_dir import make_owner_token
from local.critic.messages import CritiqueResult
from local.journal.messages import JournalRedact, JournalRedacted
from local.queries.export import read_export
from tests.queries.otlp_receiver import collector

System = Any  # of conftest.py


async def ask(client: httpx.AsyncClient, query: str = "tool", query_id: str = "q", **fields: Any) -> None:
    answer = await client.post("/query", json={"query": query, "query_id": query_id, **fields})
    assert answer.status_code == 200
    recorded = f"/journal?query={query_id}&subject=response.generation"
    while not (await client.get(recorded)).json()["entries"]:  # an answer comes before it is on the disk
        pass


async def test_a_trace_has_every_message_and_what_they_tell_of_the_time(client: httpx.AsyncClient) -> None:
    await ask(client)
    trace = (await client.get("/query/q/trace")).json()
    subjects = [each["subject"] for each in trace["envelopes"] if each["recorded"]]
    assert subjects[0] == "query.received"
    assert {"tool.request.dice", "tool.result.dice", "response.generation"} <= set(subjects)
    numbers = [each["seq"] for each in trace["envelopes"] if each["recorded"]]
    assert numbers == sorted(numbers)
    unrecorded = [each for each in trace["envelopes"] if not each["recorded"]]
    assert {"generation.thinking", "generation.token"} <= {each["subject"] for each in unrecorded}
    received = trace["envelopes"][0]
    assert (received["summary"], received["sender"], received["size"] > 10) == ("tool", "api", True)
    request, result = (
        next(each for each in trace["envelopes"] if each["subject"] == f"tool.{which}.dice")
        for which in ("request", "result")
    )
    assert result["summary"] == "4"
    assert request["id"]
    assert trace["spans"][0]["kind"] == "other"
    assert trace["complete"] is True
    assert sum(trace["self_time"].values()) > 0


async def test_a_trace_without_its_payloads_is_not_complete(client: httpx.AsyncClient, system: System) -> None:
    await ask(client)
    async with system.bus("memory") as bus:
        await bus.ready()
        await bus.request(JournalRedact(mentioned='"answer":"Hi there."'), JournalRedacted, 5)
    trace = (await client.get("/query/q/trace")).json()
    assert trace["complete"] is False
    removed = [each for each in trace["envelopes"] if each["redacted"]]
    assert [(each["subject"], each["summary"], each["size"]) for each in removed] == [("response.generation", None, 0)]
    assert trace["spans"][0]["ended"] is not None
    entry = (await client.get(f"/journal/{removed[0]['seq']}")).json()
    assert (entry["redacted"], entry["payload"]) == (True, None)


async def test_the_record_is_read_in_pages_from_either_end(client: httpx.AsyncClient) -> None:
    for query_id in ("q1", "q2"):
        await ask(client, query_id=query_id, session_id="s")
    everything = (await client.get("/journal?limit=500&session=s")).json()
    numbers = [entry["seq"] for entry in everything["entries"]]
    assert numbers == sorted(numbers, reverse=True)
    assert everything["before"] is None
    end = numbers[0] + 1  # what comes later is on its way to the disk
    page, seen = (await client.get(f"/journal?limit=3&session=s&before={end}")).json(), list[int]()
    while True:
        seen += [entry["seq"] for entry in page["entries"]]
        if page["before"] is None:
            break
        page = (await client.get(f"/journal?limit=3&session=s&before={page['before']}")).json()
    assert seen == numbers
    later = (await client.get(f"/journal?limit=2&session=s&after={numbers[-1]}")).json()
    assert [entry["seq"] for entry in later["entries"]] == numbers[-3:-1][::-1]
    only = (await client.get("/journal?subject=tool.&query=q1")).json()["entries"]
    assert {entry["subject"] for entry in only} == {"tool.request.dice", "tool.result.dice"}
    assert (await client.get("/journal?subject=Nonsense!")).status_code == 422


async def test_the_record_is_read_and_exported_by_participant_and_by_time(
    client: httpx.AsyncClient, tmp_path: Path
) -> None:
    file = tmp_path / "export.ndjson"
    assert (await client.get("/journal/span")).json() == {"first_at": None, "last_at": None, "number": 0}
    assert (await client.get("/journal?until=5")).json()["entries"] == []
    for query_id in ("q1", "q2"):
        await ask(client, query_id=query_id, session_id="s")
    dice = (await client.get("/journal?participant=dice&query=q1")).json()["entries"]
    assert {entry["subject"] for entry in dice} == {"tool.request.dice", "tool.result.dice"}
    everything = (await client.get("/journal?payloads=true")).json()["entries"][::-1]
    span = (await client.get("/journal/span")).json()
    assert span["number"] == everything[-1]["seq"]
    assert span["first_at"] <= everything[-1]["sent_at"] <= span["last_at"]
    assert everything[0]["payload"]["query_id"] == "q1"
    assert (await client.get(f"/journal?until={span['first_at']}")).json()["entries"] == []
    earlier = (await client.get(f"/journal?until={span['last_at']}")).json()["entries"]
    assert [each["seq"] for each in earlier] == [each["seq"] for each in everything[: len(earlier)]][::-1]
    assert 0 < len(earlier) < len(everything)
    file.write_text((await client.get(f"/journal/export?until={span['last_at']}&participant=dice")).text)
    exported = read_export(file)
    assert {each.envelope.subject for each in exported} == {"tool.request.dice", "tool.result.dice"}
    numbers = [each["seq"] for each in earlier if each["subject"].endswith(".dice")]
    assert [each.number for each in exported] == numbers[::-1]


async def test_dead_letters_are_listed_and_delivered_again_for_the_owner(
    client: httpx.AsyncClient, system: System
) -> None:
    client.headers["authorization"] = f"Bearer {make_owner_token(system.journal_file.parent)}"
    assert (await client.get("/journal/dead")).json() == {"dead_letters": [], "count": 0}
    assert (await client.post("/journal/redeliver", json={})).status_code == 422
    assert (await client.post("/journal/redeliver", json={"consumer": "generator"})).json() == {"redelivered": {}}
    nobody = await client.post("/journal/redeliver", json={"consumer": "nobody"})
    assert "no durable consumer 'nobody'" in nobody.json()["error"]["message"]


async def test_one_message_on_record_is_told_whole(client: httpx.AsyncClient) -> None:
    await ask(client, "hello")
    (asked,) = (await client.get("/journal?subject=query.received")).json()["entries"]
    whole = (await client.get(f"/journal/{asked['seq']}")).json()
    assert (whole["payload"]["query"], whole["redacted"]) == ("hello", False)
    assert (await client.get("/journal/99999")).status_code == 404


async def test_what_each_respondent_has_made_of_a_query_is_told_with_the_judgement_of_it(
    client: httpx.AsyncClient, system: System
) -> None:
    await ask(client, "hello", session_id="s")
    trace = Trace("q", None, "s")
    async with system.bus("generator_b", journaled=True) as bus:
        await bus.ready()
        other = ResponseGeneration(query_id="q", respondent_id="B", status="answered", query="hello", answer="Hey.")
        await bus.publish(other, trace)
        for who, score in (("A", 3), ("B", 5)):
            grade = CritiqueResult(query_id="q", respondent_id=who, score=score, status="graded")
            await bus.publish(grade, trace)
    told = (await client.get("/query/q/respondents")).json()["respondents"]
    assert [(each["respondent_id"], each["answer"], each["scores"]["critique"]["score"]) for each in told] == [
        ("A", "Hi there.", 3), ("B", "Hey.", 5),
    ]  # fmt: skip
    assert (await client.get("/query/unknown/respondents")).status_code == 404


async def test_past_questions_are_listed_with_how_they_went(client: httpx.AsyncClient, system: System) -> None:
    for query_id, words in (("q1", "hello"), ("q2", "tool"), ("q3", "fail"), ("q4", "busy")):
        await client.post("/query", json={"query": words, "query_id": query_id, "session_id": "s"})
    await client.post("/query", json={"query": "hello", "query_id": "q5", "incognito": True})
    async with system.bus("critic", journaled=True) as bus:
        await bus.ready()
        await bus.publish(CritiqueResult(query_id="q1", score=2, status="graded"), Trace("q1", None, "s"))

    async def listed(filters: str = "") -> list[tuple[str, str]]:
        lines = (await client.get(f"/questions?{filters}")).json()["questions"]
        return [(line["query_id"], line["status"]) for line in lines]

    all_of_them = [("q4", "failed"), ("q3", "failed"), ("q2", "answered"), ("q1", "answered")]
    assert await listed() == all_of_them
    assert await listed("only=failed") == all_of_them[:2]
    assert await listed("only=slow") == []
    assert await listed("only=poor") == all_of_them[3:]
    assert await listed("tool=dice") == all_of_them[2:3]
    assert await listed("session=another") == []
    seen = list[str]()
    cursor: str | None = ""
    while cursor is not None:
        page = (await client.get(f"/questions?limit=1{cursor}")).json()
        seen += [line["query"] for line in page["questions"]]
        cursor = None if page["before"] is None else f"&before={page['before']}"
    assert seen == ["busy", "fail", "tool", "hello"]


async def test_a_collector_has_every_span_of_the_trace(
    client: httpx.AsyncClient, system: System, capfd: pytest.CaptureFixture[str]
) -> None:
    await ask(client)
    folder = system.journal_file.parent
    owner = {"authorization": f"Bearer {make_owner_token(folder)}"}
    missing = (await client.post("/query/q/trace/send", headers=owner)).json()
    assert "otel.yaml: endpoint is not set" in missing["error"]["message"]
    with collector() as received:
        (folder / "otel.yaml").write_text(f"endpoint: {received.url}\n")
        answer = (await client.post("/query/q/trace/send", headers=owner)).json()
        spans = (await client.get("/query/q/trace")).json()["spans"]
        assert answer == {"spans": len(spans), "endpoint": f"{received.url}/v1/traces"}
        arguments = ["trace", "q", "--otlp", received.url, "--api", system.url, "--data-dir", str(folder)]
        with pytest.raises(SystemExit):
            await asyncio.to_thread(main, arguments)
        assert f"sent {len(spans)} spans to {received.url}/v1/traces" in capfd.readouterr().out
    expected = [(span["started"], span["ended"] or 0.0) for span in spans] * 2
    found = [(span.start_time_unix_nano / 1e9, span.end_time_unix_nano / 1e9) for span in received.spans]
    assert found == [pytest.approx(each, abs=1e-6) for each in expected]
