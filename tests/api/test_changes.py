"""The routes under /changes, with a test double that changes files."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import httpx
import pytest

from local.bus.envelope import Envelope
from local.bus.message import ErrorInfo
from local.files.messages import ChangedFile, ChangeRequest, ChangeResult
from local.runtime.participant import on
from tests.api.hand_played import HandPlayed

System = Any  # of conftest.py
CHANGE: dict[str, Any] = {
    "path": "a.txt", "what": "changed", "tool": "edit_file", "call_id": "q:0:0", "query_id": "q", "session_id": "s",
    "at": 5.0, "undone": False, "diff": "-a",
}  # fmt: skip


class Files(HandPlayed):
    """Has changed one file."""

    name = "files"

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[ChangeRequest] = []

    @on(ChangeRequest)
    async def answer(self, request: ChangeRequest, envelope: Envelope) -> ChangeResult:
        self.asked.append(request)
        if request.call_id == "late":
            return ChangeResult(verb=request.verb, error=ErrorInfo(kind="changed", message="'a.txt' was changed since"))
        return ChangeResult(verb=request.verb, workspace="/w", changes=(ChangedFile.model_validate(CHANGE),))


@pytest.fixture
async def files(system: System) -> AsyncIterator[Files]:
    files = Files()
    async with system.host(files):
        yield files


async def test_changes_are_listed_and_those_of_a_call_are_shown(client: httpx.AsyncClient, files: Files) -> None:
    answer = await client.get("/changes", params={"limit": 3})
    assert (answer.status_code, answer.json()) == (200, {"workspace": "/w", "changes": [CHANGE]})
    await client.get("/changes", params={"call_id": "q:0:0"})
    await client.get("/changes", params={"query_id": "q"})
    assert [(each.verb, each.call_id, each.query_id, each.limit) for each in files.asked] == [
        ("list", None, None, 3), ("show", "q:0:0", None, 100), ("show", None, "q", 100),
    ]  # fmt: skip


async def test_a_call_a_turn_or_a_day_is_undone(client: httpx.AsyncClient, files: Files) -> None:
    answer = await client.post("/changes/undo", json={"call_id": "q:0:0"})
    assert (answer.status_code, answer.json()["undone"]) == (200, [CHANGE])
    await client.post("/changes/undo", json={"query_id": "q"})
    await client.post("/changes/undo", json={"day": "2026-11-22"})
    called, turned, day = files.asked
    assert (called.verb, called.call_id, called.query_id, called.since) == ("undo", "q:0:0", None, None)
    assert turned.query_id == "q"
    begins, ends = datetime(2026, 11, 22), datetime(2026, 11, 23)
    assert (day.since, day.until) == (begins.timestamp(), ends.timestamp())


async def test_what_was_changed_since_is_a_conflict(client: httpx.AsyncClient, files: Files) -> None:
    answer = await client.post("/changes/undo", json={"call_id": "late"})
    assert (answer.status_code, answer.json()["error"]["kind"]) == (409, "changed")


async def test_an_undo_names_one_thing(client: httpx.AsyncClient, files: Files) -> None:
    for body in [{}, {"call_id": "a", "query_id": "q"}, {"day": "yesterday"}, {"call_id": ""}]:
        assert (await client.post("/changes/undo", json=body)).status_code == 422
        assert files.asked == []


async def test_where_nobody_changes_files_the_answer_says_how_to_have_it(
    client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("local.api.clients.UNSEEN_SECONDS", 0.05)
    answer = await client.get("/changes")
    assert answer.status_code == 503
    assert "`files` is among the `participants`" in answer.json()["error"]["message"]


async def test_a_day_that_no_clock_can_tell_is_invalid(client: httpx.AsyncClient, files: Files) -> None:
    for day in ["0001-01-01", "1969-12-31", "9998-12-31T00:00:01", "9999-01-01", "9999-12-31"]:
        answer = await client.post("/changes/undo", json={"day": day})
        assert (answer.status_code, answer.json()["error"]["kind"]) == (422, "invalid")
        assert answer.json()["error"]["message"].startswith("day: ")
        assert not files.asked


@pytest.mark.parametrize("day", ["1970-01-01", "9998-12-31"])
async def test_the_first_day_and_the_last_can_be_asked_for(client: httpx.AsyncClient, files: Files, day: str) -> None:
    assert (await client.post("/changes/undo", json={"day": day})).status_code == 200
