"""Which entries are of a consumer's or a reader's subjects. Whole subjects and families, which end in a dot."""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any


def subject_clause(subjects: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """SQL for "any of these subjects or families", and its parameters; without subjects it is true."""
    clauses, parameters = [], []
    for subject in subjects:
        if subject.endswith("."):
            clauses.append("subject >= ? AND subject < ?")
            parameters += [subject, _end_of(subject)]
        else:
            clauses.append("subject = ?")
            parameters.append(subject)
    return f"({' OR '.join(clauses) or '1'})", tuple(parameters)


def of_subjects(db: sqlite3.Connection, columns: str, subjects: Sequence[str], above: int) -> Iterator[tuple[Any, ...]]:
    """`columns` (the number first) of the entries above a number, in order, read as far as the caller goes.

    It costs nothing how many entries of other subjects lie between: each subject is followed in its index.
    """
    if not subjects:
        return db.execute(f"SELECT {columns} FROM entries WHERE number > ? ORDER BY number", (above,))
    sql = f"SELECT {columns} FROM entries WHERE subject = ? AND number > ? ORDER BY number"
    return heapq.merge(*(db.execute(sql, (each, above)) for each in _whole(db, subjects)), key=itemgetter(0))


def _whole(db: sqlite3.Connection, subjects: Sequence[str]) -> set[str]:
    """The subjects that there are entries of in place of families."""
    found = {subject for subject in subjects if not subject.endswith(".")}
    for family in set(subjects) - found:
        subject: str | None = family
        while subject is not None:
            found.add(subject)
            sql = "SELECT MIN(subject) FROM entries WHERE subject > ? AND subject < ?"
            (subject,) = db.execute(sql, (subject, _end_of(family))).fetchone()
    return found


def _end_of(family: str) -> str:
    return family[:-1] + "/"  # "/" comes right after "."
