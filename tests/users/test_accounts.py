"""GET /usage, /activity and /logs: counted from the record, told to whom it belongs."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx

from local.api.usage import FILE_NAME
from local.bus.envelope import Trace
from local.bus.messages import SessionDeleted
from local.core.data_dir import make_owner_token
from local.core.users import Users
from local.journal.messages import JournalRedact, JournalRedacted
from local.memory.messages import MemoryDeleted

System = Any  # of conftest.py


async def ask(client: httpx.AsyncClient, query_id: str, session: str, headers: dict[str, str] | None = None) -> None:
    body = {"query": "hello", "query_id": query_id, "session_id": session}
    assert (await client.post("/query", json=body, headers=headers)).status_code == 200


async def told(client: httpx.AsyncClient, path: str, headers: dict[str, str] | None = None) -> Any:
    answer = await client.get(path, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_usage_is_what_is_on_record_now_of_whoever_asks(system: System) -> None:
    folder: Path = system.journal_file.parent
    ann = {"authorization": f"Bearer {Users(folder).add('ann')}"}
    owner = {"authorization": f"Bearer {make_owner_token(folder)}"}
    async with system.frontend() as client, system.bus("deleter", journaled=True) as bus:
        await bus.ready()
        assert await told(client, "/usage", owner) == {"by": ["day"], "rows": [], "total": None, "budgets": []}
        await ask(client, "q1", "s1", owner)
        await ask(client, "q2", "s2", ann)
        await system.on_record("q1", "q2")
        found = await told(client, "/usage?by=user&by=session", owner)
        assert [(row["user"], row["session"], row["prompt_tokens"]) for row in found["rows"]] == [
            ("", "s1", 7), ("ann", "s2", 7),
        ]  # fmt: skip
        assert (found["total"]["answers"], found["total"]["completion_tokens"]) == (2, 6)
        assert (await told(client, "/usage", ann))["total"]["answers"] == 1
        await bus.request(JournalRedact(session_id="s1"), JournalRedacted, 20)
        await bus.publish(SessionDeleted(deleted_session_id="s1"), Trace("d", None, "s1"))
        await ask(client, "q3", "s3", owner)
        await system.on_record("q3")
        after = await told(client, "/usage?by=session", owner)
        assert [row["session"] for row in after["rows"]] == ["s2", "s3"]


async def test_activity_is_the_latest_first_in_pages_or_all_of_it_as_lines(system: System) -> None:
    folder: Path = system.journal_file.parent
    ann = {"authorization": f"Bearer {Users(folder).add('ann')}"}
    owner = {"authorization": f"Bearer {make_owner_token(folder)}"}
    async with system.frontend() as client:
        for number in range(3):
            await ask(client, f"q{number}", "s", owner)
        await ask(client, "q-ann", "s-ann", ann)
        await system.on_record("q2", "q-ann")
        first = await told(client, "/activity?kind=query&limit=2", owner)
        assert [line["query_id"] for line in first["activity"]] == ["q-ann", "q2"]
        rest = await told(client, f"/activity?kind=query&limit=2&before={first['before']}", owner)
        assert ([line["query_id"] for line in rest["activity"]], rest["before"]) == (["q1", "q0"], None)
        [mine] = (await told(client, "/activity", ann))["activity"]
        assert (mine["kind"], mine["what"], mine["origin"], mine["user_id"]) == ("query", "hello", "user", "ann")
        by_frontend = await told(client, "/activity?participant=api&limit=2", owner)
        assert [line["query_id"] for line in by_frontend["activity"]] == ["q-ann", "q2"]
        assert (await told(client, "/activity?participant=generator", owner))["activity"] == []
        lines = await client.get("/activity?format=ndjson&session=s", headers=owner)
        assert [json.loads(line)["query_id"] for line in lines.text.splitlines()] == ["q2", "q1", "q0"]
        assert len({json.loads(line)["number"] for line in lines.text.splitlines()}) == 3  # whatever was stored at once
        own = await client.get("/activity?format=ndjson", headers=ann)
        assert [json.loads(line)["query_id"] for line in own.text.splitlines()] == ["q-ann"]
        assert (await client.get("/activity?kind=gossip", headers=owner)).status_code == 422


async def test_the_log_is_told_to_the_owner_as_it_was_asked_for(system: System, client: httpx.AsyncClient) -> None:
    folder: Path = system.journal_file.parent
    (folder / "logs").mkdir()
    (folder / "logs" / "local2.log").write_text(
        "2026-11-21 12:00:00.000 info generator q1 begun\n"
        "2026-11-21 12:00:01.000 warning web_search q1 slow\n"
        "2026-11-21 12:00:02.000 warning generator - tired\n"
    )
    found = await told(client, "/logs?level=warning&participant=generator")
    assert [line["message"] for line in found["lines"]] == ["tired"]
    lines = await client.get("/logs?query=q1&limit=1&format=ndjson")
    assert [json.loads(line)["message"] for line in lines.text.splitlines()] == ["slow"]


async def test_usage_is_kept_beside_the_journal_and_follows_it_when_it_is_another_one(system: System) -> None:
    folder: Path = system.journal_file.parent
    owner = {"authorization": f"Bearer {make_owner_token(folder)}"}

    async def sessions(client: httpx.AsyncClient) -> list[str]:
        return [row["session"] for row in (await told(client, "/usage?by=session", owner))["rows"]]

    async with system.frontend() as client, system.bus("deleter", journaled=True) as bus:
        await bus.ready()
        for number in (1, 2, 3):
            await ask(client, f"q{number}", f"s{number}", owner)
        await system.on_record("q1", "q2", "q3")
        assert await sessions(client) == ["s1", "s2", "s3"]
    with closing(sqlite3.connect(folder / FILE_NAME)) as db:  # counted before: it is not read from the journal again
        db.execute("UPDATE used SET session = 'kept' WHERE session = 's1'")
        db.commit()
    async with system.frontend() as client, system.bus("deleter", journaled=True) as bus:
        await bus.ready()
        assert await sessions(client) == ["kept", "s2", "s3"]
        await bus.request(JournalRedact(query_id="q2"), JournalRedacted, 20)
        await bus.publish(MemoryDeleted(engram_id="e" * 32, query_id="q2"), Trace("d"))
        await ask(client, "q4", "s4", owner)
        await system.on_record("q4")
        assert await sessions(client) == ["kept", "s3", "s4"]
    with closing(sqlite3.connect(folder / FILE_NAME)) as db:
        db.execute("UPDATE place SET envelope_id = 'of another journal'")
        db.commit()
    async with system.frontend() as client:
        assert await sessions(client) == ["s1", "s3", "s4"]
    (folder / FILE_NAME).write_bytes(b"no database " * 1000)
    async with system.frontend() as client:
        assert await sessions(client) == ["s1", "s3", "s4"]
