"""What the stores say of taint that are older than the rule."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from local.core.database import migrate
from local.generator.history import (
    END,
    FEW_TURNS,
    MIGRATIONS,
    ConversationService,
    EarlierRecord,
    NewTurn,
    TaintRecord,
    TurnStatus,
    past_of,
)
from local.memory.store import FILE_NAME, EngramStore
from local.memory.store import MIGRATIONS as ENGRAM_MIGRATIONS

ANSWERED = {
    "nothing called": ({}, {"answer": "Yes."}, False),
    "no calls": ({}, {"answer": "Yes.", "tool_calls": []}, False),
    "a page read": ({}, {"answer": "Yes.", "tool_calls": [{"tool": "web_fetch"}]}, True),
    "any other tool called": ({}, {"answer": "Yes.", "tool_calls": [{"tool": "dice"}]}, True),
    "a file attached": ({"attachments": ["f1"]}, {"answer": "Yes."}, True),
    "no files attached": ({"attachments": []}, {"answer": "Yes."}, False),
    "cannot be read": ("{", "{", False),
    "no end yet": ({}, None, False),
}


def before(table: str, migrations: Sequence[str]) -> Sequence[str]:
    """The migrations that come before the one which speaks of this first."""
    return migrations[: next(number for number, script in enumerate(migrations) if table in script)]


def written(value: Any) -> Any:
    return value if value is None or isinstance(value, str) else json.dumps(value)


async def test_sessions_from_before_have_the_taint_that_their_calls_and_files_tell_of(tmp_path: Path) -> None:
    path = tmp_path / "conversation.db"
    with closing(sqlite3.connect(path)) as db, db:
        migrate(db, before("taints", MIGRATIONS))
        for session, (body, outcome, _) in ANSWERED.items():
            db.execute(
                "INSERT INTO turns (query_id, respondent_id, session_id, envelope_id, query, body, in_history, status,"
                " tools, answer, outcome_subject, outcome, published, created_at) VALUES"
                " (?, 'A', ?, 'e', 'Yes?', ?, 1, 'answered', '[]', 'Yes.', 'response.generation', ?, 1, 1.0)",
                (session, session, written(body), written(outcome)),
            )
    async with ConversationService(path, "A") as conversation:
        found = {
            session: await conversation.write(lambda db, key=session: past_of(db, "A", key, END).tainted)
            for session in ANSWERED
        }
        own = await TaintRecord(conversation, "A").is_history_tainted([{"role": "assistant", "content": "Yes."}])
    assert found == {session: tainted for session, (_, _, tainted) in ANSWERED.items()}
    assert own  # by their text they are not known: to a client's history they are answers of nobody's


@pytest.mark.parametrize(("origin", "tainted"), [("user", 0), ("assistant", 0), ("web", 1), ("tool", 1)])
async def test_memories_from_before_have_the_taint_that_the_origins_of_their_session_tell_of(
    tmp_path: Path, origin: str, tainted: int
) -> None:
    path = tmp_path / FILE_NAME
    with closing(sqlite3.connect(path)) as db, db:
        migrate(db, before("tainted", ENGRAM_MIGRATIONS))
        for number, (session, kind) in enumerate([("s1", "assistant"), ("s1", origin), ("s2", "assistant")]):
            db.execute(
                "INSERT INTO engrams (engram_id, query_id, respondent_id, session_id, user_id, query, answer, origin,"
                " asked_at, language, searchable, recalled) VALUES (?, ?, 'A', ?, 'owner', 'q', 'a', ?, 1.0, 'en', 1,"
                " '[]')",
                (f"e{number}", f"q{number}", session, kind),
            )
    async with EngramStore(tmp_path):
        pass
    with closing(sqlite3.connect(path)) as db:
        found = [row[0] for row in db.execute("SELECT tainted FROM engrams ORDER BY number")]
    assert found == [tainted, tainted, 0]


async def said_in_session(folder: Path, turns: int) -> EarlierRecord:
    """What is found of so many turns."""
    async with ConversationService(folder / "conversation.db", "A") as conversation:
        for number in range(turns):
            query_id, body = f"q{number}", json.dumps({"attachments": [f"f{number}"]})
            await conversation.accept(NewTurn(query_id, "s", None, f"e{number}", f"question {number}", body))
            await conversation.finish(query_id, TurnStatus.ANSWERED, "Yes.", "response.generation", f'"{number}"')
        return await TaintRecord(conversation, "A").turns_of("s")


@pytest.mark.parametrize("turns", [0, 1, FEW_TURNS, FEW_TURNS + 1])
async def test_what_the_turns_of_a_session_say_is_found_however_many_there_are(tmp_path: Path, turns: int) -> None:
    found = await said_in_session(tmp_path, turns)
    assert found == EarlierRecord(
        queries=tuple(f"question {number}" for number in range(turns)),
        outcomes=tuple(f'"{number}"' for number in range(turns)),
        attachments=tuple(f"f{number}" for number in range(turns)),
    )


async def test_few_turns_are_read_without_waiting_for_what_is_being_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ConversationService, "write", None)
    found = await said_in_session(tmp_path, FEW_TURNS)
    assert len(found.queries) == FEW_TURNS
