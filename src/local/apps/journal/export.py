"""`local2 journal export`: messages on record as JSON lines, and what reads them again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from local.apps.journal.record import BadExport, Record
from local.apps.journal.source import Source
from local.apps.tap.selection import Selection


def export(
    source: Source, selection: Selection, since: float | None = None, until: float | None = None
) -> Iterator[str]:
    """A line for each selected message that was committed from `since` on and before `until`, oldest first."""
    subjects = () if "" in selection.subscriptions() else selection.subscriptions()
    for stored in source.journal.read_all(subjects=subjects, session_id=selection.session_id, since=since, until=until):
        record = Record.of(stored)
        if selection.wants(record.envelope):
            yield record.as_json(source.blobs)


def read_export(file: Path) -> list[Record]:
    """All of an export. Raises `BadExport` that names file and line."""
    try:
        with file.open(encoding="utf-8") as lines:
            return [Record.parse(line, f"{file} line {number}") for number, line in enumerate(lines, 1) if line.strip()]
    except OSError as error:
        raise BadExport(f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise BadExport(f"{file} is no text; expected lines of `local2 journal export`") from None
