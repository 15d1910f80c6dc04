"""The engrams' vectors in SQLite, which every vector index is made of, and made anew."""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from local.services.engrams import lexical

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

_PAGE = 500
_RECIPE = 2  # counts up when the same exchange gets another vector
CONTEXT_WEIGHT = 0.4  # of what was said before an exchange, against the exchange itself


@dataclass(frozen=True, slots=True)
class Pending:
    """An engram that has no vector yet. `revision` tells whether its text is still the same when it has one."""

    number: int
    revision: int
    text: str
    context: str


@dataclass(frozen=True, slots=True)
class VectorEntry:
    """One vector of the index. A key is never used again, so that what has one key always has the same vector."""

    key: str
    user_id: str
    vector: bytes  # float16


def use_model(db: sqlite3.Connection, name: str) -> None:
    """Forget every vector that another model has made."""
    model = f"{name}/{_RECIPE}"
    if db.execute("SELECT 1 FROM vector_index WHERE model = ?", (model,)).fetchone():
        return
    db.execute("DELETE FROM vectors")
    db.execute("UPDATE engrams SET embedded = 0 WHERE embedded")
    db.execute("UPDATE vector_index SET model = ?", (model,))


def model(db: sqlite3.Connection) -> str:
    """The name of the embedding model that has made the vectors; empty if there are none yet."""
    (name,) = db.execute("SELECT model FROM vector_index").fetchone()
    return str(name).removesuffix(f"/{_RECIPE}")


def is_any_wanted(db: sqlite3.Connection) -> bool:
    """Whether an index would have anything in it."""
    sql = "SELECT EXISTS (SELECT 1 FROM vectors) OR EXISTS (SELECT 1 FROM engrams WHERE embedded = 0 AND searchable)"
    return bool(db.execute(sql).fetchone()[0])


def count_pending(db: sqlite3.Connection) -> int:
    """How many engrams have no vector yet."""
    (count,) = db.execute("SELECT count(*) FROM engrams WHERE embedded = 0 AND searchable").fetchone()
    return int(count)


def pending(db: sqlite3.Connection, limit: int) -> list[Pending]:
    """The latest engrams without a vector: what was just said is asked for first."""
    sql = "SELECT * FROM engrams WHERE embedded = 0 AND searchable ORDER BY number DESC LIMIT ?"
    return [
        Pending(
            row["number"],
            row["revision"],
            lexical.embeddable(row),
            lexical.embeddable_context(lexical.exchanges_before(db, row)),
        )
        for row in db.execute(sql, (limit,)).fetchall()
    ]


def in_context(texts: Vectors, contexts: Vectors) -> Vectors:
    """Each exchange's vector turned a little towards the exchange before it, all of length 1; (texts, dimensions).

    The exchange stays what is found best: embedding both as one text costs a tenth of the recall@5 [m].
    """
    import numpy as np

    turned = texts + CONTEXT_WEIGHT * contexts
    return np.asarray(turned / np.linalg.norm(turned, axis=1, keepdims=True), dtype=np.float32)


def put(db: sqlite3.Connection, texts: Sequence[Pending], vectors: Vectors) -> list[VectorEntry]:
    """Store the vectors of what is still there and unchanged; returns what the index gets."""
    import numpy as np

    entries = []
    for text, vector in zip(texts, vectors.astype(np.float16), strict=True):
        sql = "UPDATE engrams SET embedded = 1 WHERE number = ? AND revision = ? AND embedded = 0 RETURNING user_id"
        row = db.execute(sql, (text.number, text.revision)).fetchall()
        if row:
            entry = VectorEntry(uuid.uuid4().hex, row[0]["user_id"], vector.tobytes())
            db.execute("INSERT INTO vectors VALUES (?, ?, ?)", (text.number, entry.key, entry.vector))
            entries.append(entry)
    return entries


def page(db: sqlite3.Connection, user_id: str, after: int) -> tuple[list[VectorEntry], int]:
    """Some of a user's vectors behind a number, and the number of the last of them; none at the end."""
    sql = (
        "SELECT number, key, vector FROM vectors JOIN engrams USING (number)"
        " WHERE number > ? AND user_id = ? ORDER BY number LIMIT ?"
    )
    rows = db.execute(sql, (after, user_id, _PAGE)).fetchall()
    return [VectorEntry(row["key"], user_id, row["vector"]) for row in rows], rows[-1]["number"] if rows else after


def users_with_more(db: sqlite3.Connection, count: int) -> list[str]:
    """The users who have more engrams than that."""
    sql = "SELECT user_id FROM engrams GROUP BY user_id HAVING count(*) > ?"
    return [user_id for (user_id,) in db.execute(sql, (count,))]


def keys(db: sqlite3.Connection, user_id: str) -> set[str]:
    """The keys of all vectors of a user."""
    sql = "SELECT key FROM engrams JOIN vectors USING (number) WHERE user_id = ?"
    return {key for (key,) in db.execute(sql, (user_id,))}


def cosines(db: sqlite3.Connection, numbers: Sequence[int], keys: Sequence[str], vector: Vectors) -> dict[int, float]:
    """The cosine with one of shape (dimensions,) of all vectors that are there of these engrams or under these keys, by
    the engram's number."""
    import numpy as np

    listed = "IN (SELECT value FROM json_each(?))"
    sql = f"SELECT number, vector FROM vectors WHERE number {listed} OR key {listed}"
    rows = db.execute(sql, (json.dumps(numbers), json.dumps(keys))).fetchall()
    stored = np.frombuffer(b"".join(row["vector"] for row in rows), np.float16).reshape(-1, len(vector))
    return dict(zip((row["number"] for row in rows), (stored.astype(np.float32) @ vector).tolist(), strict=True))
