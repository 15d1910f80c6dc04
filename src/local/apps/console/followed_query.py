"""A query that is seen through to its end, whatever happens to the connection or to the system meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

from local.apps.console.query_progress import ENDS
from local.apps.system_client import TOO_MANY, StreamEvent, SystemClient
from local.backoff import Backoff
from local.errors import NoAnswer

Json = dict[str, Any]
PATIENCE_SECONDS = 30.0
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0
PASSES = {"unreachable", "unreadable", TOO_MANY}


class FollowedQuery:
    """Asked again under the same id until it is accepted, and followed again from where the connection broke, for up to
    `patience` seconds without a word. `find` gives the system as it can be found now."""

    def __init__(self, find: Callable[[], SystemClient], body: Json, patience: float = PATIENCE_SECONDS) -> None:
        self.query_id: str = body["query_id"]
        self._find, self._body, self._patience = find, body, patience
        self._last_id, self._accepted = "", False
        self._left = threading.Event()

    def __iter__(self) -> Iterator[StreamEvent]:
        """The query's events up to the one that ends it. Raises `NoAnswer`."""
        pauses, trouble_since = Backoff(FIRST_PAUSE, LONGEST_PAUSE), None
        while not self._left.is_set():
            try:
                for event in self._attempt():
                    pauses, trouble_since = Backoff(FIRST_PAUSE, LONGEST_PAUSE), None
                    yield event
                    if event.name in ENDS:
                        return
            except NoAnswer as error:
                trouble_since = trouble_since or time.monotonic()
                if not is_passing(error) or time.monotonic() - trouble_since > self._patience:
                    raise
                self._left.wait(error.retry_after if error.kind == TOO_MANY and error.retry_after else pauses.next())
            else:
                self._left.wait(pauses.next())

    def cancel(self) -> None:
        """Have it stopped; its end comes as an event. Raises `NoAnswer`."""
        self._find().request("POST", f"/query/{self.query_id}/cancel")

    def leave(self) -> None:
        """Follow it no longer; the system answers it all the same."""
        self._left.set()

    def _attempt(self) -> Iterator[StreamEvent]:
        client = self._find()
        stream = (
            client.events_after(self.query_id, self._last_id) if self._accepted else client.query_events(self._body)
        )
        for event in stream:
            self._accepted, self._last_id = True, event.event_id or self._last_id
            yield event
        if self._accepted:  # no more comes: it has ended, perhaps before the API was started again
            answer = client.request("GET", f"/query/{self.query_id}", also=(502,))
            if answer.get("status") != "open":
                yield StreamEvent("response", answer, self._last_id)


def is_passing(error: NoAnswer) -> bool:
    """Whether the same may go well in a moment."""
    return error.status == 503 or error.kind in PASSES


def is_worth_a_retry(error: NoAnswer) -> bool:
    """Whether the user may try the same again later: the system is away, or has too much to do."""
    return is_passing(error) or error.status in (429, 507)
