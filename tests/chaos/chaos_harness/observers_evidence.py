"""Collects what the judge of the observers needs, while the system runs: from its journal and its stores."""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

from chaos_harness.client import Client
from chaos_harness.history import Asked
from chaos_harness.judge import ANSWERED, Violation
from chaos_harness.observers_judge import FIRST, SECOND, Evidence, Kept, Learned, Said, judge
from chaos_harness.ratings import Raters
from local.bus.envelope import decode
from local.journal.store import JournalView
from local.memory.store import FILE_NAME

LOOK_SECONDS = 0.25
STALE_BEATS = 1  # of the journal, which may tell how it was before the last message came
PENDING = "pending_"
RECORDS = {FIRST: "conversation.db", SECOND: "conversation_b.db"}
KINDS = {kind.subject: kind for kind in get_args(Said)}


async def violations_at_the_end(
    data_dir: Path, client: Client, asked: Sequence[Asked], raters: Raters, patience: float
) -> list[Violation]:
    """What is wrong once nothing waits in the journal and nothing is missing, or when patience ends."""
    end = time.monotonic() + patience
    while True:
        await _nothing_waits(client, end)
        found = judge(await asyncio.to_thread(gather, data_dir, asked, raters))
        if not found or time.monotonic() > end:
            return found
        await asyncio.sleep(LOOK_SECONDS)


def gather(data_dir: Path, asked: Sequence[Asked], raters: Raters) -> Evidence:
    """Everything about these queries."""
    answered = {each.question.query_id for each in asked if each.outcome and each.outcome.status == ANSWERED}
    with JournalView(data_dir / "journal.db") as journal:
        envelopes = (decode(stored.entry.frame) for stored in journal.read_all(subjects=list(KINDS)))
        said = [KINDS[each.subject].decode(each.payload) for each in envelopes if each.correlation_id in answered]
    notes = "SELECT query_id, respondent_id, score, sentiment, winner FROM engrams"
    kept = [Kept(*row) for row in _rows(data_dir / "engrams" / FILE_NAME, notes)]
    learned = [
        Learned(*row)
        for respondent, name in RECORDS.items()
        for row in _rows(data_dir / name, f"SELECT query_id, '{respondent}', reward FROM rewards")
    ]
    return Evidence(
        answered=answered,
        ratings=raters.given,
        refused=raters.refused,
        said=said,
        kept=[each for each in kept if each.query_id in answered],
        learned=[each for each in learned if each.query_id in answered],
    )


async def _nothing_waits(client: Client, end: float) -> None:
    """Wait until the journal says, as it is now, that nobody has anything before them, or until `end`."""
    beats = set[int]()
    while len(beats) <= STALE_BEATS and time.monotonic() < end:
        counters = (await client.participant("journal"))["counters"]
        if any(count for name, count in counters.items() if name.startswith(PENDING)) or not counters:
            beats.clear()
        else:
            beats.add(counters["published"])
        await asyncio.sleep(LOOK_SECONDS)


def _rows(file: Path, sql: str) -> Iterator[tuple[Any, ...]]:
    with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as db:
        yield from db.execute(sql)
