"""One stream for everything that a browser shows: it carries what was requested, survives its connections, and reports
every loss.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import httpx
import pytest

from local.api import stream as browser_stream
from local.api import stream as browser_streams
from local.api import stream as sent_events
from local.api.http import RequestRefused
from local.api.queries import NO_TRAIL, QueryFinder
from local.api.security import Principal
from local.api.stream import StreamedQuery
from local.bus.bus import Bus
from local.bus.envelope import Envelope, Trace
from local.bus.messages import ConversationResult, GenerationToken, ParticipantStatus, QueryReceived, SessionDeleted
from local.core.data_dir import make_owner_token
from local.core.errors import RequestTimeout
from local.core.users import Users
from local.memory.messages import MemoryDeleted
from local.queries.asker import LiveQuery
from local.queries.view import QueryView

System = Any  # of conftest.py
Read = Any
Event = tuple[str, str, Any]
STREAM = "stream-of-a-test"
PATH = f"/stream/{STREAM}"


class Reader:
    """One connection of a browser, and its received events."""

    def __init__(self, events: AsyncIterator[Event]) -> None:
        self._events = events
        self.seen: list[Event] = []

    async def until(self, wanted: Callable[[str, Any], bool]) -> Any:
        """The data of the next event like that."""
        async with asyncio.timeout(90):
            async for event in self._events:
                self.seen.append(event)
                if wanted(event[0], event[2]):
                    return event[2]
        raise AssertionError([name for name, _, _ in self.seen])

    async def named(self, name: str) -> Any:
        return await self.until(lambda one, _: one == name)

    async def told(self, query_id: str, event: str) -> Any:
        """Return the data of a query's event of that name."""
        data = await self.until(
            lambda name, data: name == "query" and (data["query_id"], data["event"]) == (query_id, event)
        )
        return data["data"]

    async def to_its_end(self) -> None:
        """Read until the connection ends."""
        async with asyncio.timeout(90):
            async for event in self._events:
                self.seen.append(event)

    @property
    def last_id(self) -> str:
        return self.seen[-1][1]

    def data_of(self, event: str) -> list[Any]:
        """Of all queries' events of that name."""
        return [data["data"] for name, _, data in self.seen if name == "query" and data["event"] == event]

    def events_of(self, query_id: str) -> list[str]:
        return [data["event"] for name, _, data in self.seen if name == "query" and data["query_id"] == query_id]


@pytest.fixture
def reading(events_of: Read) -> Any:
    @asynccontextmanager
    async def connected(client: httpx.AsyncClient, last: str = "", **more: Any) -> AsyncIterator[Reader]:
        headers = {**more.get("headers", {}), **({"last-event-id": last} if last else {})}
        async with client.stream("GET", f"/stream?id={STREAM}", headers=headers) as response:
            assert response.status_code == 200, await response.aread()
            yield Reader(events_of(response))

    return connected


async def carry(client: httpx.AsyncClient, headers: dict[str, str] | None = None, **body: Any) -> Any:
    answer = await client.post(PATH, json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def ask(client: httpx.AsyncClient, query: str, query_id: str, session_id: str = "s", **more: Any) -> None:
    body = {"query": query, "query_id": query_id, "session_id": session_id, "wait": False}
    assert (await client.post("/query", json=body, **more)).status_code == 202


async def test_it_begins_with_who_is_who_and_tells_of_what_is_asked_in_a_session_from_its_first_event(
    client: httpx.AsyncClient, reading: Any
) -> None:
    carried = await carry(client, sessions=["s"])
    assert carried == {
        "stream_id": STREAM, "sessions": ["s"], "queries": [], "list": False, "participants": False, "bus": None,
    }  # fmt: skip
    async with reading(client) as reader:
        hello = await reader.named("hello")
        assert (hello["resumed"], hello["owner"], hello["user_id"], hello["stream_id"]) == (
            False,
            True,
            "owner",
            STREAM,
        )
        assert len(hello["page"]) == 16 and hello["version"] and hello["instance"]
        await ask(client, "tool please", "q")
        await ask(client, "hello", "other", session_id="elsewhere")
        assert (await reader.told("q", "response"))["answer"] == "Hi there."
        assert reader.seen[1][0] == "asked"
        assert reader.seen[1][2] == {"query_id": "q", "session_id": "s", "query": "tool please"}
        assert reader.events_of("q")[:2] == ["accepted", "state"]
        assert {"thinking", "tool_call", "tool_result", "token"} < set(reader.events_of("q"))
        assert reader.events_of("other") == []


async def test_a_query_from_another_frontend_is_followed_without_being_asked_twice(
    client: httpx.AsyncClient, system: System, reading: Any
) -> None:
    """As it was asked: with its files, and incognito."""
    await carry(client, sessions=["s"])
    async with reading(client) as reader, system.bus("cli", journaled=True) as bus:
        await reader.named("hello")
        await bus.ready()
        asked = QueryReceived(query_id="q", query="hello", attachments=("f" * 64,), incognito=True)
        await bus.publish(asked, Trace("q", None, "s"))
        assert (await reader.named("asked"))["query"] == "hello"
        assert (await reader.told("q", "response"))["answer"] == "Hi there."
    assert system.generator.turns["q"].incognito and system.generator.turns["q"].attachments == ("f" * 64,)


async def test_what_was_missed_is_told_again_after_the_last_event_that_was_seen(
    client: httpx.AsyncClient, system: System, reading: Any
) -> None:
    await carry(client, sessions=["s"])
    async with reading(client) as reader:
        await ask(client, "hold on", "q")
        await reader.told("q", "token")
    seen = next(number for name, number, data in reader.seen if name == "query" and data["event"] == "thinking")
    system.generator.release.set()
    async with reading(client, last=seen) as again:
        assert (await again.named("hello"))["resumed"] is True
        assert (await again.told("q", "response"))["answer"] == "Hi there."
        assert "".join(token["text"] for token in again.data_of("token")) == "Hi there."
        assert "thinking" not in again.events_of("q")


async def test_who_comes_back_without_knowing_what_was_seen_gets_a_snapshot(
    client: httpx.AsyncClient, system: System, reading: Any
) -> None:
    await carry(client, sessions=["s"], participants=True)
    for last in ("", "other-7", "x", f"{'9' * 30}"):
        async with reading(client, last=last) as reader:
            if "q" not in system.generator.turns:
                await ask(client, "hold on", "q")
                await reader.told("q", "token")
                continue
            assert (await reader.named("hello"))["resumed"] is False
            assert (await reader.told("q", "snapshot"))["answer"] == "Hi "
            assert (await reader.named("participant"))["name"]


async def test_what_is_followed_by_its_id_begins_with_what_was_said_so_far(
    client: httpx.AsyncClient, system: System, reading: Any
) -> None:
    await ask(client, "hold on", "q")
    await client.post("/query", json={"query": "hello", "query_id": "done"})
    async with reading(client) as reader:
        async with asyncio.timeout(90):
            while (await client.get("/query/q")).json()["answer"] != "Hi ":
                pass
        await carry(client, queries=["q"])
        assert (await reader.told("q", "snapshot"))["answer"] == "Hi "
        await carry(client, queries=["q", "done"])
        assert (await reader.told("done", "response"))["answer"] == "Hi there."
        await carry(client, queries=["q", "never"])
        assert (await reader.told("never", "error"))["error"]["kind"] == "not_found"
        system.generator.release.set()
        assert (await reader.told("q", "response"))["answer"] == "Hi there."
        assert reader.events_of("q")[0] == "snapshot" and len(reader.events_of("done")) == 2


async def test_a_restarted_api_knows_the_same_id_and_gives_snapshots(system: System, reading: Any) -> None:
    async with system.frontend() as client:
        await carry(client, sessions=["s"])
        async with reading(client) as reader:
            await ask(client, "hold on", "q")
            await reader.told("q", "token")
    async with system.frontend() as client, reading(client, last=reader.last_id) as again:
        assert (await again.named("hello"))["resumed"] is False
        await carry(client, sessions=["s"], queries=["q"])
        assert (await again.told("q", "snapshot"))["complete"] is False
        system.generator.release.set()
        assert (await again.told("q", "response"))["answer"] == "Hi there."
    assert list(system.generator.turns) == ["q"]


async def test_a_stopping_api_ends_the_stream_and_says_nothing_of_errors(system: System, reading: Any) -> None:
    async with AsyncExitStack() as frontend, system.client() as client:
        await frontend.enter_async_context(system.frontend())
        await carry(client, sessions=["s"])
        async with reading(client) as reader:
            await ask(client, "hold on", "q")
            await reader.told("q", "token")
            await asyncio.gather(frontend.aclose(), reader.to_its_end())
    assert "error" not in reader.events_of("q")
    system.generator.release.set()


async def test_a_slow_reader_gets_fragments_in_one_and_costs_no_queue(
    client: httpx.AsyncClient, system: System, reading: Any
) -> None:
    """Nobody reads while the answer comes: the next one does."""
    await carry(client, sessions=["s"])
    async with reading(client) as reader:
        await reader.named("hello")
    await ask(client, "hello", "q")
    assert (await client.post("/query", json={"query": "hello", "query_id": "q", "session_id": "s"})).status_code == 200
    async with reading(client, last=reader.last_id) as again:
        assert (await again.named("hello"))["resumed"] is True
        await again.told("q", "response")
        tokens = [data["data"] for name, _, data in again.seen if name == "query" and data["event"] == "token"]
    assert [(one["index"], one["text"], one["count"]) for one in tokens] == [(1, "Hi there.", 2)]


async def test_more_than_is_kept_is_a_snapshot(
    client: httpx.AsyncClient, system: System, reading: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sent_events, "MAX_BYTES", 300)
    await carry(client, sessions=["s"])
    async with reading(client) as reader:
        await ask(client, "hold on", "q")
        await reader.told("q", "token")
    async with reading(client, last=reader.seen[0][1]) as again:
        assert (await again.named("hello"))["resumed"] is False
        assert (await again.told("q", "snapshot"))["answer"] == "Hi "
    system.generator.release.set()


async def test_the_latest_connection_is_the_one_that_counts(client: httpx.AsyncClient, reading: Any) -> None:
    async with reading(client) as first:
        await first.named("hello")
        async with reading(client) as second:
            await second.named("hello")
            await first.to_its_end()
            await carry(client, sessions=["s"])
            await ask(client, "hello", "q")
            await second.told("q", "response")


async def test_sessions_that_change_are_told_and_deleted_ones(
    client: httpx.AsyncClient, system: System, reading: Any
) -> None:
    await carry(client, list=True)
    async with reading(client) as reader, system.bus("generator") as bus:
        await bus.ready()
        await ask(client, "hello", "q", session_id="s1")
        assert await reader.named("session") == {"session_id": "s1", "turns": 1}
        renamed = ConversationResult(verb="change", value={"session_id": "s1", "title": "Tea"})
        await bus.publish(renamed, in_reply_to="somebody")
        assert await reader.named("session") == {"session_id": "s1", "turns": 1}
        await bus.publish(SessionDeleted(deleted_session_id="s1"))
        assert await reader.named("session_deleted") == {"session_id": "s1"}
        assert (await carry(client, list=False))["list"] is False


async def test_what_is_remembered_is_told_to_the_one_whose_it_is(
    client: httpx.AsyncClient, system: System, reading: Any
) -> None:
    await carry(client, list=True)
    async with reading(client) as reader, system.bus("memory") as bus:
        await bus.ready()
        await bus.publish(MemoryDeleted(engram_id="e", query_id="q"))
        assert await reader.named("memory") == {"what": "deleted"}


async def test_participants_are_told_once_and_then_what_changes(
    client: httpx.AsyncClient, system: System, reading: Any
) -> None:
    status = {"name": "dice", "kind": "tool", "pid": 7, "instance": "i", "state": "ready"}
    await carry(client, participants=True)
    async with reading(client) as reader, system.bus("dice") as bus:
        await bus.ready()
        for inflight in (0, 1):
            await bus.publish(ParticipantStatus(**status, inflight=inflight))
            row = await reader.until(lambda name, data: name == "participant" and data["name"] == "dice")
            assert (row["state"], row["inflight"]) == ("ready", inflight)
        await bus.publish(ParticipantStatus(**{**status, "state": "stopping"}))
        row = await reader.until(lambda name, data: name == "participant" and data["name"] == "dice")
        assert row["state"] == "gone"


async def test_the_bus_is_carried_with_or_without_payloads_and_no_longer_than_wanted(
    client: httpx.AsyncClient, system: System, reading: Any
) -> None:
    async with reading(client) as reader:
        await carry(client, bus={"subjects": ["tool."]})
        await ask(client, "tool please", "q1")
        message = await reader.named("message")
        assert (message["subject"], "payload" in message, message["size"] > 10) == ("tool.request.dice", False, True)
        carried = await carry(
            client, bus={"subjects": ["tool.result.", "query.received"], "payload": "full"}, sessions=["s"]
        )
        assert carried["bus"] == {"subjects": ["tool.result.", "query.received"], "payload": "full", "filters": []}
        await ask(client, "tool please", "q2")
        message = await reader.until(
            lambda name, data: name == "message" and data["subject"] == "tool.result.dice" and "payload" in data
        )
        assert message["payload"]["result"] == "4"
        assert (await carry(client, bus=None, sessions=[]))["bus"] is None
    frame = await one_frame(system)
    assert sum(transport.wants(frame) for transport in system.hub.transports) == 0


async def one_frame(system: System) -> bytes:
    """Of a subject that only the stream of the test before has heard."""
    async with system.bus("dice") as bus:
        return bus.seal(ConversationResult(verb="change"), Trace("q")).encode()


async def test_what_cannot_be_carried_is_refused_with_its_reason(client: httpx.AsyncClient) -> None:
    for body, status, field in [
        ({"sessions": ["a b"]}, 422, "sessions.0"),
        ({"sessions": [f"s{n}" for n in range(65)]}, 422, "sessions"),
        ({"queries": [f"q{n}" for n in range(257)]}, 422, "queries"),
        ({"bus": {"subjects": ["Tool"]}}, 422, "bus.subjects"),
        ({"bus": {"subjects": ["a"] * 33}}, 422, "bus.subjects"),
        ({"bus": {"filters": ["sendr:x"]}}, 422, "bus.filters"),
        ({"bus": {"filters": ["a"] * 17}}, 422, "bus.filters"),
        ({"bus": {"payload": "some"}}, 422, "bus.payload"),
        ({"bus": "all"}, 422, "bus"),
        ({"list": "yes"}, 422, "list"),
        ({"turns": []}, 422, "turns"),
    ]:
        refused = await client.post(PATH, json=body)
        assert (refused.status_code, refused.json()["error"]["message"].split(":")[0]) == (status, field)


async def test_an_id_that_is_none_is_refused(client: httpx.AsyncClient) -> None:
    for stream_id in ["short", "x" * 65, "with space in its name", "../../../etc/passwd", ""]:
        assert (await client.get("/stream", params={"id": stream_id})).status_code == 422


async def test_users_have_streams_of_their_own_and_hear_what_is_theirs(system: System, reading: Any) -> None:
    folder = system.journal_file.parent
    users = Users(folder)
    ann, bob = ({"authorization": f"Bearer {users.add(name)}"} for name in ("ann", "bob"))
    owner = {"authorization": f"Bearer {make_owner_token(folder)}"}
    async with system.frontend() as client:
        refused = await client.post(PATH, json={"participants": True}, headers=ann)
        assert (refused.status_code, refused.json()["error"]["kind"]) == (403, "forbidden")
        for who in (ann, bob, owner):
            await carry(client, who, sessions=["s"], queries=["q"], list=True, bus={"subjects": ["query.received"]})
        async with (
            reading(client, headers=ann) as of_ann,
            reading(client, headers=bob) as of_bob,
            reading(client, headers=owner) as of_owner,
        ):
            assert (await of_bob.named("hello"))["user_id"] == "bob"
            await ask(client, "hello", "q", headers=ann)
            for reader in (of_ann, of_owner):
                assert (await reader.told("q", "response"))["answer"] == "Hi there."
            await ask(client, "hello", "b", session_id="of-bob", headers=bob)
            message = await of_bob.named("message")
            assert message["correlation_id"] == "b"
            told = [data for name, _, data in of_bob.seen if name == "query" and data["event"] != "error"]
            assert told == [] and "asked" not in [name for name, _, _ in of_bob.seen]


async def test_a_query_that_is_asked_while_it_is_looked_for_is_followed(
    client: httpx.AsyncClient, reading: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked, asked = asyncio.Event(), asyncio.Event()

    async def find_nothing(self: QueryFinder, query_id: str, caller: Principal) -> LiveQuery:
        looked.set()
        await asked.wait()
        raise RequestRefused("not_found", f"query {query_id}")

    monkeypatch.setattr(QueryFinder, "follow", find_nothing)
    async with reading(client) as reader:
        await carry(client, sessions=["s"], queries=["q"])
        await looked.wait()
        await ask(client, "hello", "q")
        asked.set()
        assert (await reader.told("q", "response"))["answer"] == "Hi there."


async def test_a_user_who_is_removed_hears_no_more(system: System, reading: Any) -> None:
    users = Users(system.journal_file.parent)
    ann = {"authorization": f"Bearer {users.add('ann')}"}
    async with system.frontend(keep_alive_seconds=0.05) as client, reading(client, headers=ann) as reader:
        await reader.named("hello")
        users.remove("ann")
        with pytest.raises(AssertionError):
            await reader.until(lambda *_: False)


async def test_a_stream_that_nobody_reads_is_given_up(
    client: httpx.AsyncClient, reading: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browser_streams, "IDLE_SECONDS", 0.0)
    await carry(client, sessions=["s"])
    async with asyncio.timeout(90):
        while (await carry(client, list=True))["sessions"]:
            pass
    monkeypatch.undo()
    async with reading(client) as reader:
        await reader.named("hello")
        monkeypatch.setattr(browser_streams, "IDLE_SECONDS", 0.0)
        await carry(client, sessions=["s"])
        assert (await carry(client))["sessions"] == ["s"]  # as long as somebody does


async def test_one_stream_too_many_takes_the_place_of_one_that_nobody_reads(
    client: httpx.AsyncClient, reading: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browser_streams, "MAX_STREAMS", 2)
    async with reading(client) as reader:
        await reader.named("hello")
        for other in ("another-stream-1", "another-stream-2"):
            assert (await client.post(f"/stream/{other}", json={"list": True})).status_code == 200
        assert (await carry(client))["stream_id"] == STREAM
        async with client.stream("GET", "/stream?id=another-stream-2"):
            refused = await client.get("/stream?id=another-stream-3")
            assert (refused.status_code, refused.json()["error"]["kind"]) == (429, "busy")


async def test_notes_that_find_no_room_are_counted(
    client: httpx.AsyncClient, reading: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browser_stream, "MAX_NOTES", 2)
    await carry(client, queries=[f"never{n}" for n in range(5)])
    async with asyncio.timeout(90):
        for n in range(5):
            while (await client.get(f"/query/never{n}")).status_code != 404:
                pass
    async with reading(client) as reader:
        lost = await reader.named("lost")
    assert lost["what"] == "asked" and 1 <= lost["lost"] <= 3


async def test_an_idle_stream_is_kept_open_by_comments(system: System) -> None:
    async with (
        system.frontend(keep_alive_seconds=0.02) as client,
        client.stream("GET", f"/stream?id={STREAM}") as response,
    ):
        text = ""
        async with asyncio.timeout(90):
            async for piece in response.aiter_text():
                text += piece
                if text.count(": keep-alive") == 2:
                    break
    hello = json.loads(text.split("data: ")[1].split("\n")[0])
    assert hello["resumed"] is False


async def test_a_record_that_is_away_is_waited_for(
    bare_system: System, reading: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(browser_stream, "FIRST_PAUSE", 0.01)
    async with bare_system.journal(), bare_system.host(bare_system.generator), bare_system.frontend() as client:
        await client.post("/query", json={"query": "hello", "query_id": "q"})
    monkeypatch.setattr(Bus, "request", _timing_out_first(Bus.request))
    async with bare_system.journal(), bare_system.host(bare_system.generator), bare_system.frontend() as client:
        await carry(client, queries=["q"])
        async with reading(client) as reader:
            assert (await reader.told("q", "response"))["answer"] == "Hi there."


def _timing_out_first(request: Any) -> Any:
    failed = []

    async def patched(self: Bus, message: Any, *args: Any, **more: Any) -> Any:
        if len(failed) < 4 and self.sender == "api":
            failed.append(message)
            raise RequestTimeout(message.routing_key, 0.0)
        return await request(self, message, *args, **more)

    return patched


async def test_fragments_around_a_lost_one_are_not_joined() -> None:
    query = LiveQuery(QueryView("q", "why?", "s"), lambda: 0.0)
    streamed = StreamedQuery(query, NO_TRAIL, asyncio.Event(), new=True)
    for index, text in ((0, "It "), (1, "is"), (3, "so"), (4, ".")):
        token = GenerationToken(query_id="q", index=index, text=text)
        query.receive(token, Envelope(token.subject, f"e{index}", "g", "i", 1, "q", token.encode()))
    told = [json.loads(event.data) for event in streamed.take()]
    texts = [each["data"]["text"] for each in told if each["event"] == "token"]
    assert texts == ["It is", "so."]
