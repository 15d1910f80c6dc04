"""Everything that is kept of a user, as pages of lines of JSON.

{"kind": "engram", …, "changes": […]} for each engram, then {"kind": "fact", …} for each fact, oldest first. Times
are in seconds since 1970. Each page is of one moment; what is stored meanwhile comes at the end.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import asdict

from local.services.engrams import record
from local.services.engrams.facts import stored_fact
from local.services.engrams.store import stored_engram

PAGE_BYTES = 48_000  # of a page of several lines: what is larger does not travel within a frame, but through a file
_PAGE_LINES = 200
_CURSOR = re.compile(r"(engram|fact):(\d{1,18})")
Lines = Iterator[tuple[int, str]]  # with their numbers


def page(db: sqlite3.Connection, user_id: str, cursor: str) -> tuple[list[str], str]:
    """A page and the cursor of the next one, empty after the last. Raises `ValueError` for a cursor that is none."""
    found = _CURSOR.fullmatch(cursor or "engram:0")
    if found is None:
        raise ValueError(f"{cursor[:80]!r} is no cursor of an export; begin without one")
    kind, after = found[1], int(found[2])
    lines, last = _cut((_engrams if kind == "engram" else _facts)(db, user_id, after))
    if lines:
        return lines, f"{kind}:{last}"
    return ([], "") if kind == "fact" else page(db, user_id, "fact:0")


def _cut(numbered: Iterable[tuple[int, str]]) -> tuple[list[str], int]:
    lines, last, room = list[str](), 0, PAGE_BYTES
    for number, line in numbered:
        room -= len(line.encode(errors="replace"))
        if room < 0 and lines:
            break
        lines.append(line)
        last = number
    return lines, last


def _engrams(db: sqlite3.Connection, user_id: str, after: int) -> Lines:
    sql = "SELECT * FROM engrams WHERE user_id = ? AND number > ? ORDER BY number LIMIT ?"
    for row in db.execute(sql, (user_id, after, _PAGE_LINES)).fetchall():
        engram = stored_engram(row)
        changes = [asdict(change) for change in record.changes(db, user_id, engram.engram_id)]
        yield row["number"], _line({"kind": "engram", **asdict(engram), "changes": changes})


def _facts(db: sqlite3.Connection, user_id: str, after: int) -> Lines:
    sql = (
        "SELECT facts.*, engram_id FROM facts JOIN engrams USING (number)"
        " WHERE facts.user_id = ? AND fact_id > ? ORDER BY fact_id LIMIT ?"
    )
    for row in db.execute(sql, (user_id, after, _PAGE_LINES)).fetchall():
        yield row["fact_id"], _line({"kind": "fact", **asdict(stored_fact(row))})


def _line(record: dict[str, object]) -> str:
    return json.dumps(record, ensure_ascii=False)
