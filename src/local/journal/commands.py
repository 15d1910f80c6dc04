"""The command line of the journal: `local2 journal list | show | dead | redeliver | export | play`."""

from __future__ import annotations

import asyncio
import functools
import json
import os
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer
from pydantic import ValidationError

from local.bus.blobs import BlobStore
from local.bus.bus import Bus
from local.bus.by_hand import client_bus
from local.bus.envelope import Envelope, decode, needs_packing, new_id
from local.bus.filter import Filter
from local.bus.message import MAIN_RESPONDENT, QUERY_RECEIVED, Message
from local.bus.messages import QueryFailed, QueryReceived, ResponseGeneration, ToolRequest, ToolResult
from local.bus.security import Declaration
from local.cli.main import (
    STANDARD_OUTPUT,
    BusOption,
    DataDir,
    Moment,
    Subject,
    cut,
    date_and_time,
    moment,
    terminal_width,
    visible,
    write_lines,
    write_listed,
)
from local.cli.tap import (
    READY_SECONDS,
    FilterWords,
    HumanView,
    Printer,
    chosen,
    find_bus,
    print_until_stopped,
)
from local.core.data_dir import NotRunning, RunDirectory
from local.core.environment import data_dir as find_data_dir
from local.core.errors import LocalError, NotOnRecord, RequestTimeout
from local.journal.messages import JournalRedeliver, JournalRedelivered
from local.journal.schema import FILE_NAME, Stored
from local.journal.store import JournalView, SessionSpan
from local.queries.export import JournalRecord, read_export
from local.queries.view import QueryView, kind_of

# `local2 journal play`: publish an export again on the bus of a running system, in the player's name.

SENDER = "player"
STANDARD_INPUT = 0

# Waits until a message is due that came so many seconds after the first. False: nothing more is to be played.
Pace = Callable[[float], Awaitable[bool]]


def play(
    records: Sequence[JournalRecord],
    left_out: Mapping[str, int],
    make_pace: Callable[[], Pace],
    *,
    keeps_ids: bool,
    data_dir: Path | None,
    addresses: str | None,
) -> None:
    """Play records and show each message, until their end or Ctrl-C; report on the error output what was left out.

    `addresses` is "PUB,SUB"; without it, the system that runs on the data directory. `make_pace` is called in the event
    loop. Raises `LocalError`: no such system, an output that fails.
    """
    blobs = BlobStore(find_data_dir(data_dir) / "blobs")

    async def work(bus: Bus, printer: Printer[Envelope], stop: asyncio.Event) -> None:
        for reason, number in left_out.items():
            printer.note(f"left out {number} {reason}")
        player = JournalPlayer(bus, blobs, lambda envelope: printer.offer(envelope, len(envelope.payload)))
        await until(stop, player.play(records, make_pace(), keeps_ids=keeps_ids))
        printer.note(f"played {player.count} of {len(records)}")

    view = HumanView(width=terminal_width)
    declaration = Declaration(frozenset(record.envelope.subject for record in records))
    print_until_stopped(view, work, data_dir=data_dir, addresses=addresses, sender=SENDER, declaration=declaration)


class PlayRefused(LocalError):
    """The refusal of a replay that would record existing messages a second time."""

    kind = "conflict"


def refuse_own_system(data_dir: Path, addresses: str | None) -> None:
    """Raises `PlayRefused` where the bus is that of the system which runs on a data directory, and `NotRunning` where
    no bus is named and none runs."""
    try:
        own = RunDirectory(data_dir).read()
    except NotRunning:
        if addresses is None:
            raise
        return
    if addresses is None or [part.strip() for part in addresses.split(",")] == [own.publish_to, own.subscribe_to]:
        raise PlayRefused(
            f"the system on {data_dir} would record all messages a second time; name another bus (--bus"
            " PUB,SUB), keep the ids (--same-ids), or allow it (--twice-on-record)"
        )


class JournalPlayer:
    """A player that publishes recorded messages again on a bus; `played` receives each envelope that was sent, `count`
    is their number.
    """

    def __init__(self, bus: Bus, blobs: BlobStore, played: Callable[[Envelope], object]) -> None:
        self._bus, self._blobs, self._played = bus, blobs, played
        self.count = 0

    async def play(self, records: Sequence[JournalRecord], due: Pace, *, keeps_ids: bool) -> None:
        """Returns when the proxy has them all. Raises as `Bus.ready` and `Bus.send` do."""
        rewriter = EnvelopeRewriter(self._bus.instance, keeps_ids=keeps_ids)
        async with self._bus as bus:
            await bus.ready(READY_SECONDS)
            for record in records:
                if not await due(max(0.0, record.committed_at - records[0].committed_at)):
                    break
                envelope = await self._packed(rewriter.rewrite(record.envelope, time.time()))
                await bus.send(envelope)
                self.count += 1
                self._played(envelope)
            await bus.ready(READY_SECONDS)  # the probe comes back behind everything that was sent

    async def _packed(self, envelope: Envelope) -> Envelope:
        if not needs_packing(envelope.payload):
            return envelope
        return envelope._replace(payload=await self._blobs.pack_aside(envelope.payload))


class EnvelopeRewriter:
    """A rewriter that replaces the sender by the player. Envelope ids are new unless `keeps_ids`; links between
    envelopes are kept.

    A reply to a message that is not played gets no recipient, because a request with that id could still be open in
    the running system.
    """

    def __init__(self, instance: str, *, keeps_ids: bool) -> None:
        self._instance, self._keeps_ids = instance, keeps_ids
        self._ids: dict[str, str] = {}
        self._seqs: Counter[str] = Counter()

    def rewrite(self, envelope: Envelope, now: float) -> Envelope:
        """The envelope to send; `now` is in seconds since 1970."""
        self._seqs[envelope.subject] += 1
        self._ids[envelope.id] = envelope.id if self._keeps_ids else new_id()
        return envelope._replace(
            id=self._ids[envelope.id],
            sender=SENDER,
            instance=self._instance,
            seq=self._seqs[envelope.subject],
            cause_id=self._ids.get(envelope.cause_id or "", envelope.cause_id),
            in_reply_to=self._ids.get(envelope.in_reply_to or ""),
            sent_at=now,
        )


async def until(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    """Do `work` until it is done or `stop` is set. Raises its errors."""
    working, stopped = asyncio.create_task(work), asyncio.create_task(stop.wait())
    try:
        await asyncio.wait({working, stopped}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        stopped.cancel()
        working.cancel()
        await asyncio.wait({working, stopped})
    if not working.cancelled():
        working.result()


def without_pause() -> Pace:
    """Each message as soon as the bus takes it."""

    async def due(seconds: float) -> bool:
        await asyncio.sleep(0)  # let Ctrl-C in
        return True

    return due


def spaced(rate: float) -> Pace:
    """Keep the original pauses, `rate` times as fast; counted from the first message."""
    clock = asyncio.get_running_loop().time
    started: float | None = None

    async def due(seconds: float) -> bool:
        nonlocal started
        started = clock() if started is None else started
        await asyncio.sleep(started + seconds / rate - clock())
        return True

    return due


def stepwise(descriptor: int = STANDARD_INPUT) -> Pace:
    """Yield one message for each line of input, until its end."""
    loop, enters = asyncio.get_running_loop(), asyncio.Queue[bool]()

    def listen() -> None:
        with suppress(RuntimeError):  # the loop has ended
            while data := os.read(descriptor, 1024):  # a read that blocks inside Python's own buffers blocks the exit
                for _ in range(data.count(b"\n")):
                    loop.call_soon_threadsafe(enters.put_nowait, True)
            loop.call_soon_threadsafe(enters.put_nowait, False)

    async def due(seconds: float) -> bool:
        return await enters.get()

    threading.Thread(target=listen, name="journal play input", daemon=True).start()
    return due


# The journal of a data directory, as the commands read it: while a system runs there, or not.

MANY = 5


class JournalSource(NamedTuple):
    """The journal with the large fields that are stored beside it."""

    journal: JournalView
    blobs: BlobStore

    def find(self, key: str) -> Iterator[JournalRecord]:
        """The messages of the session, or of the query, with this id, or with the only one that begins like this, in
        order. Raises `NotOnRecord`."""
        if not self._is_session(key) and not self._is_query(key):
            key = self._whole(key)
        is_session = self._is_session(key)
        found = self.journal.read_all(session_id=key) if is_session else self.journal.read_all(correlation_id=key)
        return map(_record, found)

    def session(self, key: str) -> str:
        """The id of the session with this id or with the only one that begins like this. Raises `NotOnRecord`."""
        return key if self._is_session(key) else self._whole(key)

    def select(self, wanted: Filter, since: float | None = None, until: float | None = None) -> Iterator[JournalRecord]:
        """The messages that match and were committed from `since` on and before `until`, oldest first."""
        subjects = [subject for subject in wanted.subscriptions() if subject]
        session_id, query_id = wanted.exact("session"), wanted.exact("query")
        stored = self.journal.read_all(
            subjects=subjects, session_id=session_id, correlation_id=query_id, since=since, until=until
        )
        return (record for record in map(_record, stored) if wanted.matches(record.envelope))

    def _is_session(self, key: str) -> bool:
        return bool(self.journal.read(limit=1, session_id=key))

    def _is_query(self, key: str) -> bool:
        return bool(self.journal.read(limit=1, correlation_id=key))

    def _whole(self, beginning: str) -> str:
        """The only id of a session or query that begins like this."""
        match self.journal.ids(beginning, most=MANY) if beginning else []:
            case [whole]:
                return whole
            case []:
                text = f"no session or query {beginning!a} is in the journal; `local2 journal list` shows the sessions"
            case ids:
                more = ", …" if len(ids) == MANY else ""
                text = f"several ids begin with {beginning!a}: {', '.join(ids)}{more}; type more of it"
        raise NotOnRecord(text)


def _record(stored: Stored) -> JournalRecord:
    return JournalRecord(stored.number, stored.committed_at, stored.redacted, decode(stored.entry.frame))


@contextmanager
def open_source(data_dir: Path | None) -> Iterator[JournalSource]:
    """Open the journal in the data directory for reading. Raises `NotOnRecord`, `StoreFailed`."""
    folder = find_data_dir(data_dir)
    with JournalView(folder / FILE_NAME) as journal:
        yield JournalSource(journal, BlobStore(folder / "blobs"))


# The messages of an export that may be published again on a running bus. Plain code.

# Published again, these would have the system work: ask its model, run its tools, stop a turn, change its memory.
WORK = Filter("subject:query.received,query.cancel,*.request.*,user.feedback,config.changed")
# Published again, these would be false statements about the running system: its participants, tools and safety levels.
MACHINERY = Filter("subject:journal.,bus.,participant.status,tool.schema,tool.schema.request")


class PlayFilter:
    """A filter of the messages to play; `left_out` counts the others by reason."""

    def __init__(self, wanted: Filter, *, include_queries: bool) -> None:
        self._wanted, self._include_queries = wanted, include_queries
        self.left_out: Counter[str] = Counter()

    def choose(self, records: Iterable[JournalRecord]) -> Iterator[JournalRecord]:
        """The records that are selected, still have their payload, and are harmless or asked for."""
        for record in records:
            if not self._wanted.matches(record.envelope):
                continue
            if reason := self._objection(record):
                self.left_out[reason] += 1
            else:
                yield record

    def _objection(self, record: JournalRecord) -> str:
        subject = record.envelope.subject
        if record.redacted:
            return "whose payload was removed"
        if not isinstance(record.content(None), dict):
            return "whose payload is no JSON object"
        if MACHINERY.may_match(subject):
            return "about the internals of the recording system"
        if WORK.may_match(subject) and not self._include_queries:
            return "that the system would execute; --include-queries plays them, too"
        return ""


# `local2 journal redeliver`: the journal of a running system delivers dead letters to their consumers again.

REDELIVERY_SENDER = "redelivery"
ANSWER_SECONDS = 20.0


class NotRedelivered(LocalError):
    """The reason why no dead letter is redelivered; the text is the journal's own if it has answered."""

    kind = "not_redelivered"


def redeliver(
    numbers: Sequence[int], consumer: str | None, *, data_dir: Path | None, addresses: str | None
) -> Iterator[str]:
    """Have dead letters delivered again; returns a line for each consumer that gets some.

    `addresses` is "PUB,SUB"; without it, the system that runs on the data directory. Raises `LocalError`: no such
    system, no such consumer, a number that is no dead letter (the others are delivered again).
    """
    request = JournalRedeliver(consumer=consumer, numbers=tuple(numbers))
    given = asyncio.run(_ask(request, find_data_dir(data_dir), addresses))
    for name, of_it in given.items():
        yield f"redelivered to {name}: {', '.join(map(str, of_it))}"
    missing = set(numbers) - {number for of_it in given.values() for number in of_it}
    if missing or not given:
        what = ", ".join(map(str, sorted(missing))) or "nothing"
        raise NotOnRecord(
            f"{what}: no dead letter of {consumer or 'anybody'}; `local2 journal dead` lists those there are"
        )


async def _ask(request: JournalRedeliver, data_dir: Path, addresses: str | None) -> Mapping[str, tuple[int, ...]]:
    says = Declaration(frozenset({JournalRedeliver.subject}))
    async with client_bus(find_bus(data_dir, addresses), REDELIVERY_SENDER, says) as bus:
        await bus.ready(READY_SECONDS)
        try:
            answer = await bus.request(request, JournalRedelivered, ANSWER_SECONDS)
        except RequestTimeout:
            why = f"the journal has not answered within {ANSWER_SECONDS:.0f} s; is it running?"
            raise NotRedelivered(why) from None
    if answer.error is not None:
        raise NotRedelivered(answer.error.message)
    return answer.numbers


# `local2 journal list` and `show`: sessions and queries, from the journal alone.

REMOVED = "(removed)"  # in place of a redacted text
MAX_OUTCOME = 1000  # characters of a tool's result
SHOWN = (QueryReceived, QueryFailed, ResponseGeneration, ToolRequest, ToolResult)
LEAST_LISTED = 120  # columns, of which the first query has 34

Turn = tuple[float, dict[str, QueryView]]  # when it was asked, in seconds since 1970, and each respondent's view


def list_sessions(source: JournalSource, width: int | None) -> Iterator[str]:
    """A line for each session, cut to `width` unless nothing were left of its query, and one for all."""
    form = "{:<32}  {:>8}  {:<19}  {:<19}  {}"
    width = width and max(width, LEAST_LISTED)
    yield cut(form.format("session", "messages", "first", "last", "first query"), width)
    for span in source.journal.sessions():
        first, last = date_and_time(span.first_at), date_and_time(span.last_at)
        line = form.format(span.session_id, span.messages, first, last, _first_query(source, span))
        yield cut(visible(line), width)
    entries, first_number, last_number, size = source.journal.count()
    numbers = f"numbers {first_number} to {last_number}, " if entries else ""
    yield f"{entries} messages in all, {numbers}{size} bytes"


def list_dead_letters(source: JournalSource) -> Iterator[str]:
    """Yield a line for each dead letter, below a heading; nothing if there are none."""
    form = "{:>8}  {:<19}  {:<16}  {:<24}  {:<32}  {}"
    for index, dead in enumerate(source.journal.dead_letters()):
        if not index:
            yield form.format("number", "time", "consumer", "subject", "query", "why")
        time = date_and_time(dead.committed_at)
        yield visible(form.format(dead.number, time, dead.consumer, dead.subject, dead.query_id, dead.reason))


def show_messages(records: Iterable[JournalRecord]) -> Iterator[str]:
    """A line for each message: number, time, subject, sender."""
    for record in records:
        time, removed = date_and_time(record.committed_at), f"  {REMOVED}" if record.redacted else ""
        yield visible(f"{record.number:>8}  {time}  {record.envelope.subject:<32}  {record.envelope.sender}{removed}")


def show_conversation(source: JournalSource, records: Iterable[JournalRecord]) -> Iterator[str]:
    """Yield the lines of a conversation: questions, thinking, tool calls and answers."""
    for asked_at, views in turns(records, source.blobs):
        yield from map(visible, _turn(asked_at, views))


def turns(records: Iterable[JournalRecord], blobs: BlobStore | None) -> Collection[Turn]:
    """Return the turns in a list of messages, in the order of their first message."""
    found: dict[str, Turn] = {}
    for record in records:
        kind, query_id = kind_of(record.envelope.subject), record.envelope.correlation_id
        if kind not in SHOWN:
            continue
        _, views = found.setdefault(query_id, (record.committed_at, {MAIN_RESPONDENT: QueryView(query_id)}))
        message = _read(kind, record.content(blobs))
        respondent_id = getattr(message, "respondent_id", MAIN_RESPONDENT)
        view = views.setdefault(respondent_id, QueryView(query_id, respondent_id=respondent_id))
        view.receive(message, record.envelope)
    return found.values()


def _read(kind: type[Message], content: dict[str, Any] | str | None) -> Message | None:
    """Return a recorded message; an unreadable one counts as removed."""
    try:
        return kind.model_validate(content)
    except ValidationError:
        return None


def _turn(asked_at: float, views: Mapping[str, QueryView]) -> Iterator[str]:
    asked = views[MAIN_RESPONDENT]
    yield f"{date_and_time(asked_at)}  query {asked.query_id}"
    yield from _indented(REMOVED if asked.query is None else asked.query)
    for view in views.values():
        for call in view.calls:
            yield from _call(call, REMOVED if view.calls.is_removed(call) else _result(call))
    ended = [view for view in views.values() if view.ended or view.is_outcome_removed]
    for view in ended:
        yield from _outcome(view)
    if not ended:
        yield "no outcome recorded"
    yield ""


def _call(call: Mapping[str, Any], result: str) -> Iterator[str]:
    args = json.dumps(call["args"], ensure_ascii=False) if "args" in call else REMOVED
    yield f"{call['tool']} {args}"
    cut = f" … ({len(result)} characters)" if len(result) > MAX_OUTCOME else ""
    yield from _indented(result[:MAX_OUTCOME] + cut if result else "no result recorded")


def _result(call: Mapping[str, Any]) -> str:
    error = call.get("error")
    return f"{error['kind']}: {error['message']}" if error else call.get("result") or ""


def _outcome(view: QueryView) -> Iterator[str]:
    if view.thinking:
        yield "thinking"
        yield from _indented(view.thinking)
    status = view.status if view.ended else REMOVED
    yield status if view.respondent_id == MAIN_RESPONDENT else f"{status} by {view.respondent_id}"
    yield from _indented((view.answer or _failure(view)) if view.ended else REMOVED)


def _failure(view: QueryView) -> str:
    error = view.failure if view.response is None else view.response.error
    return "" if error is None else f"{error.kind}: {getattr(error, 'message', error)}"


def _indented(text: str) -> Iterator[str]:
    return (f"    {line}" for line in text.splitlines())


def _first_query(source: JournalSource, span: SessionSpan) -> str:
    for stored in source.journal.read(limit=1, session_id=span.session_id, subjects=[QUERY_RECEIVED]):
        content = _record(stored).content(source.blobs)
        return str(content.get("query", "")) if isinstance(content, dict) else REMOVED
    return ""


journal_app = typer.Typer(help="Read and export the recorded messages: list, show, dead, redeliver, export, play.")


@journal_app.command("list")
def list_command(words: FilterWords = None, data_dir: DataDir = None) -> None:
    """Show the sessions: first query, number of messages, first and last time. With a filter, show the messages that
    match, one per line.

    Example: local2 journal list 'subject:tool.result.* payload.error.kind=timeout'
    """
    with open_source(data_dir) as source:
        write_lines(show_messages(source.select(chosen(words))) if words else list_sessions(source, terminal_width()))


@journal_app.command("show")
def show_command(
    key: Annotated[str, typer.Argument(metavar="ID", help="A session or a query.")],
    messages: Annotated[bool, typer.Option("--messages", help="Show every message, one on a line.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Show a conversation: questions, thinking, tool calls and answers."""
    with open_source(data_dir) as source:
        records = source.find(key)
        write_lines(show_messages(records) if messages else show_conversation(source, records))


@journal_app.command("dead")
def dead_command(data_dir: DataDir = None) -> None:
    """Show the dead letters: messages that a participant could not handle, which are not delivered again."""
    with open_source(data_dir) as source:
        write_listed(list_dead_letters(source), "there are no dead letters")


@journal_app.command("redeliver")
def redeliver_command(
    numbers: Annotated[
        list[int] | None, typer.Argument(metavar="NUMBER...", help="Numbers that `local2 journal dead` shows.")
    ] = None,
    consumer: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Only to this consumer; without NUMBER, all of its dead letters."),
    ] = None,
    data_dir: DataDir = None,
    bus: BusOption = None,
) -> None:
    """Deliver dead letters again, after the cause of the failure was repaired.

    The system must be running. The participant need not be: it receives the messages when it starts. Deleted messages
    are not delivered. A failed query already has its answer, the error; ask it again instead.
    """
    if not numbers and consumer is None:
        raise typer.BadParameter("give the NUMBERs of dead letters, or --consumer NAME for all of that consumer's")
    write_lines(redeliver(numbers or (), consumer, data_dir=data_dir, addresses=bus))


@journal_app.command("export")
def export_command(
    words: FilterWords = None,
    session: Annotated[str | None, typer.Option(metavar="ID", help="Only this session.")] = None,
    since: Moment = None,
    until: Moment = None,
    subject: Subject = None,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write to this file instead of the standard output.")
    ] = None,
    data_dir: DataDir = None,
) -> None:
    """Export messages as JSON lines, one object per message."""
    now, wanted = time.time(), chosen(words, subject)
    begin = None if since is None else moment(since, "--since", now)
    end = None if until is None else moment(until, "--until", now)
    with open_source(data_dir) as source:
        if session is not None:
            wanted &= Filter.of("session", [source.session(session)], "=")
        records = source.select(wanted, begin, end)
        write_lines((record.as_json(source.blobs) for record in records), output or STANDARD_OUTPUT)


@journal_app.command("play")
def play_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file that `local2 journal export` wrote.")],
    rate: Annotated[float | None, typer.Option(min=0.001, help="Speed; 2 is twice as fast as the original.")] = None,
    step: Annotated[bool, typer.Option("--step", help="Wait for Enter before each message.")] = False,
    at_once: Annotated[bool, typer.Option("--at-once", help="Publish all messages without pauses.")] = False,
    subject: Subject = None,
    include_queries: Annotated[
        bool,
        typer.Option(
            "--include-queries",
            help="Also publish queries, tool calls and cancellations, which the system then executes.",
        ),
    ] = False,
    same_ids: Annotated[bool, typer.Option("--same-ids", help="Keep the original message ids.")] = False,
    twice_on_record: Annotated[
        bool, typer.Option("--twice-on-record", help="Allow a running system to record the messages a second time.")
    ] = False,
    data_dir: DataDir = None,
    bus: BusOption = None,
) -> None:
    """Publish the messages of an export again, with their original timing, on a bus of their own (--bus) or that of a
    running system.

    Use it to test observers and user interfaces. Queries, tool calls and cancellations are left out unless you pass
    --include-queries, because a running system would execute them again. A running system records the messages a
    second time unless you pass --same-ids; confirm that with --twice-on-record.
    """
    if (rate is not None) + step + at_once > 1:
        raise typer.BadParameter("--rate, --step and --at-once exclude each other; give one of them")
    make_pace = without_pause if at_once else stepwise if step else functools.partial(spaced, rate or 1.0)
    play_filter = PlayFilter(Filter.of("subject", subject or ["*"]), include_queries=include_queries)
    records = list(play_filter.choose(read_export(file)))
    if not (same_ids or twice_on_record):
        refuse_own_system(find_data_dir(data_dir), bus)
    play(records, play_filter.left_out, make_pace, keeps_ids=same_ids, data_dir=data_dir, addresses=bus)
