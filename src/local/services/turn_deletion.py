"""What is removed from a respondent's turns when users delete something. In the caller's transaction."""

from __future__ import annotations

import json
import sqlite3
from typing import Any, NamedTuple

UNKNOWN = "?"  # in place of an engram's id
FORGOTTEN = "[a memory that was deleted]"
SESSION, QUERY = "session_id", "query_id"  # what may be deleted
_HOLDERS = (("turns", "outcome", "position"), ("steps", "body", "number"), ("results", "body", "call_id"))


class NamedFile(NamedTuple):
    """A file that a deleted query of a user has named, and no other one of this user; `is_last` says that there is no
    query of anybody's left that names it."""

    attachment_id: str
    user_id: str | None
    is_last: bool


def source_of(engram_id: str) -> str:
    """What stands among the sources of a tool's result that has recalled an engram."""
    return f"engram:{engram_id}"


def delete_turns(db: sqlite3.Connection, respondent_id: str, what: str, key: str, *, spare: str = "") -> int:
    """Remove the turns of a session or a query, with all that hangs on them; returns how many.

    Those of the status `spare` stay. The summary of their session goes, as nobody can tell what of them is in it. What
    branches have copied goes with a query, for as long as that is there itself, and stays when its session goes.
    """
    sql = f"SELECT query_id, session_id FROM turns WHERE {what} = ? AND respondent_id = ? AND status != ?"
    doomed = db.execute(sql, (key, respondent_id, spare)).fetchall()
    if what == QUERY and doomed:
        copies = "SELECT query_id, session_id FROM turns WHERE copy_of = ? AND respondent_id = ?"
        doomed += db.execute(copies, (key, respondent_id)).fetchall()
    sessions = {row["session_id"] for row in doomed} | ({key} if what == SESSION else set())
    for session_id in sessions:
        db.execute("DELETE FROM summaries WHERE session_id = ? AND respondent_id = ?", (session_id, respondent_id))
    for table in ("labels", "branches", "tool_lists") if what == SESSION else ():
        db.execute(f"DELETE FROM {table} WHERE session_id = ? AND respondent_id = ?", (key, respondent_id))
    for table in ("steps", "results", "cancels", "taints", "written", "exchanges", "turns"):
        keys = [(row["query_id"], respondent_id) for row in doomed]
        db.executemany(f"DELETE FROM {table} WHERE query_id = ? AND respondent_id = ?", keys)
    return len(doomed)


def sessions_with(db: sqlite3.Connection, respondent_id: str, query_id: str) -> set[str]:
    """The session of a query, and those that branches have copied it to."""
    sql = "SELECT session_id FROM turns WHERE {} = ? AND respondent_id = ?"
    key = (query_id, respondent_id)
    return {row["session_id"] for which in ("query_id", "copy_of") for row in db.execute(sql.format(which), key)}


def attachments_of(db: sqlite3.Connection, what: str, key: str) -> set[NamedFile]:
    """The attachments that the queries of a session, or one query, name and no other stored query of the same user."""
    named: set[tuple[str, str | None]] = set()
    for row in db.execute(f"SELECT body, user_id FROM turns WHERE {what} = ?", (key,)).fetchall():
        named.update((each, row["user_id"]) for each in json.loads(row["body"]).get("attachments", ()))
    elsewhere = f"SELECT DISTINCT user_id FROM turns WHERE instr(body, :file) AND {what} != :key"
    if what == QUERY:
        elsewhere += " AND copy_of IS NOT :key"  # its copies go with it
    found = {each: {row["user_id"] for row in db.execute(elsewhere, {"file": each, "key": key})} for each, _ in named}
    return {NamedFile(each, user, not found[each]) for each, user in named if user not in found[each]}


def is_recalled_by_open_turn(db: sqlite3.Connection, respondent_id: str, engram_id: str) -> bool:
    """Whether a turn that still runs has an engram among its results."""
    sql = " UNION ".join(
        f"SELECT 1 FROM turns JOIN {table} USING (query_id, respondent_id)"
        f" WHERE respondent_id = :respondent AND status = 'open' AND instr({table}.body, :source)"
        for table in ("steps", "results")
    )
    found = db.execute(sql, {"respondent": respondent_id, "source": source_of(engram_id)}).fetchone()
    return found is not None


def forget_recalled(db: sqlite3.Connection, respondent_id: str, engram_id: str) -> int:
    """Take the text from the results of tools that have recalled an engram; returns how many turns, steps and single
    results were changed. What the model was sent of an exchange goes as a whole: its question and answer stay. So does
    what was sent of facts of which nobody knows from which engram they are."""
    source, changed = source_of(engram_id), 0
    sent = "DELETE FROM exchanges WHERE respondent_id = ? AND (instr(body, ?) OR instr(body, ?))"
    changed += db.execute(sent, (respondent_id, source, source_of(UNKNOWN))).rowcount
    for table, column, number in _HOLDERS:
        found = f"SELECT query_id, {number}, {column} FROM {table} WHERE respondent_id = ? AND instr({column}, ?)"
        change = f"UPDATE {table} SET {column} = ? WHERE query_id = ? AND {number} = ? AND respondent_id = ?"
        for query_id, which, body in db.execute(found, (respondent_id, source)).fetchall():
            without = json.dumps(_without(json.loads(body), source), ensure_ascii=False)
            db.execute(change, (without, query_id, which, respondent_id))
            changed += 1
    return changed


def _without(value: Any, source: str) -> Any:
    """JSON in which every result with this source has lost its text."""
    if isinstance(value, list):
        return [_without(each, source) for each in value]
    if not isinstance(value, dict):
        return value
    if source in value.get("sources", ()):
        sources = [each for each in value["sources"] if each != source]
        return {**value, "result": FORGOTTEN, "sources": sources}
    return {key: _without(each, source) for key, each in value.items()}
