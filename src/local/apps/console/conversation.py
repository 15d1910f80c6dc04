"""Asks one question after the other and has each one shown until it has ended, or its user has had enough."""

from __future__ import annotations

import math
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from types import FrameType
from typing import Any

from local.apps.console.approval_prompt import ApprovalPrompt
from local.apps.console.followed_query import FollowedQuery, is_worth_a_retry
from local.apps.console.query_progress import QueryProgress
from local.apps.console.renderer import Renderer
from local.apps.console.shown_query import ShownQuery
from local.apps.system_client import StreamEvent, SystemClient
from local.errors import NoAnswer

Json = dict[str, Any]
TICK_SECONDS = 0.1
RETRY_KINDS = {"busy", "overloaded", "unavailable", "timeout", "stopping", "quota", "rate_limit"}


class ExitStatus(IntEnum):
    """How a command that asks ends."""

    ANSWERED = 0
    FAILED = 1
    BAD_USE = 2
    TRY_AGAIN = 75  # EX_TEMPFAIL of sysexits.h
    INTERRUPTED = 130


class Interrupts:
    """How often Ctrl-C was pressed while it was counted."""

    def __init__(self) -> None:
        self.count = 0

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Ctrl-C stops nothing by itself meanwhile."""
        before = signal.signal(signal.SIGINT, self._note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.count += 1


def ask(
    find: Callable[[], SystemClient], body: Json, renderer: Renderer, say: Callable[[str], object],
    seconds: float | None = None, progress: QueryProgress | None = None, approvals: ApprovalPrompt | None = None,
) -> ExitStatus:  # fmt: skip
    """See one query through. Its failures are sentences for `say`. The first Ctrl-C has the answer stopped, as the end
    of `seconds` does; the second leaves it alone. `progress` has what came of it, `approvals` asks what waits for a
    person."""
    query = FollowedQuery(find, body) if seconds is None else FollowedQuery(find, body, min(seconds, 30.0))
    progress, interrupts = progress or QueryProgress(), Interrupts()
    try:
        with interrupts.counted():
            _follow(query, renderer, progress, interrupts, seconds, approvals)
    except NoAnswer as error:
        say(f"{error}; ask again with --query-id {query.query_id}" if is_worth_a_retry(error) else str(error))
        return ExitStatus.TRY_AGAIN if is_worth_a_retry(error) else ExitStatus.FAILED
    finally:
        query.leave()
        renderer.close()
        if approvals is not None:
            approvals.close()
    return _status(progress, interrupts, say)


def _follow(
    query: FollowedQuery, renderer: Renderer, progress: QueryProgress, interrupts: Interrupts, seconds: float | None,
    approvals: ApprovalPrompt | None,
) -> None:  # fmt: skip
    events: queue.Queue[StreamEvent | Exception | None] = queue.Queue()
    threading.Thread(target=_read, args=(query, events), name="events", daemon=True).start()
    deadline = math.inf if seconds is None else time.monotonic() + seconds
    cancelled, shown = False, ShownQuery(renderer, progress, approvals)
    while interrupts.count < 2:
        if not cancelled and (interrupts.count or time.monotonic() > deadline):
            cancelled = True
            threading.Thread(target=_cancel, args=(query,), name="cancel", daemon=True).start()
        try:
            event = events.get(timeout=TICK_SECONDS)
        except queue.Empty:
            shown.tick()
            continue
        if isinstance(event, Exception):
            raise event
        if event is None:
            return
        shown.receive(event)


def _read(query: FollowedQuery, events: queue.Queue[StreamEvent | Exception | None]) -> None:
    try:
        for event in query:
            events.put(event)
        events.put(None)
    except Exception as error:  # noqa: BLE001 - of any kind: whoever waits for the next event has to know
        events.put(error)


def _cancel(query: FollowedQuery) -> None:
    try:
        query.cancel()
    except NoAnswer:
        return  # it was over, or its end is told by the stream


def _status(progress: QueryProgress, interrupts: Interrupts, say: Callable[[str], object]) -> ExitStatus:
    end = progress.end
    if end is None or interrupts.count:
        return ExitStatus.INTERRUPTED
    if end.name == "response" and end.data.get("status") == "answered":
        return ExitStatus.ANSWERED
    error = end.data.get("error") or {}
    if error:
        say(f"{error.get('message')} ({error.get('kind')})")
    return ExitStatus.TRY_AGAIN if error.get("kind") in RETRY_KINDS else ExitStatus.FAILED
