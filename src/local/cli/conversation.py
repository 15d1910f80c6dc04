"""Asking a question and following it until it ends or the user stops."""

from __future__ import annotations

import math
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from types import FrameType
from typing import Any

from local.cli.approvals import ApprovalPrompt
from local.cli.client import TOO_MANY, StreamEvent, SystemClient
from local.cli.renderer import ENDS, QueryProgress, Renderer
from local.core.environment import settings_dir
from local.core.errors import NoAnswer
from local.core.files import Backoff
from local.core.trust import FOLDER, TrustRegistry

# A query that is seen through to its end, whatever happens to the connection or to the system meanwhile.

Json = dict[str, Any]
PATIENCE_SECONDS = 30.0
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0
PASSES = {"unreachable", "unreadable", TOO_MANY}


class FollowedQuery:
    """A query that is sent until it is accepted, and followed again after a broken connection, for up to `patience`
    seconds of silence. `find` returns a client of the current system.
    """

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
        if self._accepted:  # no more comes: it has ended, perhaps before the API was restarted
            answer = client.request("GET", f"/query/{self.query_id}", also=(502,))
            if answer.get("status") != "open":
                yield StreamEvent("response", answer, self._last_id)


def is_passing(error: NoAnswer) -> bool:
    """Whether the same may go well in a moment."""
    return error.status == 503 or error.kind in PASSES


def is_worth_a_retry(error: NoAnswer) -> bool:
    """Whether the user may try the same again later: the system is away, or has too much to do."""
    return is_passing(error) or error.status in (429, 507)


# A query as it is shown with questions to a person in between.

ASKING = ("approval", "decision")


class ShownQuery:
    """A query on the terminal: the renderer shows its events, and the prompt asks for approvals. Events that come while
    a question is open are shown after its answer, because moving lines would erase the question."""

    def __init__(self, renderer: Renderer, progress: QueryProgress, approvals: ApprovalPrompt | None) -> None:
        """Without `approvals` no approvals are asked for."""
        self._renderer, self._progress, self._approvals = renderer, progress, approvals
        self._held: list[StreamEvent] = []

    def receive(self, event: StreamEvent) -> None:
        """Take an event."""
        self._held.append(event)
        if self._approvals is None or not self._approvals.is_open or event.name in ENDS:
            self._flush_held()
        if self._approvals is not None and event.name in ASKING:
            if not self._approvals.is_open:
                self._renderer.close()  # the lines that move
            self._approvals.receive(event.name, event.data)
            self._poll(self._approvals)

    def tick(self) -> None:
        """Time passes."""
        if self._approvals is not None and self._approvals.is_open:
            self._poll(self._approvals)
        else:
            self._renderer.tick(self._progress)

    def _poll(self, approvals: ApprovalPrompt) -> None:
        approvals.poll()
        if not approvals.is_open:
            self._flush_held()

    def _flush_held(self) -> None:
        held, self._held = self._held, []
        for event in held:
            if self._progress.receive(event):
                self._renderer.receive(event, self._progress)


TICK_SECONDS = 0.1
RETRY_KINDS = {"busy", "overloaded", "unavailable", "timeout", "stopping", "quota", "rate_limit"}


class ExitStatus(IntEnum):
    """The exit status of a command that asks a question."""

    ANSWERED = 0
    FAILED = 1
    BAD_USE = 2
    TRY_AGAIN = 75  # EX_TEMPFAIL of sysexits.h
    INTERRUPTED = 130


class Interrupts:
    """A counter of Ctrl-C."""

    def __init__(self) -> None:
        self.count = 0

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count Ctrl-C inside the block instead of stopping the program."""
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
    """Follow one query to its end. Failures are passed to `say` as sentences. The first Ctrl-C stops the answer, as
    the end of `seconds` does; the second stops following it. `progress` receives the result, `approvals` asks for
    decisions.
    """
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
    except Exception as error:  # noqa: BLE001 - of any kind: the waiting reader of events must get it
        events.put(error)


def _cancel(query: FollowedQuery) -> None:
    try:
        query.cancel()
    except NoAnswer:
        return  # it was over, or the stream reports its end


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


# Whether the folder in which a command was typed is to be the assistant's workspace.


def trusted_current_folder(say: Callable[[str], object]) -> Path | None:
    """The folder, if its owner trusts it. Raises `ConfigError` if that cannot be read."""
    try:
        folder = Path.cwd()
    except FileNotFoundError:  # it was removed
        return None
    if TrustRegistry(settings_dir()).trusted(folder):
        return folder
    if (folder / FOLDER).is_dir() and folder != Path.home():
        say(f"{folder} is not trusted, so LoCAL2 does not work in it and {FOLDER} is not read; see `local2 trust`")
    return None
