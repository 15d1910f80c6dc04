"""One query as a stream follows it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from itertools import groupby

from pydantic_core import from_json, to_json

from local.apps.api.event_stream import ServerEvent
from local.apps.api.query_stream import Trail, payload_of
from local.queries.live_query import LiveQuery

FRAGMENTS = ("thinking", "token")
PROGRESS = "progress"  # of which the latest says all


class StreamedQuery:
    """What is yet to be sent of a query, which is taken from there when there is room for it: a slow client costs no
    memory. It begins with a snapshot of what was said before, or with the first event if it is `new` to whoever
    follows. `changed` is set at each change."""

    def __init__(self, query: LiveQuery, trail: Trail, changed: asyncio.Event, *, new: bool = False) -> None:
        self._query, self._trail = query, trail
        self._watching = ExitStack()
        self._watching.enter_context(query.watched(changed))
        self._seen = 0 if new else None

    @property
    def is_over(self) -> bool:
        """Whether everything was taken, and nothing more is awaited."""
        query = self._query
        return query.has_nothing_after(self._seen) and self._trail.seconds_left(query) <= 0

    def restart(self) -> None:
        """What was taken has not arrived: begin again, with a snapshot."""
        self._seen = None

    def take(self) -> list[ServerEvent]:
        """What has happened since."""
        query = self._query
        if self._seen == query.events.count:
            return []
        events = query.events.after(self._seen)
        self._seen = events[-1].number if events else self._seen
        told = _joined((event.kind, payload_of(event, query)) for event in events)
        return [query_event(query.query_id, query.view.session_id, kind, data) for kind, data in told]

    def close(self) -> None:
        """Stop following the query."""
        self._watching.close()


def query_event(query_id: str, session_id: str | None, kind: str, data: bytes) -> ServerEvent:
    """An event of a query as part of a stream of many."""
    names = to_json({"query_id": query_id, "session_id": session_id, "event": kind})
    return ServerEvent("query", b'%s,"data":%s}' % (names[:-1], data))


def _joined(events: Iterable[tuple[str, bytes]]) -> Iterator[tuple[str, bytes]]:
    """The same with fragments that follow each other in one: the text of all `count` of them, the first one's index."""
    for kind, several in groupby(events, key=lambda event: event[0]):
        payloads = [payload for _, payload in several][-1 if kind == PROGRESS else 0 :]
        if kind not in FRAGMENTS or len(payloads) == 1:
            yield from ((kind, payload) for payload in payloads)
            continue
        numbered = enumerate(map(from_json, payloads))
        for _, run in groupby(numbered, key=lambda each: (each[1]["attempt"], each[1]["index"] - each[0])):
            fragments = [fragment for _, fragment in run]
            text = "".join(fragment["text"] for fragment in fragments)
            yield kind, to_json({**fragments[0], "text": text, "count": len(fragments)})
