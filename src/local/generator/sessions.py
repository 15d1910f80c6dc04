"""Sessions that begin with the turns of another one, up to where they branch off. In the caller's transaction.

The turns are copied, under their own ids: questions and deletions in a branch do not change the original session. The
branch keeps its copies when that session is deleted.
"""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from local.bus.messages import SessionImported
from local.core import text as text_search
from local.core.errors import BadCursor, NotOnRecord, SessionExists, TurnStillOpen
from local.core.text import Needle, TextHit, excerpt, find_in_session, matches
from local.generator.history import SAID, ConversationService, SessionHead, TurnPage, TurnPlace, head_of, page_of
from local.generator.imports import put_imported

_NAMESPACE = uuid.UUID("6c0f0a35-9d0b-4f0e-8a0c-51f1f2a3c7de")
_COPIED = (
    "query_id, respondent_id, session_id, user_id, envelope_id, query, body, in_history, status, attempt, tools,"
    " answer, outcome_subject, outcome, published, created_at, finished_at, incognito, copy_of, model"
)
_SIZE = (
    "SELECT coalesce(sum(length(CAST(body AS BLOB)) + coalesce(length(CAST(outcome AS BLOB)), 0)), 0) FROM turns"
    " WHERE user_id = ?"
)
_COPY = (
    f"INSERT OR IGNORE INTO turns ({_COPIED}) SELECT :copy, respondent_id, :branch, user_id, :copy, query,"
    " json_set(body, '$.query_id', :copy, '$.session_id', :branch), in_history, status, attempt, tools, answer,"
    " outcome_subject, json_set(outcome, '$.query_id', :copy, '$.session_id', :branch), 1, created_at, finished_at,"
    " incognito, coalesce(copy_of, query_id), model FROM turns WHERE position = :position"
)
_TAINT = (
    "INSERT OR IGNORE INTO taints SELECT :copy, :own, :branch FROM taints"
    " WHERE query_id = :old AND respondent_id = :own"
)
_SENT = (
    "INSERT OR IGNORE INTO exchanges SELECT :copy, :own, body FROM exchanges"
    " WHERE query_id = :old AND respondent_id = :own"
)
_OPENED = (
    "INSERT OR IGNORE INTO opened SELECT :copy, :own, :branch, address FROM opened"
    " WHERE query_id = :old AND respondent_id = :own"
)
_TITLED = (
    "INSERT OR IGNORE INTO titles SELECT :copy, :own, :branch, title FROM titles"
    " WHERE query_id = :old AND respondent_id = :own"
)
_IMPORTED = (
    "INSERT OR IGNORE INTO imports SELECT ?, respondent_id, source, origin_id, imported_at FROM imports"
    " WHERE session_id = ? AND respondent_id = ?"
)
_FAMILY = (
    "WITH RECURSIVE up(id) AS (SELECT :session UNION SELECT branched_from FROM branches JOIN up ON session_id = up.id"
    " WHERE respondent_id = :own), family(id) AS (SELECT id FROM up UNION SELECT session_id FROM branches"
    " JOIN family ON branched_from = family.id WHERE respondent_id = :own)"
    " SELECT session_id, branched_from, before, version_of, (SELECT query_id FROM turns WHERE turns.session_id ="
    " branches.session_id AND turns.respondent_id = :own AND copy_of IS NULL AND refused IS NULL"
    " ORDER BY position LIMIT 1) AS first FROM branches WHERE respondent_id = :own"
    " AND session_id IN (SELECT id FROM family) ORDER BY branched_at, session_id"
)


class BranchPoint(NamedTuple):
    """The place where a branch leaves a session: `before` a query, which is not copied, or after one (`through`). With
    the session's user.
    """

    session_id: str
    before: str
    user_id: str | None
    incognito: bool
    through: str = ""

    @property
    def query_id(self) -> str:
        """The query that it is before or behind."""
        return self.before or self.through


class NewBranch(NamedTuple):
    """A session that begins with the turns before a point. `branched_at` is seconds since 1970; `version_of` is the
    conversation that it is another version of, empty for none, None where that was not yet recorded."""

    session_id: str
    point: BranchPoint
    branched_at: float
    version_of: str | None = None


def branch_point(
    db: sqlite3.Connection, respondent_id: str, session_id: str, before: str, through: str = ""
) -> BranchPoint:
    """Before a copied query it is where the session is left that it was copied from, if there is that still; behind
    one, `through`, likewise.

    Raises `NotOnRecord`, and `TurnStillOpen` while one of the turns has no end that would be copied.
    """
    head = head_of(db, respondent_id, session_id)
    query_id = before or through
    found = _turn(db, respondent_id, query_id)
    if found is None or found["session_id"] != session_id or found["refused"] is not None:
        raise NotOnRecord(f"there is no query {query_id} in session {session_id}")
    original = _turn(db, respondent_id, found["copy_of"]) if found["copy_of"] else None
    place = original or found
    sql = "SELECT query_id FROM turns WHERE session_id = ? AND respondent_id = ? AND position < ? AND status = 'open'"
    end = place["position"] + (0 if before else 1)
    still_open = db.execute(sql, (place["session_id"], respondent_id, end)).fetchone()
    if still_open is not None:
        raise TurnStillOpen(session_id, still_open["query_id"])
    at = place["query_id"]
    return BranchPoint(place["session_id"], at if before else "", head.user_id, head.incognito, "" if before else at)


def require_new(db: sqlite3.Connection, respondent_id: str, session_id: str, point: BranchPoint) -> bool:
    """Whether there is no such session yet; False for this very branch. Raises `SessionExists` for any other one."""
    key = (session_id, respondent_id)
    row = db.execute("SELECT * FROM branches WHERE session_id = ? AND respondent_id = ?", key).fetchone()
    if row is not None and (row["branched_from"], row["before"], row["user_id"], row["through"]) == (
        *point[:3],
        point.through,
    ):
        return False
    if row is not None or db.execute("SELECT 1 FROM turns WHERE session_id = ? AND respondent_id = ?", key).fetchone():
        raise SessionExists(session_id)
    return True


def branch(db: sqlite3.Connection, respondent_id: str, new: NewBranch) -> None:
    """Make the new session, with this record's turns of the original; without effect if it exists already."""
    point, own = new.point, respondent_id
    row = (
        new.session_id, own, point.user_id, point.incognito, point.session_id, point.before, new.branched_at,
        point.through, new.version_of,
    )  # fmt: skip
    if not db.execute("INSERT OR IGNORE INTO branches VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row).rowcount:
        return
    _copy_labels(db, own, new)
    place = _turn(db, own, point.query_id)
    if place is None or place["session_id"] != point.session_id:
        return
    key = (point.session_id, own, place["position"] + (0 if point.before else 1))
    where = "FROM turns WHERE session_id = ? AND respondent_id = ? AND position < ?"
    ended = f"SELECT position, query_id {where} AND status != 'open' AND refused IS NULL ORDER BY position"
    for turn in db.execute(ended, key).fetchall():
        copied = {"copy": copy_id(new.session_id, turn["query_id"]), "branch": new.session_id, "own": own}
        db.execute(_COPY, {**copied, "position": turn["position"]})
        for sql in (_TAINT, _SENT, _OPENED, *((_TITLED,) if new.version_of else ())):
            db.execute(sql, {**copied, "old": turn["query_id"]})
    (said,) = db.execute(f"SELECT count(*) {SAID}", key).fetchone()
    summary = (
        "INSERT OR IGNORE INTO summaries SELECT ?, respondent_id, through, body FROM summaries"
        " WHERE session_id = ? AND respondent_id = ? AND through <= ?"
    )
    db.execute(summary, (new.session_id, point.session_id, own, said))
    if new.version_of:
        db.execute(_IMPORTED, (new.session_id, point.session_id, own))
    lists = (
        "INSERT OR IGNORE INTO tool_lists SELECT ?, respondent_id, kind, body FROM tool_lists"
        " WHERE session_id = ? AND respondent_id = ?"
    )
    db.execute(lists, (new.session_id, point.session_id, own))


def _copy_labels(db: sqlite3.Connection, respondent_id: str, new: NewBranch) -> None:
    """Copy the labels of a conversation to its version, and only the settings to any other branch."""
    origins = versions_of(db, respondent_id, new.version_of) if new.version_of else [new.point.session_id]
    labels = "title, pinned, folder, tags, archived" if new.version_of else "NULL, 0, NULL, '[]', 0"
    db.execute(
        "INSERT OR IGNORE INTO labels (session_id, respondent_id, title, pinned, folder, tags, archived,"
        f" changed_at, settings) SELECT ?, respondent_id, {labels}, changed_at, settings FROM labels"
        " WHERE respondent_id = ? AND session_id IN (SELECT value FROM json_each(?)) ORDER BY changed_at DESC LIMIT 1",
        (new.session_id, respondent_id, json.dumps(origins)),
    )


def conversation_of(db: sqlite3.Connection, respondent_id: str, session_id: str) -> str:
    """The conversation that a session is a version of: the id of its first version, which may be deleted."""
    sql = "SELECT version_of FROM branches WHERE session_id = ? AND respondent_id = ?"
    row = db.execute(sql, (session_id, respondent_id)).fetchone()
    return (row["version_of"] if row is not None else None) or session_id


def versions_of(db: sqlite3.Connection, respondent_id: str, session_id: str) -> list[str]:
    """All sessions that are versions of the same conversation as this one, itself among them."""
    conversation = conversation_of(db, respondent_id, session_id)
    sql = (
        "SELECT session_id FROM branches WHERE version_of = :conversation AND respondent_id = :own"
        " UNION SELECT session_id FROM turns WHERE session_id = :conversation AND respondent_id = :own"
        " UNION SELECT session_id FROM branches WHERE session_id = :conversation AND respondent_id = :own"
    )
    rows = db.execute(sql, {"conversation": conversation, "own": respondent_id})
    return sorted({row["session_id"] for row in rows} | {session_id})


def copy_id(session_id: str, query_id: str) -> str:
    """The id that a query has in a branch: always the same, so that a branch which is made again is the same."""
    return uuid.uuid5(_NAMESPACE, f"{session_id}\n{query_id}").hex


def family_of(db: sqlite3.Connection, respondent_id: str, session_id: str) -> list[dict[str, Any]]:
    """Return all branches of a session, of its origin, and of theirs: where each branched off, which conversation it is
    a version of, and the `first` query in it, None if there is none yet.
    """
    return [dict(row) for row in db.execute(_FAMILY, {"session": session_id, "own": respondent_id})]


def copied_to(db: sqlite3.Connection, respondent_id: str, session_id: str) -> list[str]:
    """The other sessions that hold copies of the turns of one."""
    sql = (
        "SELECT DISTINCT session_id FROM turns WHERE respondent_id = :own AND session_id != :session AND copy_of IN"
        " (SELECT query_id FROM turns WHERE session_id = :session AND respondent_id = :own) ORDER BY session_id"
    )
    return [row["session_id"] for row in db.execute(sql, {"own": respondent_id, "session": session_id})]


def _turn(db: sqlite3.Connection, respondent_id: str, query_id: str) -> sqlite3.Row | None:
    sql = "SELECT position, query_id, session_id, refused, copy_of FROM turns WHERE query_id = ? AND respondent_id = ?"
    row: sqlite3.Row | None = db.execute(sql, (query_id, respondent_id)).fetchone()
    return row


# How users have named and ordered their sessions, and their settings. In the caller's transaction.


class Labels(NamedTuple):
    """The title, pin and settings of a session, its folder and tags, and whether it is archived. `title` is the user's
    own; without it the session has the one that was made of its first exchange, or is called as its first query.
    `changed_at` is seconds since 1970, 0 for never; `settings` are `SessionSettings` as
    JSON."""

    title: str | None = None
    pinned: bool = False
    changed_at: float = 0.0
    settings: str | None = None
    folder: str | None = None
    tags: tuple[str, ...] = ()
    archived: bool = False


def labels_of(db: sqlite3.Connection, respondent_id: str, session_id: str) -> Labels:
    """Raises `NotOnRecord` for a session that there is not."""
    head_of(db, respondent_id, session_id)
    sql = "SELECT * FROM labels WHERE session_id = ? AND respondent_id = ?"
    row = db.execute(sql, (session_id, respondent_id)).fetchone()
    if row is None:
        return Labels()
    where = (row["folder"], tuple(json.loads(row["tags"])), bool(row["archived"]))
    return Labels(row["title"], bool(row["pinned"]), row["changed_at"], row["settings"], *where)


def keep_labels(db: sqlite3.Connection, respondent_id: str, session_id: str, labels: Labels) -> None:
    """Store labels, unless there are later ones, or the session is deleted."""
    db.execute(
        "INSERT INTO labels (session_id, respondent_id, title, pinned, changed_at, settings, folder, tags, archived)"
        " SELECT :session, :own, :title, :pinned, :at, :settings, :folder, :tags, :archived"
        " WHERE EXISTS (SELECT 1 FROM turns"
        " WHERE session_id = :session AND respondent_id = :own UNION SELECT 1 FROM branches"
        " WHERE session_id = :session AND respondent_id = :own)"
        " ON CONFLICT DO UPDATE SET title = excluded.title, pinned = excluded.pinned, settings = excluded.settings,"
        " folder = excluded.folder, tags = excluded.tags, archived = excluded.archived,"
        " changed_at = excluded.changed_at WHERE excluded.changed_at >= changed_at",
        {"session": session_id, "own": respondent_id, "title": labels.title, "pinned": labels.pinned,
         "at": labels.changed_at, "settings": labels.settings, "folder": labels.folder,
         "tags": json.dumps(labels.tags), "archived": labels.archived},
    )  # fmt: skip


# The list of a record's sessions: the pinned ones, then the most recent, in pages, and search in it. Of the versions of
# a conversation only the last changed one is listed. In the caller's transaction.

TITLE_CHARACTERS = 80  # of the question that names a session without a title

_TURNS = (
    "SELECT session_id, count(*) AS turns, sum(status = 'open') AS open, min(created_at) AS started_at,"
    " max(coalesce(finished_at, created_at)) AS touched_at, min(position) AS first,"
    " min(CASE WHEN copy_of IS NULL THEN position END) AS own"
    " FROM turns WHERE respondent_id = :own AND in_history AND refused IS NULL AND {among} GROUP BY session_id"
)
_EMPTY_BRANCHES = (
    "SELECT session_id, 0, 0, branched_at, branched_at, NULL, NULL FROM branches WHERE respondent_id = :own AND {among}"
    " AND NOT EXISTS (SELECT 1 FROM turns WHERE turns.session_id = branches.session_id"
    " AND turns.respondent_id = branches.respondent_id AND refused IS NULL)"
)
_LISTED = (
    f"WITH sums AS ({_TURNS} UNION ALL {_EMPTY_BRANCHES}) SELECT sums.session_id,"
    " coalesce(first.user_id, branches.user_id) AS user_id, turns, open, started_at,"
    " max(touched_at, coalesce(branches.branched_at, 0)) AS updated_at,"
    f" coalesce(labels.title, titles.title, substr(called.query, 1, {TITLE_CHARACTERS}), '') AS title,"
    " labels.title IS NOT NULL AS renamed, coalesce(labels.pinned, 0) AS pinned, labels.settings AS settings,"
    " coalesce(nullif(branches.version_of, ''), sums.session_id) AS conversation,"
    " coalesce(first.incognito, branches.incognito) AS incognito, branches.branched_from,"
    " coalesce(nullif(branches.before, ''), branches.through) AS before, imports.source AS imported_from,"
    " labels.folder, coalesce(labels.tags, '[]') AS tags, coalesce(labels.archived, 0) AS archived,"
    " (SELECT model FROM turns WHERE turns.session_id = sums.session_id AND respondent_id = :own AND refused IS NULL"
    " ORDER BY position DESC LIMIT 1) AS model,"
    " CASE WHEN json_valid(first.body) THEN json_extract(first.body, '$.origin') END AS origin"
    " FROM sums LEFT JOIN turns AS first ON first.position = sums.first"
    " LEFT JOIN branches ON branches.session_id = sums.session_id AND branches.respondent_id = :own"
    " LEFT JOIN turns AS called ON called.position ="
    " coalesce(CASE WHEN branches.version_of != '' THEN sums.first ELSE sums.own END, sums.first)"
    " LEFT JOIN labels ON labels.session_id = sums.session_id AND labels.respondent_id = :own"
    " LEFT JOIN imports ON imports.session_id = sums.session_id AND imports.respondent_id = :own"
    " LEFT JOIN titles ON titles.session_id = sums.session_id AND titles.respondent_id = :own"
)
_VERSION = "row_number() OVER (PARTITION BY conversation ORDER BY updated_at DESC, session_id)"  # the last one is 1
_ORDER = "ORDER BY pinned DESC, updated_at DESC, session_id LIMIT :limit"
_AFTER = (
    "(pinned < :pinned OR (pinned = :pinned AND"
    " (updated_at < :updated_at OR (updated_at = :updated_at AND session_id > :session_id))))"
)


@dataclass(frozen=True, slots=True)
class SessionFilter:
    """A choice of sessions: of one user unless `user_id` is empty, where those without one are those of `unnamed`; of
    these `among`; those in which each word of `query` is in one question with its answer, or in the title; those in a
    `folder`, with a `tag`, `archived` or not."""

    user_id: str = ""
    unnamed: str = ""
    among: Collection[str] | None = None
    query: str = ""
    folder: str | None = None
    tag: str | None = None
    archived: bool | None = None


def sessions_of(
    db: sqlite3.Connection, respondent_id: str, wanted: SessionFilter, cursor: str = "", limit: int = 1000
) -> tuple[list[dict[str, Any]], str | None]:
    """A page of sessions with their title, number of turns and times, and the cursor of the next page. With a `query`
    each has its latest `match`: query_id and excerpt, or null where it is in the title. Raises `BadCursor`."""
    needles = [Needle(word) for word in wanted.query.split()]
    found = matches(db, respondent_id, needles) if needles else {}
    parameters: dict[str, Any] = {"own": respondent_id, "user": wanted.user_id, "unnamed": wanted.unnamed}
    conditions, among, after = [":user IN ('', coalesce(user_id, :unnamed))"], "1", "1"
    if wanted.among is not None:
        among = "session_id IN (SELECT value FROM json_each(:among))"
        parameters["among"] = json.dumps(list(wanted.among))
    if needles:
        titled = " AND ".join(needle.condition("title", parameters) for needle in needles)
        conditions.append(f"(session_id IN (SELECT value FROM json_each(:found)) OR ({titled}))")
        parameters["found"] = json.dumps(list(found))
    if wanted.folder is not None:
        conditions.append("folder = :folder")
        parameters["folder"] = wanted.folder
    if wanted.tag is not None:
        conditions.append("EXISTS (SELECT 1 FROM json_each(tags) WHERE value = :tag)")
        parameters["tag"] = wanted.tag
    if wanted.archived is not None:
        conditions.append("archived = :archived")
        parameters["archived"] = wanted.archived
    if cursor:
        after = _AFTER
        parameters |= _place(cursor)
    versions = f"SELECT *, {_VERSION} AS version FROM ({_LISTED.format(among=among)}) WHERE {' AND '.join(conditions)}"
    sql = f"SELECT * FROM ({versions}) WHERE version = 1 AND {after} {_ORDER}"
    rows = db.execute(sql, {**parameters, "limit": limit + 1}).fetchall()
    sessions = [_session(row) for row in rows[:limit]]
    for session in sessions if needles else ():
        session["match"] = _match(db, found.get(session["session_id"]), needles)
    return sessions, _cursor(sessions[-1]) if len(rows) > limit else None


_SORTED = (
    "WITH mine AS (SELECT folder, tags FROM labels WHERE respondent_id = :own AND NOT archived"
    " AND (folder IS NOT NULL OR tags != '[]') AND (:user = '' OR EXISTS (SELECT 1 FROM turns"
    " WHERE turns.session_id = labels.session_id AND turns.respondent_id = :own AND refused IS NULL"
    " AND coalesce(user_id, :unnamed) = :user)))"
)


def folders_and_tags(db: sqlite3.Connection, respondent_id: str, wanted: SessionFilter) -> dict[str, list[str]]:
    """The names of the `folders` and `tags` of a user's sessions that are not archived, in alphabetical order."""
    parameters = {"own": respondent_id, "user": wanted.user_id, "unnamed": wanted.unnamed}
    folders = f"{_SORTED} SELECT DISTINCT folder AS name FROM mine WHERE folder IS NOT NULL ORDER BY folder"
    tags = f"{_SORTED} SELECT DISTINCT value AS name FROM mine, json_each(mine.tags) ORDER BY value"
    named = {"folders": folders, "tags": tags}
    return {kind: [row["name"] for row in db.execute(sql, parameters)] for kind, sql in named.items()}


def _session(row: sqlite3.Row) -> dict[str, Any]:
    session = dict(row)
    for flag in ("incognito", "pinned", "renamed", "archived"):
        session[flag] = bool(session[flag])
    del session["version"]
    session["settings"] = session["settings"] and json.loads(session["settings"])
    session["tags"] = json.loads(session["tags"])
    before, origin = session.pop("before"), session["branched_from"]
    session["branched_from"] = origin and {"session_id": origin, "query_id": before}
    session["origin"] = session["origin"] or "user"
    return session


def _match(db: sqlite3.Connection, position: int | None, needles: Sequence[Needle]) -> dict[str, Any] | None:
    if position is None:
        return None
    row = db.execute("SELECT query_id, query, answer FROM turns WHERE position = ?", (position,)).fetchone()
    texts = [text for text in (row["query"], row["answer"]) if text]
    where = next((text for text in texts if needles[0].is_in(text)), texts[0])
    return {"query_id": row["query_id"], "excerpt": excerpt(where, needles[0])}


def _cursor(session: dict[str, Any]) -> str:
    return f"{session['pinned']:d},{session['updated_at']!r},{session['session_id']}"


def _place(cursor: str) -> dict[str, Any]:
    try:
        pinned, updated_at, session_id = cursor.split(",", 2)
        return {"pinned": int(pinned), "updated_at": float(updated_at), "session_id": session_id}
    except ValueError:
        raise BadCursor(cursor) from None


# The whole sessions in one respondent's record: listed, searched, paged, named and branched.


class SessionRecord:
    """The sessions of one respondent's record: listed, searched, paged, named, branched. Reading runs in its own thread
    and delays no turn. Raises as `ConversationService` does, and `NotOnRecord` for an unknown session.
    """

    def __init__(self, conversation: ConversationService, respondent_id: str) -> None:
        self._conversation, self._own = conversation, respondent_id

    async def listing(
        self, wanted: SessionFilter, cursor: str = "", limit: int = 1000
    ) -> tuple[list[dict[str, Any]], str | None]:
        """A page of sessions, and the cursor of the next one. Raises `BadCursor`."""

        def work(db: sqlite3.Connection) -> tuple[list[dict[str, Any]], str | None]:
            text_search.prepare(db)
            return sessions_of(db, self._own, wanted, cursor, limit)

        return await self._conversation.read(work)

    async def folders_and_tags(self, wanted: SessionFilter) -> dict[str, list[str]]:
        """The names of the folders and tags of a user's sessions."""
        return await self._conversation.read(lambda db: folders_and_tags(db, self._own, wanted))

    async def size_of(self, user_id: str) -> int:
        """The bytes of a user's questions and answers."""
        return await self._conversation.read(lambda db: int(db.execute(_SIZE, (user_id,)).fetchone()[0]))

    async def head(self, session_id: str) -> SessionHead:
        """Return a session's user and number of turns."""
        return await self._conversation.read(lambda db: head_of(db, self._own, session_id))

    async def page(self, session_id: str, place: TurnPlace, limit: int) -> TurnPage:
        """At most `limit` turns of a session before or after a place."""
        return await self._conversation.read(lambda db: page_of(db, self._own, session_id, place, limit))

    async def find(self, session_id: str, text: str) -> list[TextHit]:
        """Return the places of a text in a session."""

        def work(db: sqlite3.Connection) -> list[TextHit]:
            text_search.prepare(db)
            return find_in_session(db, self._own, session_id, text)

        return await self._conversation.read(work)

    async def labels(self, session_id: str) -> Labels:
        """Return a session's title, and whether it is pinned."""
        return await self._conversation.read(lambda db: labels_of(db, self._own, session_id))

    async def keep_labels(self, session_id: str, labels: Labels) -> None:
        """Store them, unless there are later ones, or no session."""
        await self._conversation.write(lambda db: keep_labels(db, self._own, session_id, labels))

    async def branch_point(self, session_id: str, before: str, through: str = "") -> BranchPoint:
        """Return the place of a branch that begins before a query, or after one. Raises `TurnStillOpen`."""
        return await self._conversation.read(lambda db: branch_point(db, self._own, session_id, before, through))

    async def conversation_of(self, session_id: str) -> str:
        """The conversation that a session is a version of."""
        return await self._conversation.read(lambda db: conversation_of(db, self._own, session_id))

    async def versions_of(self, session_id: str) -> list[str]:
        """The sessions that are versions of the same conversation."""
        return await self._conversation.read(lambda db: versions_of(db, self._own, session_id))

    async def require_new(self, session_id: str, point: BranchPoint) -> bool:
        """Whether a branch is still to be made. Raises `SessionExists` if there is another session of that id."""
        own = self._own
        return await self._conversation.read(lambda db: require_new(db, own, session_id, point))

    async def branch(self, new: NewBranch) -> None:
        """Have a new session begin with the ended turns of another one that come before a query; once."""
        await self._conversation.write(lambda db: branch(db, self._own, new))

    async def put_imported(self, imported: SessionImported, user_id: str | None) -> None:
        """Store an imported conversation, once."""
        await self._conversation.write(lambda db: put_imported(db, self._own, imported, user_id))

    async def family(self, session_id: str) -> list[dict[str, Any]]:
        """The branches of a session, of the one that it has branched off, and so on."""
        return await self._conversation.read(lambda db: family_of(db, self._own, session_id))

    async def copied_to(self, session_id: str) -> list[str]:
        """The other sessions that hold copies of its turns."""
        return await self._conversation.read(lambda db: copied_to(db, self._own, session_id))
