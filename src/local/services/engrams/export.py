"""Everything that is kept of a user, as lines of JSON."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import AsyncGenerator
from dataclasses import asdict
from functools import partial

from local.services.engrams import record
from local.services.engrams.engram import Fact
from local.services.engrams.schema import stored_engram
from local.services.engrams.store import EngramStore

_PAGE = 200


async def lines(store: EngramStore, user_id: str) -> AsyncGenerator[str, None]:
    """{"kind": "engram", …, "changes": […]} for each engram, then {"kind": "fact", …} for each fact, oldest first.

    Times are in seconds since 1970. Each page is of one moment; what is stored meanwhile comes at the end.
    """
    for page in (_engrams, _facts):
        last, rows = 0, ["…"]
        while rows:
            rows, last = await store.read(partial(page, user_id=user_id, after=last))
            for row in rows:
                yield row


def _engrams(db: sqlite3.Connection, user_id: str, after: int) -> tuple[list[str], int]:
    sql = "SELECT * FROM engrams WHERE user_id = ? AND number > ? ORDER BY number LIMIT ?"
    rows = db.execute(sql, (user_id, after, _PAGE)).fetchall()
    told = []
    for row in rows:
        engram = stored_engram(row)
        changes = [asdict(change) for change in record.changes(db, user_id, engram.engram_id)]
        told.append(_line({"kind": "engram", **asdict(engram), "changes": changes}))
    return told, rows[-1]["number"] if rows else after


def _facts(db: sqlite3.Connection, user_id: str, after: int) -> tuple[list[str], int]:
    sql = (
        "SELECT fact_id, facts.user_id, engram_id, slot, value, stated_at, facts.superseded_by, superseded_at"
        " FROM facts JOIN engrams USING (number) WHERE facts.user_id = ? AND fact_id > ? ORDER BY fact_id LIMIT ?"
    )
    rows = db.execute(sql, (user_id, after, _PAGE)).fetchall()
    return [_line({"kind": "fact", **asdict(Fact(*row))}) for row in rows], rows[-1]["fact_id"] if rows else after


def _line(record: dict[str, object]) -> str:
    return json.dumps(record, ensure_ascii=False)
