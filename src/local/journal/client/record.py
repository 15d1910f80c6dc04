"""What the journal has on record: for whoever was not there, needs more than it was given, or has it deleted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import TypeVar

from local.bus.bus import Bus
from local.errors import RecordNotRedacted, RecordUnreadable, RequestTimeout
from local.protocol.envelope import Envelope, decode
from local.protocol.journal_messages import JournalEntries, JournalEntry, JournalRead, JournalRedact, JournalRedacted
from local.protocol.message import Message

M = TypeVar("M", bound=Message)

PAGE = 10  # messages at a time: each may be long
MOST = 1000  # of several queries: as many as fit into an answer


async def entries_on_record(bus: Bus, request: JournalRead, seconds: float) -> AsyncIterator[JournalEntry]:
    """Every entry that a request asks for, page by page, at most so many as its `limit` in each; `seconds` are for each
    page. Raises `RequestTimeout` while there is no journal, and `RecordUnreadable`."""
    while True:
        page = await bus.request(request, JournalEntries, seconds)
        if page.error is not None:
            raise RecordUnreadable(page.error.message)
        for entry in page.entries:
            yield entry
        if not page.more or not page.entries:
            return
        last = page.entries[-1].number
        request = request.model_copy(update={"before" if request.is_backwards else "after": last})


async def read_on_record(
    bus: Bus, query_ids: str | Sequence[str], subjects: Iterable[str], seconds: float
) -> AsyncIterator[tuple[Envelope, bool]]:
    """Every message on these subjects that belongs to a query, or to one of at most 100, oldest first, and whether its
    payload was removed.

    `seconds` are for each page. Raises `RequestTimeout` while there is no journal, and `RecordUnreadable`.
    """
    if isinstance(query_ids, str):
        request = JournalRead(subjects=tuple(subjects), correlation_id=query_ids, limit=PAGE)
    else:
        request = JournalRead(subjects=tuple(subjects), correlation_ids=tuple(query_ids), limit=MOST)
    async for entry in entries_on_record(bus, request, seconds):
        yield decode(entry.frame.encode()), entry.redacted


async def messages_on_record(
    bus: Bus, query_id: str, kinds: Iterable[type[M]], seconds: float
) -> list[tuple[M, Envelope]]:
    """The messages of these kinds that belong to a query, oldest first; what was removed is left out.

    Raises `RecordUnreadable`, which puts a durable handler's work off, also where no journal answers.
    """
    by_subject = {kind.subject: kind for kind in kinds}
    found: list[tuple[M, Envelope]] = []
    try:
        async for envelope, is_redacted in read_on_record(bus, query_id, by_subject, seconds):
            if not is_redacted:
                found.append((await bus.decode(by_subject[envelope.subject], envelope), envelope))
    except RequestTimeout as error:
        raise RecordUnreadable(str(error)) from None
    return found


async def redact_on_record(bus: Bus, what: JournalRedact, seconds: float) -> int:
    """Have the journal remove payloads for good; returns how many. Can be repeated when it has failed.

    Raises `RequestTimeout` while there is no journal, and `RecordNotRedacted`, which puts a durable handler's work off.
    """
    answer = await bus.request(what, JournalRedacted, seconds)
    if answer.error is not None:
        raise RecordNotRedacted(answer.error.message)
    return answer.count
