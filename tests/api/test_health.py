"""GET /health and /participants over HTTP."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import httpx
import pytest

from local.bus.bus import Bus
from local.bus.envelope import Envelope
from local.bus.messages import ChildStatus, ParticipantStatus
from local.core.config import Settings
from local.runtime.participant import Participant

System = Any  # of conftest.py


class Dice(Participant):
    """Only beats."""

    name = "dice"


async def test_health_shows_what_the_supervisor_and_the_participants_say(system: System) -> None:
    async with system.frontend() as client, system.bus("supervisor") as bus:
        await bus.ready()
        before = await client.get("/health")
        assert (before.status_code, before.json()["status"]) == (503, "starting") and before.headers["retry-after"]
        report = await client.get("/health", params={"report": True})
        assert (report.status_code, report.json()["status"]) == (200, "starting")
        generator = ChildStatus(name="generator", kind="agent", state="ready", pid=4)
        said = ParticipantStatus(
            name="supervisor", kind="supervisor", pid=1, instance=bus.instance, state="ready", children=(generator,)
        )
        beat = ParticipantStatus(
            name="generator", kind="agent", pid=4, instance="i", state="ready", details={"model": "gemma4:12b"}
        )
        for status in (said, beat):
            assert bus.post(status)
        health = await client.get("/health")
        assert health.status_code == 200
        body = health.json()
        assert (body["status"], body["model"], body["backend"], body["stand_in"]) == (
            "ok", "gemma4:12b", "stand_in", True,
        )  # fmt: skip
        assert body["version"]
        assert body["participants"][0]["name"] == "generator"
        listed = (await client.get("/participants")).json()["participants"]
        assert [row["name"] for row in listed] == [row["name"] for row in body["participants"]]


async def test_a_participant_that_is_started_by_hand_shows_up_and_goes(system: System) -> None:
    async with system.frontend() as client, system.bus("watcher") as bus, asyncio.timeout(90):
        said: asyncio.Queue[Envelope] = asyncio.Queue()
        bus.subscribe("participant.status", lambda envelope: envelope.sender == "dice" and said.put_nowait(envelope))
        await bus.ready()
        async with system.host(Dice(Settings())):
            await said.get()
            assert "dice" in await names(client)
        await said.get()
        assert "dice" not in await names(client)


async def names(client: httpx.AsyncClient) -> list[str]:
    return [row["name"] for row in (await client.get("/participants")).json()["participants"]]


async def test_participants_tell_what_they_hear_and_as_which_durable_consumer(
    client: httpx.AsyncClient, events_of: Any
) -> None:
    async with asyncio.timeout(90), client.stream("GET", "/events?subject=participant.status") as response:
        async for _, _, data in events_of(response):
            if data["sender"] == "generator":
                break
    heard = data["payload"]["subscriptions"]
    assert heard["query.received"] == "generator" and heard["query.cancel"] == heard["conversation.request."] == ""
    assert "participant.status" not in heard


@pytest.mark.parametrize("missing", ["generator", "journal"])
@pytest.mark.parametrize("how", [{}, {"wait": False}, {"accept": "text/event-stream"}, {"query_id": "q"}])
async def test_a_query_that_nobody_can_answer_is_503_at_once_and_says_why(
    system: System, missing: str, how: dict[str, Any]
) -> None:
    how = dict(how)
    accept = {"accept": how.pop("accept", "*/*")}
    async with system.frontend() as client, system.bus("supervisor") as bus:
        await bus.ready()
        say_children(bus, missing, "failed", detail="exit status 1")
        async with asyncio.timeout(4):  # less than a query may wait
            refused = await client.post("/query", json={"query": "hello", **how}, headers=accept)
        assert (refused.status_code, refused.json()["error"]["kind"]) == (503, "unavailable")
        assert f"the {missing} has failed (exit status 1)" in refused.json()["error"]["message"]
        assert refused.headers["retry-after"] and not system.generator.turns
        say_children(bus, missing, "restarting")
        answered = await client.post("/query", json={"query": "hello", **how}, headers=accept)
        assert answered.status_code in (200, 202)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_completion_that_nobody_can_give_is_503_at_once_and_says_why(system: System, stream: bool) -> None:
    chat = {"model": "local2", "messages": [{"role": "user", "content": "hello"}], "stream": stream}
    async with system.frontend() as client, system.bus("supervisor") as bus:
        await bus.ready()
        say_children(bus, "generator", "failed", detail="exit status 1")
        async with asyncio.timeout(4):  # less than a query may wait
            refused = await client.post("/v1/chat/completions", json=chat)
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "unavailable")
        assert "the generator has failed (exit status 1)" in refused.json()["error"]["message"]
        assert refused.headers["retry-after"] and not system.generator.turns


async def test_an_answer_on_record_is_given_even_while_nobody_can_answer(system: System) -> None:
    async with system.frontend() as client, system.bus("supervisor") as bus:
        await client.post("/query", json={"query": "hello", "query_id": "q"})
        await bus.ready()
        async with system.frontend() as other:
            say_children(bus, "generator", "failed")
            again = await other.post("/query", json={"query": "hello", "query_id": "q"})
            assert (again.status_code, again.json()["answer"]) == (200, "Hi there.")


def say_children(bus: Bus, name: str, state: Any, detail: str = "") -> None:
    """Publish the supervisor's status; all other participants are ready."""
    others = [
        ChildStatus(name=other, kind="agent", state="ready", pid=os.getpid())  # whose beats are then no strangers'
        for other in {"journal", "generator"} - {name}
    ]
    child = ChildStatus(name=name, kind="agent", state=state, pid=None, detail=detail)
    said = ParticipantStatus(
        name="supervisor", kind="supervisor", pid=1, instance=bus.instance, state="starting", children=(child, *others)
    )
    assert bus.post(said)
