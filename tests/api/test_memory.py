"""The routes under /memory, with a memory that is played by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from local.api.clients import BusRequests
from local.bus.envelope import Envelope
from local.bus.message import ErrorInfo
from local.bus.messages import ChildStatus, ParticipantStatus, SessionDeleted
from local.core.errors import RequestTimeout
from local.memory.messages import (
    ChangeRecord,
    EditRecord,
    EngramRecord,
    EntryRecord,
    FactRecord,
    MemoryDeleted,
    MemoryRequest,
    MemoryResult,
    OutcomeRecord,
    RecalledEngram,
)
from local.runtime.participant import on
from tests.api.hand_played import HandPlayed

System = Any  # of conftest.py
ENGRAM: dict[str, Any] = {
    "engram_id": "e1", "query_id": "q", "respondent_id": "A", "session_id": "s", "query": "Tea?", "answer": "Green.",
    "origin": "assistant", "asked_at": 1000.0, "pinned": False, "score": 4.0, "sentiment": 1, "winner": "A",
    "superseded_by": None, "recalled": ["e0"], "intent": None, "entities": [], "tainted": False, "cut": False,
    "note_of": None,
}  # fmt: skip
FOUND: dict[str, Any] = {
    "relevance": 0.8, "similarity": 0.7, "parts": {"recency": 0.9}, "folded": ["e0"], "successor_of": None,
    "outdated": [{"slot": "tea", "value": "black", "superseded_at": 2.0, "values": ["green"], "engram_ids": []}],
}  # fmt: skip
FACT = {
    "slot": "tea", "value": "green", "stated_at": 1.0, "engram_id": "e1", "superseded_at": None, "certain": True,
    "added": False, "confirmed": True, "questioned": False, "fact_id": 7,
    "holds_from": "", "holds_until": "", "of_health": False,
}  # fmt: skip
CHANGE = {"at": 3.0, "what": "score", "value": "4"}


ENTRY_PAGES: dict[str, dict[str, Any]] = {
    "": {"entries": [EntryRecord(kind="fact", entry_id="1" * 12, text="tea: green")], "cursor": "1"},
    "1": {"entries": [EntryRecord(kind="note", entry_id="2" * 12, text="Bring nails", tainted=True)]},
}


def _outcome(edit: EditRecord) -> OutcomeRecord:
    before = "tea: green" if edit.entry_id else ""
    what: Any = "nothing" if edit.text == "known" else "changed" if before else "added"
    return OutcomeRecord(line=edit.line, kind=edit.kind, what=what, before=before, text=edit.text)


class Memory(HandPlayed):
    """Knows one engram, until it is deleted, and records its requests."""

    name = "memory"

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[MemoryRequest, str | None]] = []
        self.pages = [(("{1}", "{2}"), "2"), (("{3}",), "")]
        self.engrams = {"e1": EngramRecord.model_validate(ENGRAM)}

    @on(MemoryRequest)
    async def answer(self, request: MemoryRequest, envelope: Envelope) -> MemoryResult:
        self.asked.append((request, envelope.user_id))
        return MemoryResult.model_validate({"verb": request.verb, **self._answer(request)})

    def _answer(self, request: MemoryRequest) -> dict[str, Any]:
        match request.verb:
            case "search":
                return {"hits": [RecalledEngram.model_validate(ENGRAM | FOUND)], "degraded": ["words alone"]}
            case "list":
                found = [one for one in self.engrams.values() if one.asked_at < (request.before or 1e10)]
                return {"engrams": found, "more_before": 1000.0, "cursor": "1000.0,e1"} if found else {}
            case "repeated":
                return {"repeated_in": ["e2"] if request.of_session == "s1" or request.engram_id == "e1" else []}
            case "facts":
                return {
                    "facts": [FactRecord.model_validate(FACT)],
                    "lines": ["allergies: nuts", "tea: green"],
                    "pinned": ["tea: green"],
                    "left_out": ["e0"],
                }
            case "confirm_fact" | "drop_fact":
                return {"facts": [FactRecord.model_validate(FACT)]}
            case "entries":
                return ENTRY_PAGES[request.cursor]
            case "edit" | "write_fact":
                return {"outcomes": [_outcome(edit) for edit in request.edits]}
            case "export":
                lines, cursor = self.pages[int(request.cursor or 0) // 2]
                if not lines:
                    return {"error": ErrorInfo(kind="store_failed", message="the disk is broken")}
                return {"lines": lines, "cursor": cursor}
        if request.engram_id not in self.engrams:
            return {"error": ErrorInfo(kind="not_found", message=f"there is no engram {request.engram_id}")}
        engram = self.engrams[request.engram_id]
        if request.verb == "delete":
            del self.engrams[request.engram_id]
        return {
            "engrams": [engram],
            "facts": [FactRecord.model_validate(FACT)],
            "changes": [ChangeRecord.model_validate(CHANGE)],
            "repeated_in": ["e2"] if request.verb == "delete" else [],
        }


@pytest.fixture
async def memory(system: System) -> AsyncIterator[Memory]:
    memory = Memory()
    async with system.host(memory):
        yield memory


async def test_a_search_shows_each_hit_with_all_that_it_is_made_of(client: httpx.AsyncClient, memory: Memory) -> None:
    answer = await client.get("/memory", params={"query": "tea", "limit": 3})
    assert answer.status_code == 200
    [hit] = answer.json()["hits"]
    assert hit.pop("age_seconds") > 1_000_000
    assert hit == ENGRAM | FOUND
    assert answer.json()["degraded"] == ["words alone"]
    [(request, user_id)] = memory.asked
    assert (request.verb, request.query, request.limit, user_id) == ("search", "tea", 3, "owner")


async def test_without_a_query_the_latest_come_page_by_page(client: httpx.AsyncClient, memory: Memory) -> None:
    body = (await client.get("/memory", params={"limit": 1})).json()
    assert [engram["engram_id"] for engram in body["engrams"]] == ["e1"]
    assert (body["more_before"], body["cursor"]) == (1000.0, "1000.0,e1")
    last = {"engrams": [], "cursor": None, "more_before": None}
    assert (await client.get("/memory", params={"before": 1000.0})).json() == last
    await client.get("/memory", params={"cursor": body["cursor"]})
    asked = [(request.verb, request.before, request.cursor) for request, _ in memory.asked]
    assert asked == [("list", None, ""), ("list", 1000.0, ""), ("list", None, "1000.0,e1")]


async def test_each_user_has_a_memory_of_their_own(client: httpx.AsyncClient, memory: Memory) -> None:
    for path in ("/memory?query=x&", "/memory?", "/memory/e1?", "/memory/facts?", "/memory/export?"):
        assert (await client.get(f"{path}user_id=ann")).status_code == 200
    assert {user_id for _, user_id in memory.asked} == {"ann"}


async def test_an_engram_has_its_facts_and_its_changes(client: httpx.AsyncClient, memory: Memory) -> None:
    body = (await client.get("/memory/e1")).json()
    assert body["engram"].pop("age_seconds") > 0
    assert body == {"engram": ENGRAM, "facts": [FACT], "changes": [CHANGE]}


async def test_an_engram_is_pinned_and_unpinned(client: httpx.AsyncClient, memory: Memory) -> None:
    assert (await client.post("/memory/e1/pin")).json() == {"engram_id": "e1", "pinned": True}
    assert (await client.delete("/memory/e1/pin")).json() == {"engram_id": "e1", "pinned": False}
    assert [request.verb for request, _ in memory.asked] == ["pin", "unpin"]


async def test_facts_come_with_the_lines_that_a_model_is_told(client: httpx.AsyncClient, memory: Memory) -> None:
    told = {"told": ["allergies: nuts", "tea: green"], "pinned": ["tea: green"], "left_out": ["e0"]}
    assert (await client.get("/memory/facts")).json() == {"facts": [FACT], "unconfirmed": [], **told}
    await client.get("/memory/facts?history=true")
    assert [request.history for request, _ in memory.asked] == [None, True]


async def test_an_unconfirmed_fact_is_confirmed_or_dropped(client: httpx.AsyncClient, memory: Memory) -> None:
    assert (await client.post("/memory/facts/7/confirm")).json() == {"fact": FACT, "confirmed": True}
    assert (await client.delete("/memory/facts/8")).json() == {"fact": FACT, "dropped": True}
    assert [(request.verb, request.fact_id) for request, _ in memory.asked] == [("confirm_fact", 7), ("drop_fact", 8)]
    assert (await client.post("/memory/facts/x/confirm")).status_code == 422


async def test_a_fact_is_stated_and_corrected_by_hand(client: httpx.AsyncClient, memory: Memory) -> None:
    fact = {"slot": "tea", "value": "black", "holds_until": "2026-11-27"}
    assert (await client.post("/memory/facts", json=fact)).json()["outcome"]["text"] == "tea: black"
    await client.put("/memory/facts/7", json=fact | {"value": " "})
    asked = [(request.verb, request.fact_id, request.edits[0].text) for request, _ in memory.asked]
    assert asked == [("write_fact", None, "tea: black"), ("write_fact", 7, "")]
    for wrong, field in (({"holds_until": "tomorrow"}, "holds_until"), ({"slot": "a: b"}, "slot")):
        refused = await client.put("/memory/facts/7", json=fact | wrong)
        assert (refused.status_code, field in refused.json()["error"]["message"]) == (422, True)


async def test_what_rests_on_an_engram_is_known_before_it_is_deleted(client: httpx.AsyncClient, memory: Memory) -> None:
    assert (await client.get("/memory/e1/repeated")).json() == {"engram_id": "e1", "repeated_in": ["e2"]}


async def test_deleting_removes_the_exchange_here_too_and_a_second_time_there_is_none(
    client: httpx.AsyncClient, memory: Memory
) -> None:
    await client.post("/query", json={"query": "hello", "query_id": "q"})
    told = {"engram_id": "e1", "query_id": "q", "deleted": True, "repeated_in": ["e2"]}
    assert (await client.delete("/memory/e1")).json() == told
    again = await client.delete("/memory/e1")
    assert (again.status_code, again.json()["error"]["kind"]) == (404, "not_found")
    assert (await client.get("/query/q")).json()["event_log"] == []  # found on record, not here


async def test_deleting_removes_what_another_query_had_recalled_of_it(
    client: httpx.AsyncClient, memory: Memory
) -> None:
    for query in ("recall it", "tool please"):
        await client.post("/query", json={"query": query, "query_id": query.split()[0]})
    await client.delete("/memory/e1")
    assert (await client.get("/query/recall")).json()["event_log"] == []
    assert (await client.get("/query/tool")).json()["event_log"]


@pytest.mark.parametrize("message", [
    MemoryDeleted(engram_id="e0", query_id="q"), MemoryDeleted(engram_id="e1", query_id="another"),
    SessionDeleted(deleted_session_id="s"),
], ids=["its memory", "a memory that it had recalled", "its session"])  # fmt: skip
async def test_what_was_deleted_elsewhere_is_not_kept_here(
    client: httpx.AsyncClient, system: System, message: Any
) -> None:
    await client.post("/query", json={"query": "recall it", "query_id": "q", "session_id": "s"})
    assert (await client.get("/query/q")).json()["event_log"]
    async with system.bus("memory") as bus:
        await bus.ready()
        await bus.publish(message)
    async with asyncio.timeout(90):
        while (await client.get("/query/q")).json()["event_log"]:
            pass  # until the API has received it


async def test_deleting_a_session_names_what_repeats_it_where_a_memory_can_tell(
    client: httpx.AsyncClient, system: System
) -> None:
    assert (await client.delete("/sessions/s1")).json()["repeated_in"] is None
    async with system.host(Memory()):
        async with asyncio.timeout(90):
            while '"name":"memory"' not in (await client.get("/participants")).text:
                pass  # until the API has received it
        assert (await client.delete("/sessions/s1")).json()["repeated_in"] == ["e2"]
        assert (await client.delete("/sessions/unknown")).status_code == 404


async def test_an_export_is_a_file_with_the_lines_of_every_page(client: httpx.AsyncClient, memory: Memory) -> None:
    answer = await client.get("/memory/export")
    assert answer.text == "{1}\n{2}\n{3}\n"
    assert answer.headers["content-type"].startswith("application/x-ndjson")
    assert answer.headers["content-disposition"] == 'attachment; filename="memory.ndjson"'


async def test_an_export_that_fails_at_once_has_a_status_and_one_that_fails_later_is_cut(
    client: httpx.AsyncClient, memory: Memory
) -> None:
    memory.pages[1] = ((), "")
    with pytest.raises(httpx.RemoteProtocolError):
        await client.get("/memory/export")
    memory.pages[0] = ((), "")
    assert (await client.get("/memory/export")).status_code == 500


async def test_a_wrong_parameter_is_422_and_named(client: httpx.AsyncClient) -> None:
    for path, field in [
        ("/memory?limit=0", "limit"),
        ("/memory?limit=101", "limit"),
        ("/memory?limit=x", "limit"),
        ("/memory?query=" + "x" * 2001, "query"),
        ("/memory?before=-1", "before"),
        ("/memory?before=nan", "before"),
        ("/memory?before=inf", "before"),
        ("/memory?query=x&before=5", "before"),
        ("/memory?query=x&cursor=5,e1", "cursor"),
        ("/memory?user_id=a%20b", "user_id"),
        ("/memory?user_id=", "user_id"),
        ("/memory/facts?user_id=a%2Fb", "user_id"),
        ("/memory/a%20b", "engram_id"),
    ]:
        refused = await client.get(path)
        assert (refused.status_code, refused.json()["error"]["kind"]) == (422, "invalid")
        assert refused.json()["error"]["message"].startswith(f"{field}: ")


async def test_without_a_memory_it_says_how_there_would_be_one(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for method, path in [
        ("GET", "/memory"),
        ("GET", "/memory?query=tea"),
        ("GET", "/memory/e1"),
        ("DELETE", "/memory/e1"),
        ("POST", "/memory/e1/pin"),
        ("GET", "/memory/facts"),
        ("GET", "/memory/export"),
    ]:
        monkeypatch.setattr("local.api.clients.UNSEEN_SECONDS", 0.05)
        refused = await client.request(method, path)
        error = refused.json()["error"]
        assert (refused.status_code, error["kind"]) == (503, "unavailable")
        assert "`participants` in system.yaml" in error["message"]


@pytest.mark.parametrize(
    ("state", "kind"), [("restarting", "timeout"), ("ready", "timeout"), ("failed", "unavailable")]
)
async def test_a_memory_that_the_supervisor_keeps_is_waited_for_although_it_is_silent(
    system: System, monkeypatch: pytest.MonkeyPatch, state: str, kind: str
) -> None:
    monkeypatch.setattr("local.api.clients.UNSEEN_SECONDS", 0.05)
    monkeypatch.setattr("local.memory.routes.ANSWER_SECONDS", 0.1)
    async with system.frontend() as client, system.bus("supervisor") as bus:
        await bus.ready()
        kept = ChildStatus(name="memory", kind="participant", state=state)
        told = ParticipantStatus(
            name="supervisor", kind="supervisor", pid=1, instance=bus.instance, state="ready", children=(kept,)
        )
        assert bus.post(told)
        listed = (await client.get("/participants")).json()["participants"]
        assert "memory" in [row["name"] for row in listed]
        refused = await client.get("/memory")
    assert (refused.status_code, refused.json()["error"]["kind"]) == (503, kind)


async def test_a_memory_that_is_there_and_does_not_answer_is_a_timeout(system: System) -> None:
    async with system.bus("frontend") as bus:
        await bus.ready()
        with pytest.raises(RequestTimeout):
            await BusRequests(bus, lambda _: True).ask(
                "memory", MemoryRequest(verb="list"), MemoryResult, user_id="owner", seconds=0.05
            )


async def test_the_memory_is_written_as_a_file_and_what_was_changed_in_it_is_told_before_it_is_done(
    client: httpx.AsyncClient, memory: Memory
) -> None:
    text = (await client.get("/memory/file")).json()["text"]
    assert "- tea: green <!-- f111111111111." in text and "with words of strangers -->" in text
    assert (await client.post("/memory/file", json={"text": text})).json() == {
        "outcomes": [], "problems": [], "applied": False,
    }  # fmt: skip
    text = text.replace("tea: green", "tea: black").replace("## Notes", "## Notes\n- Bring rope.\n- known\nrubbish")
    answer = (await client.post("/memory/file", json={"text": text, "apply": True})).json()
    assert [(each["what"], each["before"], each["text"]) for each in answer["outcomes"]] == [
        ("changed", "tea: green", "tea: black"), ("added", "", "Bring rope."),
    ]  # fmt: skip
    assert (len(answer["problems"]), "rubbish" in answer["problems"][0], answer["applied"]) == (1, True, True)
    asked = [request for request, _ in memory.asked if request.verb == "edit"]
    assert [request.applies for request in asked] == [True]  # nothing is asked of a file in which nothing is changed


async def test_changes_travel_in_parts_that_fit_into_a_frame_and_too_many_are_refused(
    client: httpx.AsyncClient, memory: Memory
) -> None:
    lines = ["## Notes", *(f"- {number} {'ü' * 1500}" for number in range(40)), f"- {'x' * 2001}"]
    answer = (await client.post("/memory/file", json={"text": "\n".join(lines)})).json()
    asked = [[len(edit.text.encode()) for edit in request.edits] for request, _ in memory.asked]
    assert (len(answer["outcomes"]), sum(map(len, asked))) == (40, 40)
    assert max(map(sum, asked)) <= 40_000 and max(map(len, asked)) <= 15 and len(asked) < 6
    assert "more than 2000 characters" in answer["problems"][0]
    lines = ["## Notes", *(f"- {number}" for number in range(2001))]
    refused = await client.post("/memory/file", json={"text": "\n".join(lines)})
    assert (refused.status_code, refused.json()["error"]["kind"]) == (413, "too_large")
