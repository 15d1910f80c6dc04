"""Conversations over HTTP: the real frontend, and a generator that keeps the real record of them."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from local.bus.envelope import Envelope, Trace
from local.bus.messages import ConversationRequest, ConversationResult, ResponseGeneration, ToolCallRecord
from local.core.config import Settings
from local.critic.messages import CritiqueResult, UserFeedback
from local.generator import import_routes
from local.generator.agent import ConversationRequestHandler
from local.generator.history import ConversationService, NewTurn, TurnStatus
from local.generator.session_changes import SessionChanges
from local.generator.sessions import SessionRecord
from local.runtime.participant import Kind, Participant, on

System = Any  # of conftest.py
PDF = "a" * 64


class RecordKeeper(Participant):
    """The part of the generator that answers requests about its record."""

    name = "generator"
    kind = Kind.AGENT
    publishes = (SessionChanges,)

    def __init__(self, path: Path) -> None:
        super().__init__(Settings())
        self._path = path
        self.record: ConversationService

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        async with ConversationService(self._path) as self.record:
            sessions = SessionRecord(self.record, "A")
            changes = SessionChanges(self.bus, sessions)
            self._requests = ConversationRequestHandler(
                self.record,
                sessions,
                changes,
                lambda history, today, user, settings: list(history),
                self._delete,
                lambda today, user, options: {},
            )
            yield

    async def _delete(self, session_id: str) -> tuple[int, int]:
        return await self.record.delete_session(session_id), 0

    @on(ConversationRequest, concurrency=8)
    async def look_up(self, request: ConversationRequest, envelope: Envelope) -> ConversationResult:
        return await self._requests.answer(request)

    async def say(self, query_id: str, session_id: str = "s", query: str = "?", answer: str = "!", **also: Any) -> None:
        """Have a turn on record that has ended."""
        attachments = also.pop("attachments", ())
        body = json.dumps({"query_id": query_id, "query": query, "attachments": attachments})
        await self.record.accept(NewTurn(query_id, session_id, also.pop("user_id", None), query_id, query, body))
        response = ResponseGeneration(query_id=query_id, status="answered", query=query, answer=answer, **also)
        body = response.encode().decode()
        await self.record.finish(query_id, TurnStatus.ANSWERED, answer, response.subject, body)


@pytest.fixture
async def keeper(bare_system: System, tmp_path: Path) -> AsyncIterator[RecordKeeper]:
    keeper = RecordKeeper(tmp_path / "c.db")
    async with bare_system.journal(), bare_system.host(keeper):
        yield keeper


@pytest.fixture
async def frontend(bare_system: System, keeper: RecordKeeper) -> AsyncIterator[httpx.AsyncClient]:
    async with bare_system.frontend() as client:
        yield client


def ids(page: httpx.Response) -> list[str]:
    return [turn["query_id"] for turn in page.json()["turns"]]


async def test_a_long_conversation_is_read_in_pages_that_meet_exactly(
    keeper: RecordKeeper, frontend: httpx.AsyncClient
) -> None:
    text = "long " * 2000  # five of them are more than one message holds
    for number in range(30):
        await keeper.say(f"q{number:02}", query=f"Q{number}", answer=text)
    page = await frontend.get("/sessions/s/turns?limit=12")
    assert (ids(page), page.json()["total"]) == ([f"q{number}" for number in range(18, 30)], 30)
    assert page.json()["turns"][0]["answer"] == text
    assert (page.json()["before"], page.json()["after"]) == ("q18", None)
    await keeper.say("new")
    seen = ids(page)
    while page.json()["before"]:
        page = await frontend.get(f"/sessions/s/turns?limit=12&before={page.json()['before']}")
        seen = ids(page) + seen
    assert seen == [f"q{number:02}" for number in range(30)]
    page = await frontend.get("/sessions/s/turns?limit=20&after=q04")
    assert (ids(page)[0], ids(page)[-1], page.json()["before"], page.json()["after"]) == ("q05", "q24", "q05", "q24")
    page = await frontend.get("/sessions/s/turns?limit=5&around=q10")
    assert (ids(page), page.json()["before"]) == (["q08", "q09", "q10", "q11", "q12"], "q08")
    page = await frontend.get("/sessions/s/turns?limit=5&around=new")
    assert (ids(page)[-1], page.json()["after"]) == ("new", None)


async def test_a_turn_has_everything_that_a_page_shows_of_it(
    keeper: RecordKeeper, frontend: httpx.AsyncClient, bare_system: System
) -> None:
    file = (await frontend.post("/attachments?name=notes.txt", content=b"Mau is a cat.")).json()
    call = ToolCallRecord(call_id="q:0:0", tool="dice", args={"sides": 6}, result="4", made_by="A")
    await keeper.say(
        "q", attachments=[file["id"], PDF], thinking="Hm.", tool_calls=(call,), model="gemma", tainted=True
    )
    await keeper.record.accept(NewTurn("open", "s", None, "e", "Still?", "{}"))
    async with bare_system.bus("critic") as bus:
        await bus.ready()
        for who, rating in (("A", 1), ("B", -1)):
            feedback = UserFeedback(query_id="q", respondent_id=who, rating=rating, rated_at=1.0)
            await bus.publish(feedback, Trace("q", None, "s"))
        await bus.publish(CritiqueResult(query_id="q", score=4, status="graded"), Trace("q", None, "s"))
        turn, still_open = (await frontend.get("/sessions/s/turns")).json()["turns"]
        while turn["scores"]["critique"] is None:  # it is on its way to the record
            turn, still_open = (await frontend.get("/sessions/s/turns")).json()["turns"]
    assert (turn["thinking"], turn["model"], turn["tainted"], turn["status"]) == ("Hm.", "gemma", True, "answered")
    assert turn["attachments"] == [
        {"id": file["id"], "name": "notes.txt", "media_type": "text/plain", "size": 13},
        {"id": PDF, "name": None, "media_type": None, "size": None},
    ]
    assert (turn["tool_calls"][0]["result"], "made_by" in turn["tool_calls"][0]) == ("4", False)
    assert (turn["scores"]["rating"], turn["scores"]["critique"]["score"]) == (1, 4)
    assert (still_open["status"], still_open["answer"], still_open["usage"]) == ("open", None, None)
    assert "position" not in turn


async def test_two_places_of_a_page_are_refused_and_unknown_ones_not_found(
    keeper: RecordKeeper, frontend: httpx.AsyncClient
) -> None:
    await keeper.say("q")
    refused = await frontend.get("/sessions/s/turns?before=q&around=q")
    assert (refused.status_code, refused.json()["error"]["kind"]) == (422, "invalid")
    for path in ("/sessions/t/turns", "/sessions/s/turns?after=x", "/sessions/t/find?query=x", "/sessions/t/export"):
        assert (await frontend.get(path)).status_code == 404
    assert (await frontend.get("/sessions?cursor=x")).status_code == 422


async def test_a_session_is_named_pinned_found_and_listed(keeper: RecordKeeper, frontend: httpx.AsyncClient) -> None:
    for number in range(3):
        await keeper.say(f"q{number}", f"s{number}", "Which coffee?" if number == 1 else "?")
    named = await frontend.patch("/sessions/s0", json={"title": " Beans ", "pinned": True})
    assert (named.json()["title"], named.json()["pinned"]) == ("Beans", True)
    first = (await frontend.get("/sessions?limit=2")).json()
    rest = (await frontend.get("/sessions", params={"cursor": first["cursor"]})).json()
    assert [each["session_id"] for each in first["sessions"] + rest["sessions"]] == ["s0", "s2", "s1"]
    assert rest["cursor"] is None
    for words, found in (("COFFEE", ["s1"]), ("beans", ["s0"]), ("coffee tea", [])):
        listed = (await frontend.get("/sessions", params={"query": words})).json()["sessions"]
        assert [each["session_id"] for each in listed] == found
    hits = (await frontend.get("/sessions/s1/find?query=coffee")).json()["hits"]
    assert hits == [{"query_id": "q1", "where": "query", "excerpt": "Which coffee?"}]


async def test_sessions_are_sorted_into_folders_tagged_and_archived(
    keeper: RecordKeeper, frontend: httpx.AsyncClient
) -> None:
    for number in range(3):
        await keeper.say(f"q{number}", f"s{number}")
    moved = await frontend.post(
        "/sessions/change",
        json={"session_ids": ["s0", "s1", "nowhere"], "folder": "Travel", "add_tags": ["sea", "sun"]},
    )
    results = moved.json()["results"]
    assert [each["error"] and each["error"]["kind"] for each in results] == [None, None, "not_found"]
    assert (results[0]["session"]["folder"], results[0]["session"]["tags"]) == ("Travel", ["sea", "sun"])
    await frontend.post("/sessions/change", json={"session_ids": ["s1"], "remove_tags": ["sun"], "archived": True})

    async def listed(**wanted: str) -> set[str]:
        return {each["session_id"] for each in (await frontend.get("/sessions", params=wanted)).json()["sessions"]}

    assert await listed() == {"s0", "s2"}
    assert await listed(archived="true") == {"s1"}
    assert await listed(archived="any", folder="Travel", tag="sea") == {"s0", "s1"}
    assert await listed(archived="any", tag="sun") == {"s0"}
    first = (await frontend.get("/sessions?limit=1")).json()
    assert (first["folders"], first["tags"]) == (["Travel"], ["sea", "sun"])
    out = (await frontend.patch("/sessions/s0", json={"folder": None, "tags": []})).json()
    assert (out["folder"], out["tags"]) == (None, [])
    deleted = (await frontend.post("/sessions/delete", json={"session_ids": ["s2", "s2"]})).json()["results"]
    assert [(each["session_id"], each["deleted_turns"], each["error"]) for each in deleted] == [("s2", 1, None)]
    assert await listed(archived="any") == {"s0", "s1"}


async def test_labels_that_are_none_are_refused(keeper: RecordKeeper, frontend: httpx.AsyncClient) -> None:
    wrong: list[Any] = [
        {"folder": "a\u202eb"},
        {"folder": ""},
        {"tags": ["a,b"]},
        {"tags": [str(n) for n in range(17)]},
    ]
    for body in [{}, {"title": ""}, {"title": "a\nb"}, {"title": "x" * 201}, {"pinned": 1}, {"x": 1}, *wrong]:
        await keeper.say("q")
        refused = await frontend.patch("/sessions/s", json=body)
        assert (refused.status_code, refused.json()["error"]["kind"]) == (422, "invalid")


async def test_a_branch_is_made_and_told_by_all_who_come_of_the_same_session(
    keeper: RecordKeeper, frontend: httpx.AsyncClient
) -> None:
    for number in range(3):
        await keeper.say(f"q{number}", answer=f"A{number}")
    made = await frontend.post("/sessions/s/branch", json={"before": "q2"})
    assert made.status_code == 201
    branch_id = made.json()["session_id"]
    assert made.json()["branched_from"] == {"session_id": "s", "query_id": "q2"}
    turns = (await frontend.get(f"/sessions/{branch_id}/turns")).json()["turns"]
    assert [(turn["copy_of"], turn["answer"]) for turn in turns] == [("q0", "A0"), ("q1", "A1")]
    for session_id in ("s", branch_id):
        branches = (await frontend.get(f"/sessions/{session_id}")).json()["branches"]
        assert [(each["session_id"], each["before"]) for each in branches] == [(branch_id, "q2")]
    deleted = await frontend.delete("/sessions/s")
    assert deleted.json()["copied_to"] == [branch_id]


async def test_versions_share_settings_and_are_deleted_together(
    keeper: RecordKeeper, frontend: httpx.AsyncClient
) -> None:
    for number in range(2):
        await keeper.say(f"q{number}")
    made = (await frontend.post("/sessions/s/branch", json={"before": "q1", "version": True})).json()
    assert made["conversation"] == "s"
    own = (await frontend.post("/sessions/s/branch", json={"through": "q1"})).json()["session_id"]
    changed = await frontend.patch(
        f"/sessions/{made['session_id']}", json={"settings": {"temperature": 1, "top_p": 0.5}}
    )
    assert changed.json()["settings"] == {"temperature": 1.0, "top_p": 0.5}
    assert (await frontend.get("/sessions/s")).json()["settings"] == {"temperature": 1.0, "top_p": 0.5}
    for settings in ({"temperature": 3}, {"top_p": 0}, {"max_tokens": 0}, {"instructions": "a\0"}, {"x": 1}):
        assert (await frontend.patch("/sessions/s", json={"settings": settings})).status_code == 422
    for place in ({}, {"before": "q1", "through": "q1"}):
        assert (await frontend.post("/sessions/s/branch", json=place)).status_code == 422
    deleted = (await frontend.delete("/sessions/s?versions=true")).json()
    assert (deleted["deleted_turns"], deleted["copied_to"]) == (3, [own])
    assert [each["session_id"] for each in (await frontend.get("/sessions")).json()["sessions"]] == [own]


async def test_an_export_has_every_turn_as_markdown_or_json(keeper: RecordKeeper, frontend: httpx.AsyncClient) -> None:
    call = ToolCallRecord(call_id="q:0:0", tool="web_search", args={"query": "Mau"}, result="…", sources=("http://a/",))
    for number in range(120):
        await keeper.say(f"q{number}", query=f"Q{number}\n# no heading", answer="long " * 200, tool_calls=(call,))
    await frontend.patch("/sessions/s", json={"title": "Über “Mau” / cats"})
    whole = await frontend.get("/sessions/s/export?format=json")
    assert [turn["query_id"] for turn in whole.json()["turns"]] == [f"q{number}" for number in range(120)]
    assert whole.json()["session"]["title"] == "Über “Mau” / cats"
    text = await frontend.get("/sessions/s/export")
    assert text.headers["content-disposition"] == 'attachment; filename="ber-Mau-cats.md"'
    assert text.text.startswith("# Über “Mau” / cats\n")
    assert text.text.count("> # no heading") == text.text.count('- `web_search(query="Mau")` → http://a/') == 120


async def test_a_session_of_ten_thousand_turns_is_shown_in_one_small_answer(
    keeper: RecordKeeper, frontend: httpx.AsyncClient
) -> None:
    outcome = ResponseGeneration(query_id="q", status="answered", query="Q", answer="A").encode().decode()
    row = f"'A', 's', 'e', 'Q', '{{}}', 1, 'answered', '[]', 'A', 'response.generation', '{outcome}', 1, 1.0, 1.0"
    await keeper.record.write(
        lambda db: db.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000) INSERT INTO turns"
            " (query_id, respondent_id, session_id, envelope_id, query, body, in_history, status, tools, answer,"
            f" outcome_subject, outcome, published, created_at, finished_at) SELECT 'q' || i, {row} FROM n"
        )
    )
    shown = await frontend.get("/sessions/s")
    assert (len(shown.json()["turns"]), shown.json()["total"], len(shown.content) < 100_000) == (50, 10_000, True)
    page = await frontend.get("/sessions/s/turns?before=q5001")
    assert (ids(page)[0], ids(page)[-1]) == ("q4951", "q5000")


EXPORTED = {
    "id": "w-1", "title": "Tea\u202e", "chat": {"messages": [
        {"role": "user", "content": "How long?", "timestamp": 1_700_000_000},
        {"role": "assistant", "content": "Three minutes.", "timestamp": 1_700_000_009, "model": "gemma"},
        {"role": "user", "content": "And green tea?"},
    ]},
}  # fmt: skip


async def test_a_file_of_another_program_is_imported_once_and_is_untrusted(
    keeper: RecordKeeper, frontend: httpx.AsyncClient
) -> None:
    await keeper.say("q", "own")
    own = (await frontend.get("/sessions/own/export?format=json")).json()
    content = json.dumps([EXPORTED, own, {"x": 1}]).encode()
    told = (await frontend.post("/sessions/import?preview=true", content=content)).json()
    assert (told["found"], told["new"], told["known"], told["turns"], told["imported"]) == (2, 1, 1, 2, 0)
    assert (told["sources"], told["conversations"][0]["title"]) == (["LoCAL2", "Open WebUI"], "Tea")
    assert told["left_out"] == [
        {"title": "", "reason": "1 of 3 items: not a conversation, but an object with the fields 'x'"}
    ]
    assert len((await frontend.get("/sessions")).json()["sessions"]) == 1
    assert (await frontend.post("/sessions/import", content=content)).json()["imported"] == 1
    [_, row] = (await frontend.get("/sessions")).json()["sessions"]
    assert (row["title"], row["imported_from"], row["turns"]) == ("Tea", "Open WebUI", 2)
    assert (row["updated_at"], row["renamed"]) == (1_700_000_009.0, False)
    first, last = (await frontend.get(f"/sessions/{row['session_id']}/turns")).json()["turns"]
    assert (first["query"], first["answer"], first["model"], first["tainted"]) == (
        "How long?", "Three minutes.", "gemma", True,
    )  # fmt: skip
    assert (last["query"], last["answer"], last["status"]) == ("And green tea?", "", "cancelled")
    again = (await frontend.post("/sessions/import", content=content)).json()
    assert (again["imported"], again["known"]) == (0, 2)
    assert (await frontend.delete(f"/sessions/{row['session_id']}")).json()["deleted_turns"] == 2
    assert (await frontend.post("/sessions/import", content=content)).json()["imported"] == 1


WAITS = """
import os, sys, time
from pathlib import Path
Path(sys.argv[1]).write_text(str(os.getpid()))
time.sleep(1000)
"""


async def test_a_file_that_is_read_for_long_holds_up_nobody_else_and_ends_with_its_client(
    keeper: RecordKeeper, frontend: httpx.AsyncClient, tmp_path: Path, until: Any
) -> None:
    told = tmp_path / "pid"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(import_routes, "WORKER", (sys.executable, "-c", WAITS, str(told)))
        reading = asyncio.create_task(frontend.post("/sessions/import?user_id=ann", content=b"[]"))
        await until(lambda: told.exists() and told.read_text())
    content = json.dumps([EXPORTED]).encode()
    assert (await frontend.post("/sessions/import?user_id=ben", content=content)).json()["imported"] == 1
    busy = await frontend.post("/sessions/import?user_id=ann", content=content)
    assert (busy.status_code, busy.json()["error"]["kind"]) == (429, "busy")
    reading.cancel()
    await until(lambda: not psutil.pid_exists(int(told.read_text())))


async def test_a_file_that_is_none_or_too_large_is_refused(keeper: RecordKeeper, frontend: httpx.AsyncClient) -> None:
    refused = await frontend.post("/sessions/import", content=b"<html>")
    assert (refused.status_code, refused.json()["error"]["kind"]) == (422, "invalid")
    assert "begins with '<html>'; expected an export of ChatGPT" in refused.json()["error"]["message"]

    async def too_much() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b"x" * 1000

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("local.api.security.MAX_IMPORT", 2000)
        for content in (too_much(), b"x" * 2001):
            refused = await frontend.post("/sessions/import", content=content)
            assert (refused.status_code, refused.json()["error"]["kind"]) == (413, "too_large")
