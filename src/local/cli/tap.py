"""The taps on the bus: they listen until Ctrl-C or SIGTERM, and report messages that the bus has lost."""

from __future__ import annotations

import asyncio
import json
import os
import select
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Generic, Self, TypeVar

import typer

from local.bus.blobs import BlobStore, read_payload
from local.bus.bus import Bus
from local.bus.by_hand import checked, client_bus, envelope_of, say
from local.bus.envelope import Envelope
from local.bus.filter import Filter
from local.bus.message import GENERATION_THINKING, GENERATION_TOKEN
from local.bus.security import Declaration
from local.cli.main import BusOption, DataDir, JsonOption, Many, OutputFailed, clock_time, cut, terminal_width, visible
from local.core.bus_address import BusAddress
from local.core.data_dir import KEYS, RunDirectory, RunInfo
from local.core.environment import data_dir as find_data_dir
from local.core.errors import ConfigError, LocalError
from local.core.text import standard_input

# How items become lines of output. Plain code; called by the printer's thread alone.

T = TypeVar("T")

_MISSING = object()


class View(ABC, Generic[T]):
    """Base class of all views. `now` is in seconds on the printer's monotonic clock."""

    @abstractmethod
    def lines(self, item: T, now: float) -> Iterable[str]:
        """Return the lines to print for an item, and for the lines that it ends."""

    def due(self, now: float) -> Iterable[str]:
        """Lines of earlier items that have been held back long enough."""
        return ()

    def rest(self) -> Iterable[str]:
        """Lines of everything still held back: nothing more will come."""
        return ()


class PlainView(View[str]):
    """A view that prints text unchanged."""

    def lines(self, item: str, now: float) -> Iterable[str]:
        return item.splitlines()


class JsonView(View[Envelope]):
    """A view that prints one JSON object per line: the header's fields and, with `show_payload`, the payload. Only
    ASCII is printed, so that no message can control a terminal.
    """

    def __init__(self, *, blobs: BlobStore | None = None, show_payload: bool = True) -> None:
        self._blobs, self._show_payload = blobs, show_payload

    def lines(self, item: Envelope, now: float) -> Iterator[str]:
        yield json.dumps(_document(item, self._blobs) if self._show_payload else item.header())


class FieldView(View[Envelope]):
    """A view of the values of `paths`, separated by tabs, or as one JSON object with the paths as keys.

    A path leads from the envelope through keys and, in lists, numbers: `sender`, `payload.tool_calls.0.tool`. Messages
    that have none of the fields are skipped. Text is printed as it is, other values as JSON, everything on one line.
    """

    def __init__(self, paths: Sequence[str], *, as_json: bool = False, blobs: BlobStore | None = None) -> None:
        self._paths, self._as_json, self._blobs = paths, as_json, blobs

    def lines(self, item: Envelope, now: float) -> Iterator[str]:
        whole = _document(item, self._blobs)
        found = {path: _find(whole, path) for path in self._paths}
        present = {path: value for path, value in found.items() if value is not _MISSING}
        if present:
            yield json.dumps(present) if self._as_json else "\t".join(_text(value) for value in found.values())


def _document(envelope: Envelope, blobs: BlobStore | None) -> dict[str, Any]:
    """Return an envelope as one object; a payload that is no JSON object is a string in it."""
    return {**envelope.header(), "payload": read_payload(envelope.payload, blobs)}


def _find(value: Any, path: str) -> Any:
    """Return the value at a dotted path, or the marker for a missing one."""
    for step in path.split("."):
        if isinstance(value, dict):
            value = value.get(step, _MISSING)
        elif isinstance(value, list) and step.isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return _MISSING
    return value


def _text(value: Any) -> str:
    if value is _MISSING:
        return ""
    return visible(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


# Prints in a separate thread, so that a slow terminal or pipe never delays the reading of the bus.

MAX_ITEMS = 10_000
MAX_BYTES = 32 * 1024 * 1024
BATCH = 256
IDLE_SECONDS = 0.25  # how late a line that a view holds back may be
REPORT_SECONDS = 1.0
CLOSE_SECONDS = 1.0
TOO_SLOW = "because the output is slower than the bus"


class Printer(Generic[T]):
    """A printer of a view's lines to a file descriptor. It accepts items and never blocks. Use as `async with`.

    It is bounded by number and bytes: items without room are counted and reported on `err`, like every other loss. It
    ends, calling `on_end` in the event loop, after `count` lines, when the reader of the output has gone, or on an
    error.
    """

    def __init__(
        self,
        view: View[T],
        *,
        on_end: Callable[[], object],
        count: int | None = None,
        out: int = 1,
        err: int = 2,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._view, self._on_end, self._left = view, on_end, count
        self._out, self._err, self._clock = out, err, clock
        self._items: deque[tuple[T, int]] = deque()
        self._bytes = 0
        self._unwritten = memoryview(b"")  # what the thread is writing now
        self._lost: Counter[str] = Counter()
        self._notes: deque[str] = deque(maxlen=BATCH)
        self._next_report = clock() + REPORT_SECONDS
        self._closed = False
        self._changed = threading.Condition()
        self._failure: OutputFailed | None = None
        self._loop = asyncio.get_running_loop()
        # A daemon, because nothing can wake it from a write to a terminal that does not read.
        self._thread = threading.Thread(target=self._run, name="tap printer", daemon=True)

    async def __aenter__(self) -> Self:
        self._thread.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Write the remaining lines, if that is possible within a second. Raises `OutputFailed`."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        await asyncio.to_thread(self._thread.join, CLOSE_SECONDS)
        if self._thread.is_alive():
            self._give_up()
        if self._failure is not None:
            raise self._failure

    def offer(self, item: T, size: int) -> None:
        """Print an item of `size` bytes, or count it as lost if there is no room."""
        with self._changed:
            if len(self._items) >= MAX_ITEMS or self._bytes + size > MAX_BYTES:
                self._lost[TOO_SLOW] += 1
                return
            self._items.append((item, size))
            self._bytes += size
            self._changed.notify()

    def lost(self, losses: Counter[str]) -> None:
        """Report losses, given as "of what" and how many; at most once a second."""
        with self._changed:
            self._lost.update(losses)

    def note(self, text: str) -> None:
        """Print a line on `err`."""
        with self._changed:
            self._notes.append(text)
            self._changed.notify()

    def _run(self) -> None:
        try:
            while (self._left is None or self._left > 0) and (batch := self._take()) is not None:
                self._write_notes(self._take_notes(self._clock()))
                now = self._clock()
                self._put([line for item in batch for line in self._view.lines(item, now)])
                self._put(self._view.due(now))
            self._put(self._view.rest())
        except BrokenPipeError:
            pass  # the reader of the output has closed it
        except OSError as error:
            self._failure = OutputFailed(f"the output cannot be written: {error.strerror}")
        finally:
            self._write_notes(self._take_notes(float("inf")))
            with suppress(RuntimeError):  # the loop may have ended, if this thread was delayed for long
                self._loop.call_soon_threadsafe(self._on_end)

    def _give_up(self) -> None:
        """Report the lines that will never be shown, because the thread hangs in a write."""
        with self._changed:
            self._lost[TOO_SLOW] += len(self._items) + self._unwritten.tobytes().count(b"\n")
            self._items.clear()
        if select.select([], [self._err], [], 0)[1]:
            self._write_notes(self._take_notes(float("inf")))

    def _take(self) -> list[T] | None:
        """The next items, none after a while without, None after the last."""
        with self._changed:
            if not (self._items or self._notes or self._closed):
                self._changed.wait(IDLE_SECONDS)
            if not self._items and self._closed:
                return None
            batch = [self._items.popleft() for _ in range(min(BATCH, len(self._items)))]
            self._bytes -= sum(size for _, size in batch)
            return [item for item, _ in batch]

    def _take_notes(self, now: float) -> list[str]:
        with self._changed:
            notes = list(self._notes)
            self._notes.clear()
            if now >= self._next_report:
                notes += [f"lost {number} {what}" for what, number in self._lost.items()]
                self._lost.clear()
                self._next_report = now + REPORT_SECONDS
            return notes

    def _put(self, lines: Iterable[str]) -> None:
        chosen = list(lines)[: self._left]
        if self._left is not None:
            self._left -= len(chosen)
        self._unwritten = _encoded(chosen)
        while self._unwritten:
            self._unwritten = _write_some(self._out, self._unwritten)

    def _write_notes(self, notes: list[str]) -> None:
        data = _encoded([visible(note) for note in notes])
        with suppress(OSError):  # a closed error output is no reason to stop
            while data:
                data = _write_some(self._err, data)


def _encoded(lines: list[str]) -> memoryview:
    return memoryview("".join(f"{line}\n" for line in lines).encode(errors="backslashreplace"))


def _write_some(descriptor: int, data: memoryview) -> memoryview:
    """Write a few lines at most, and return the rest.

    Unbuffered: a thread blocked inside Python's own buffers would block the end of the program.
    """
    try:
        return data[os.write(descriptor, data[: select.PIPE_BUF]) :]
    except BlockingIOError:  # another program has made the terminal or pipe that we share non-blocking
        select.select([], [descriptor], [])
        return data


# Whether the system that is tapped still runs, in words, at each change.

LOOK_SECONDS = 1.0
STOPPED = "the system has stopped; waiting for it to come back (Ctrl-C ends this)"
ELSEWHERE = "the system is back on another bus; start this command again"


class SystemWatch:
    """The running system as its run directory shows it, before and after a restart."""

    def __init__(self, directory: RunDirectory, address: BusAddress) -> None:
        self._directory, self._address = directory, address
        self._pid = self._facts_pid()

    def news(self) -> str:
        """Return the changes since the last call; empty if there are none."""
        before, self._pid = self._pid, self._facts_pid()
        if self._pid == before:
            return ""
        if self._pid is None:
            return STOPPED
        return f"the system is back (process {self._pid})" if self._is_heard() else ELSEWHERE

    async def report(self, say: Callable[[str], object]) -> None:
        """Report changes until cancelled."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            if news := self.news():
                say(news)

    def _facts_pid(self) -> int | None:
        facts = self._facts()
        return facts.pid if facts else None

    def _is_heard(self) -> bool:
        facts = self._facts()
        ours = (self._address.publish_to, self._address.subscribe_to)
        return facts is not None and (facts.publish_to, facts.subscribe_to) == ours

    def _facts(self) -> RunInfo | None:
        try:
            return self._directory.read()
        except LocalError:
            return None


TAP = "tap"
READY_SECONDS = 5.0
TICK_SECONDS = 1.0

_REFUSED = {  # by the bus's counters, in words
    "malformed": "that are not messages of this protocol",
    "refused": "that their sender has not declared",
}


def find_bus(data_dir: Path, addresses: str | None) -> BusAddress:
    """The bus at "PUB,SUB", or else of the system that runs on `data_dir`. Raises `ConfigError` or `NotRunning`.

    A tcp bus that is named is spoken to with the keys in the data directory, if there are any.
    """
    if addresses is None:
        return RunDirectory(data_dir).running_bus()
    publish_to, comma, subscribe_to = (part.strip() for part in addresses.partition(","))
    if not comma or not all(part.startswith(("tcp://", "ipc://")) for part in (publish_to, subscribe_to)):
        raise ConfigError(f"--bus {addresses}: expected PUB,SUB such as tcp://127.0.0.1:5555,tcp://127.0.0.1:5556")
    has_keys = any((data_dir / KEYS / f"{name}.keys").exists() for name in ("bus", TAP))
    curve = publish_to.startswith("tcp://") and has_keys
    return RunDirectory(data_dir).named_bus(publish_to, subscribe_to, curve=curve)


def print_until_stopped(
    view: View[T],
    work: Callable[[Bus, Printer[T], asyncio.Event], Awaitable[None]],
    *,
    data_dir: Path | None,
    addresses: str | None,
    count: int | None = None,
    sender: str = TAP,
    declaration: Declaration | None = None,
) -> None:
    """Run `work` with the bus that `find_bus` finds, a printer, and an event that Ctrl-C, SIGTERM and the end of the
    output set.

    A system that was found by its data directory may stop and come back: that is reported, and the work continues. The
    bus keeps no samples of refused frames, participants do that. It may publish the subjects of `declaration` while it
    runs. Raises `LocalError`: no such system or bus, an output that fails.
    """
    folder = find_data_dir(data_dir)
    address = find_bus(folder, addresses)
    watch = SystemWatch(RunDirectory(folder), address) if addresses is None else None

    async def run() -> None:
        with _ended_by_signals() as stop:
            async with Printer(view, on_end=stop.set, count=count) as printer:
                with _telling(watch, printer):
                    await work(client_bus(address, sender, declaration), printer, stop)

    asyncio.run(run())


@contextmanager
def _telling(watch: SystemWatch | None, printer: Printer[T]) -> Iterator[None]:
    telling = None if watch is None else asyncio.create_task(watch.report(printer.note), name="system watch")
    try:
        yield
    finally:
        if telling is not None:
            telling.cancel()


async def listen(
    bus: Bus,
    wanted: Filter,
    receive: Callable[[Envelope], object],
    printer: Printer[Any],
    stop: asyncio.Event,
    *,
    seconds: float | None = None,
    each_second: Callable[[], object] = lambda: None,
) -> float:
    """Give `receive` every wanted envelope until `stop` is set or `seconds` have passed, and report losses.

    `each_second` is called once a second and at the end. Returns for how many seconds it has listened. Raises
    `BusNotReady`.
    """
    losses, clock = LossReport(bus, wanted), asyncio.get_running_loop().time

    def sift(envelope: Envelope) -> None:
        if wanted.matches(envelope):
            receive(envelope)

    async with bus:
        for subject in wanted.subscriptions():
            bus.subscribe(subject, sift)
        await bus.ready(READY_SECONDS)
        printer.note("listening; Ctrl-C ends it")
        began = clock()
        end = float("inf") if seconds is None else began + seconds
        while not stop.is_set() and (left := end - clock()) > 0:
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), min(TICK_SECONDS, left))
            printer.lost(losses.take())
            each_second()
        return clock() - began


def report_until_stopped(
    subject: str, receive: Callable[[Envelope], object], report: Callable[[], str],
    *, seconds: float | None, data_dir: Path | None, addresses: str | None,
) -> None:  # fmt: skip
    """Pass the messages on a subject to a statistic, and print its `report` once a second, until `seconds` have passed
    or `print_until_stopped` ends.
    """
    wanted = Filter.of("subject", [subject])
    print_until_stopped(
        PlainView(),
        lambda bus, printer, stop: report_each_second(bus, wanted, receive, report, printer, stop, seconds=seconds),
        data_dir=data_dir,
        addresses=addresses,
    )


async def report_each_second(
    bus: Bus, wanted: Filter, receive: Callable[[Envelope], object], report: Callable[[], str],
    printer: Printer[str], stop: asyncio.Event, *, seconds: float | None = None,
) -> None:  # fmt: skip
    """Pass every wanted envelope to a statistic, and print its `report` once a second and at the end."""

    def print_report() -> None:
        line = report()
        printer.offer(line, len(line))

    await listen(bus, wanted, receive, printer, stop, seconds=seconds, each_second=print_report)


class LossReport:
    """The report of missed messages of a filter, in words."""

    def __init__(self, bus: Bus, wanted: Filter) -> None:
        self._bus, self._wanted = bus, wanted
        self._seen: Counter[str] = Counter()

    def take(self) -> Counter[str]:
        """The losses since the last call: "of <subject> from <sender>", and how many."""
        losses: Counter[str] = Counter()
        for gap in self._bus.take_gaps():
            if self._wanted.may_match(gap.missed_subject):
                losses[f"of {gap.missed_subject} from {gap.sender}"] += gap.missed
        for name, what in _REFUSED.items():
            if refused := self._bus.counters[name] - self._seen[name]:
                losses[what] = refused
                self._seen[name] += refused
        return losses


@contextmanager
def _ended_by_signals() -> Iterator[asyncio.Event]:
    """An event that Ctrl-C and SIGTERM set."""
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    try:
        yield stop
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)


# One line for a person: time, subject, sender, correlation, and the part of the payload that fits.

HOLD_SECONDS = 1.0

FRAGMENTS = {GENERATION_THINKING, GENERATION_TOKEN}
# Values that almost every message has; a preview has room for the others only.
_USUAL = {"respondent_id": "A", "attempt": 1, "prompt": "default", "incognito": False, "self_judged": False}

Speaker = tuple[str, ...]


@dataclass(slots=True)
class FragmentRun:
    """A run of consecutive fragments of one sender; `first` is the envelope of the first one."""

    first: Envelope
    speaker: Speaker
    since: float
    texts: list[str] = field(default_factory=list)


class Fragments:
    """A buffer of one run for each query, until another message about the query arrives or a second has passed."""

    def __init__(self) -> None:
        self._held: dict[str, FragmentRun] = {}

    def add(self, envelope: Envelope, speaker: Speaker, text: str, now: float) -> list[FragmentRun]:
        """Append a fragment. Returns the run that it ends, if it begins another."""
        held = self._held.get(envelope.correlation_id)
        ended = self.interrupt(envelope.correlation_id) if held and held.speaker != speaker else []
        self._held.setdefault(envelope.correlation_id, FragmentRun(envelope, speaker, now)).texts.append(text)
        return ended

    def interrupt(self, correlation_id: str) -> list[FragmentRun]:
        """The run that something else of the same query ends."""
        held = self._held.pop(correlation_id, None)
        return [held] if held else []

    def due(self, now: float) -> list[FragmentRun]:
        """The runs that have been held for a second, in order of their beginning."""
        ripe = [key for key, run in self._held.items() if now - run.since >= HOLD_SECONDS]
        return [self._held.pop(key) for key in ripe]

    def rest(self) -> list[FragmentRun]:
        """Every run still held."""
        runs = list(self._held.values())
        self._held.clear()
        return runs


class HumanView(View[Envelope]):
    """A view for people, with one line per message. `width()` gives the columns of the terminal, None for no limit.
    With `fold`, consecutive fragments of thinking and answer are joined into one line; without `show_payload`, there
    is no preview.
    """

    def __init__(self, *, width: Callable[[], int | None], show_payload: bool = True, fold: bool = True) -> None:
        self._width = width
        self._show_payload = show_payload
        self._fold = fold and show_payload
        self._fragments = Fragments()

    def lines(self, item: Envelope, now: float) -> Iterator[str]:
        value = read_payload(item.payload) if self._show_payload else {}
        if self._fold and item.subject in FRAGMENTS and isinstance(value, dict):
            speaker = (item.subject, item.instance, str(value.get("respondent_id")), str(value.get("attempt")))
            yield from self._runs(self._fragments.add(item, speaker, str(value.get("text", "")), now))
        else:
            yield from self._runs(self._fragments.interrupt(item.correlation_id))
            yield self._line(item, preview(value, item.correlation_id))

    def due(self, now: float) -> Iterable[str]:
        return self._runs(self._fragments.due(now))

    def rest(self) -> Iterable[str]:
        return self._runs(self._fragments.rest())

    def _runs(self, runs: Iterable[FragmentRun]) -> Iterator[str]:
        for run in runs:
            yield self._line(run.first, f"{len(run.texts)}× {_json(''.join(run.texts))}")

    def _line(self, envelope: Envelope, shown: str) -> str:
        head = f"{clock_time(envelope.sent_at)} {envelope.subject:<24} {envelope.sender:<12}"
        return cut(visible(f"{head} {envelope.correlation_id[:8]:<8} {shown}").rstrip(), self._width())


def preview(value: dict[str, Any] | str, correlation_id: str) -> str:
    """A payload as `key=value` pairs, without those that are empty, usual, or in the line already."""
    if isinstance(value, str):
        return value
    usual = {**_USUAL, "query_id": correlation_id}
    return " ".join(
        f"{key}={_json(item)}"
        for key, item in value.items()
        if item not in (None, "", [], {}) and usual.get(key) != item
    )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# `local2 tap`: all messages of the bus, as they are published.

FilterWords = Annotated[
    Many,
    typer.Argument(
        metavar="[FILTER]",
        help="Only messages that match, such as 'subject:tool.* -sender:generator \"words\"'.",
        show_default=False,
    ),
]


def chosen(words: Many, subjects: Many = None, **ids: str | None) -> Filter:
    """Return the filter of a command's words and options; an id may be only its beginning. Raises `BadFilter`."""
    wanted = Filter(" ".join(words or ()))
    if subjects:
        wanted &= Filter.of("subject", subjects)
    for name, value in ids.items():
        if value is not None:
            wanted &= Filter.of(name, [value])
    return wanted


def echo(
    words: FilterWords = None,
    subject: Annotated[
        Many,
        typer.Option(
            help="A subject, family ('tool.') or pattern ('tool.*'); '*' includes status beats and journal traffic."
        ),
    ] = None,
    session: Annotated[
        str | None, typer.Option(metavar="ID", help="Only this session; the beginning of its id is enough.")
    ] = None,
    query: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Only messages caused by this query; the beginning of its id is enough."),
    ] = None,
    field: Annotated[
        Many, typer.Option(metavar="PATH", help="Only this field, such as payload.answer. Can be repeated.")
    ] = None,
    as_json: JsonOption = False,
    count: Annotated[int | None, typer.Option(min=1, help="Stop after this many lines.")] = None,
    no_payload: Annotated[bool, typer.Option("--no-payload", help="Headers only.")] = False,
    no_fold: Annotated[
        bool, typer.Option("--no-fold", help="Print a line for each token instead of joined text.")
    ] = False,
    data_dir: DataDir = None,
    bus: BusOption = None,
) -> None:
    """Show every message, or those that match a filter, one per line.

    Example: local2 tap 'subject:tool.* -sender:generator size>64k "words"'
    """
    wanted = chosen(words, subject, session=session, query=query)
    blobs = BlobStore(find_data_dir(data_dir) / "blobs")
    view: View[Envelope]
    if field:
        view = FieldView(field, as_json=as_json, blobs=blobs)
    elif as_json:
        view = JsonView(blobs=blobs, show_payload=not no_payload)
    else:
        view = HumanView(width=terminal_width, show_payload=not no_payload, fold=not no_fold)
    print_until_stopped(
        view,
        lambda bus, printer, stop: watch(bus, wanted, printer, stop),
        data_dir=data_dir,
        addresses=bus,
        count=count,
    )


async def watch(bus: Bus, wanted: Filter, printer: Printer[Envelope], stop: asyncio.Event) -> None:
    """Pass wanted messages to a printer until `stop` is set."""

    def receive(envelope: Envelope) -> None:
        printer.offer(envelope, len(envelope.payload))

    await listen(bus, wanted, receive, printer, stop)


# `local2 tap pub`: publish one message by hand.

SENDER = "tap_pub"
STDIN = "-"


def pub(
    subject: Annotated[str, typer.Argument(help="The subject of the message.")],
    payload: Annotated[
        str, typer.Argument(metavar="JSON", help="The payload, a JSON object; - reads it from the standard input.")
    ],
    query: Annotated[
        str | None, typer.Option(metavar="ID", help="Id of the query that the message belongs to.")
    ] = None,
    session: Annotated[
        str | None, typer.Option(metavar="ID", help="Id of the session that the message belongs to.")
    ] = None,
    data_dir: DataDir = None,
    bus: BusOption = None,
) -> None:
    """Publish one message as tap_pub, and print its id. A running system processes it like any other message: it
    answers a query, executes a call, and records it.

    Example: local2 tap pub query.cancel '{"query_id": "q7"}' --query q7
    """
    content = checked(subject, standard_input() if payload == STDIN else payload)
    folder = find_data_dir(data_dir)

    async def work(bus: Bus, printer: Printer[str], stop: asyncio.Event) -> None:
        envelope = envelope_of(bus, subject, content, query, session)
        await say(bus, envelope, BlobStore(folder / "blobs"))
        printer.offer(envelope.id, len(envelope.id))

    says = Declaration(frozenset({subject}))
    print_until_stopped(PlainView(), work, data_dir=Path(folder), addresses=bus, sender=SENDER, declaration=says)
