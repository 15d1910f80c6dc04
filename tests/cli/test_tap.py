"""The tap on a bus: in memory, and once through a real proxy and the command line."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from array import array
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from fcntl import ioctl
from pathlib import Path
from termios import FIONREAD
from time import monotonic
from typing import IO

import pytest

from local.bus.bus import Bus
from local.bus.envelope import Envelope, Trace
from local.bus.filter import Filter
from local.bus.messages import BusGap, GenerationToken, ParticipantStatus, QueryCancel, ToolRequest
from local.bus.proxy import Proxy
from local.bus.security import Declaration, Declarations, Keyring
from local.bus.zeromq import MemoryHub, ZeroMQTransport
from local.cli.entry import main
from local.cli.tap import (
    ELSEWHERE,
    STOPPED,
    FieldView,
    PlainView,
    Printer,
    SystemWatch,
    View,
    chosen,
    client_bus,
    find_bus,
    report_each_second,
    watch,
)
from local.cli.tap_stats import ArrivalRate, count_subjects
from local.core.bus_address import BusAddress
from local.core.data_dir import NotRunning, RunDirectory, RunInfo
from local.core.errors import ConfigError

SECONDS = 90.0
SRC = Path(__file__).parents[2] / "src"


def cancel(number: int) -> QueryCancel:
    return QueryCancel(query_id=f"q{number}")


def unread(pipe: IO[bytes]) -> int:
    """How many bytes wait in a pipe."""
    waiting = array("i", [0])
    ioctl(pipe.fileno(), FIONREAD, waiting)
    return waiting[0]


def tool_request(number: int) -> ToolRequest:
    return ToolRequest(query_id=f"q{number}", call_id="c", tool="y", args={})


def beat(bus: Bus) -> ParticipantStatus:
    return ParticipantStatus(
        name=bus.sender, kind="frontend", pid=1, instance=bus.instance, state="ready", last_seq=bus.last_seq
    )


class Terminal:
    """Reads what a printer writes."""

    def __init__(self) -> None:
        self._out, self._err = os.pipe(), os.pipe()
        self.out, self.err = self._out[1], self._err[1]
        self._lines: asyncio.Queue[str] = asyncio.Queue()
        self.stop = asyncio.Event()

    def printer(self, view: View[Envelope]) -> Printer[Envelope]:
        return Printer(view, on_end=self.stop.set, out=self.out, err=self.err)

    async def heard(self) -> str:
        """The first line on the error output: what was said so far is subscribed to."""
        return await asyncio.wait_for(asyncio.to_thread(self._read_err_line), SECONDS)

    def _read_err_line(self) -> str:
        line = b""
        while not line.endswith(b"\n"):
            line += os.read(self._err[0], 1)
        return line.decode()

    def read(self) -> tuple[list[str], list[str]]:
        """All lines of both outputs, after the printer has ended."""
        lines = []
        for reading, writing in (self._out, self._err):
            os.close(writing)
            with os.fdopen(reading) as file:
                lines.append(file.read().splitlines())
        return lines[0], lines[1]


@asynccontextmanager
async def tapped(hub: MemoryHub, wanted: Filter, *paths: str) -> AsyncIterator[tuple[Bus, Terminal, list[str]]]:
    """A sender's bus beside a tap that shows `paths`; its output is in the list, its errors after that, at the end."""
    terminal, seen = Terminal(), list[str]()
    async with Bus("sender", hub.transport()) as sender:
        await sender.ready()
        async with terminal.printer(FieldView(paths)) as printer:
            task = asyncio.create_task(watch(Bus("tap", hub.transport()), wanted, printer, terminal.stop))
            assert await terminal.heard() == "listening; Ctrl-C ends it\n"
            yield sender, terminal, seen
            await settled(hub)
            terminal.stop.set()
            await asyncio.wait_for(task, SECONDS)
    out, err = terminal.read()
    seen += [*out, *err]


async def settled(hub: MemoryHub) -> None:
    """Everything sent before is delivered: the hub passes frames on in order."""
    async with Bus("last", hub.transport()) as last:
        await last.ready()


async def test_what_is_selected_is_shown_and_nothing_else() -> None:
    async with tapped(MemoryHub(), chosen([], ["query."], session="s1"), "subject", "payload.query_id") as tap:
        sender, _, seen = tap
        await sender.publish(cancel(1), Trace("q1", session_id="s1"))
        await sender.publish(cancel(2), Trace("q2", session_id="s2"))
        await sender.publish(GenerationToken(query_id="q1", index=0, text="x"), Trace("q1", session_id="s1"))
    assert seen == ["query.cancel\tq1"]


async def test_the_beginning_of_an_id_selects_a_session_or_a_query() -> None:
    async with tapped(MemoryHub(), Filter("session:s1a query:q1"), "payload.query_id") as tap:
        sender, _, seen = tap
        await sender.publish(cancel(1), Trace("q1abc", session_id="s1abc"))
        await sender.publish(cancel(2), Trace("q1abc", session_id="s1"))
        await sender.publish(cancel(3), Trace("q1abc"))
    assert seen == ["q1"]


def test_the_help_shows_the_options_of_echo_too(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["tap", "--help"])
    shown = capsys.readouterr().out
    assert not ended.value.code
    assert all(each in shown for each in ("echo", "list", "hz", "--subject", "--session", "--no-payload", "--bus"))


async def test_that_the_system_stops_and_comes_back_is_said(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path / "data")
    facts = RunInfo(os.getpid(), "ipc:///a", "ipc:///b", False, "", "stand_in", None)
    file = directory.path / "facts.json"
    try:
        directory.write(facts)
        watch = SystemWatch(directory, BusAddress("ipc:///a", "ipc:///b"))
        assert watch.news() == ""
        file.unlink()
        assert [watch.news(), watch.news()] == [STOPPED, ""]
        directory.write(facts)
        assert [watch.news(), watch.news()] == [f"the system is back (process {os.getpid()})", ""]
        file.unlink()
        assert watch.news() == STOPPED
        directory.write(replace(facts, subscribe_to="tcp://127.0.0.1:1"))
        assert watch.news() == ELSEWHERE
        directory.write(replace(facts, pid=os.getppid()))
        assert watch.news() == f"the system is back (process {os.getppid()})"
    finally:
        shutil.rmtree(directory.path)


async def test_an_envelope_that_two_filters_match_is_shown_once() -> None:
    async with tapped(MemoryHub(), Filter("subject:query.,query.cancel,*"), "payload.query_id") as tap:
        sender, _, seen = tap
        await sender.publish(cancel(1))
    assert seen == ["q1"]


async def test_lost_messages_are_reported_without_being_asked_for() -> None:
    async with tapped(MemoryHub(), Filter(), "payload.query_id") as tap:
        sender, _, seen = tap
        await sender.publish(cancel(1))
        sender.last_seq["query.cancel"] += 12
        await sender.publish(cancel(2))
    assert seen == ["q1", "q2", "lost 12 of query.cancel from sender"]


async def test_losses_of_what_is_not_shown_are_not_reported() -> None:
    async with tapped(MemoryHub(), Filter("subject:tool.*.x"), "payload.query_id") as tap:
        sender, _, seen = tap
        await sender.publish(tool_request(1))
        sender.last_seq["tool.request.y"] += 5
        await sender.publish(tool_request(2))
    assert seen == []


async def test_frames_that_are_no_messages_are_counted() -> None:
    hub = MemoryHub()
    async with tapped(hub, Filter(), "payload.query_id") as tap:
        sender, _, seen = tap
        hub.forward(b"query.cancel\0rubbish\0{}")
        await sender.publish(cancel(1))
    assert seen == ["q1", "lost 1 that are not messages of this protocol"]


async def test_gaps_that_others_report_are_shown_as_any_message() -> None:
    async with tapped(MemoryHub(), Filter(), "subject", "payload.missed") as tap:
        sender, _, seen = tap
        await sender.publish(BusGap(observer="a", sender="b", instance="c", missed_subject="d", missed=4))
    assert seen == ["bus.gap\t4"]


async def test_the_list_has_every_subject_the_status_beats_included() -> None:
    hub, terminal = MemoryHub(), Terminal()
    async with Bus("sender", hub.transport()) as sender:
        await sender.ready()
        async with Printer(PlainView(), on_end=lambda: None, out=terminal.out, err=terminal.err) as printer:
            task = asyncio.create_task(
                count_subjects(Bus("tap", hub.transport()), printer, terminal.stop, 60, as_json=True)
            )
            await terminal.heard()
            await sender.publish(cancel(1))
            sender.post(beat(sender))
            await settled(hub)
            terminal.stop.set()
            await asyncio.wait_for(task, SECONDS)
    [line], _ = terminal.read()
    subjects = {row["subject"]: (row["count"], row["publishers"]) for row in json.loads(line)["subjects"]}
    assert subjects == {"query.cancel": (1, ["sender"]), "participant.status": (1, ["sender"])}


async def test_hz_reports_at_the_end_at_the_latest() -> None:
    hub, terminal = MemoryHub(), Terminal()
    async with Bus("sender", hub.transport()) as sender:
        await sender.ready()
        async with Printer(PlainView(), on_end=lambda: None, out=terminal.out, err=terminal.err) as printer:
            wanted, rate = Filter("subject:query.cancel"), ArrivalRate()
            task = asyncio.create_task(
                report_each_second(
                    Bus("tap", hub.transport()),
                    wanted,
                    lambda _: rate.add(monotonic()),
                    rate.report,
                    printer,
                    terminal.stop,
                )
            )
            await terminal.heard()
            for number in range(5):
                await sender.publish(cancel(number))
            await settled(hub)
            terminal.stop.set()
            await asyncio.wait_for(task, SECONDS)
    lines, _ = terminal.read()
    assert any(line.startswith("average rate: ") and line.endswith("window: 4") for line in lines)


def test_without_a_running_system_the_error_says_so(tmp_path: Path) -> None:
    with pytest.raises(NotRunning, match="no system runs on"):
        find_bus(tmp_path, None)


@pytest.mark.parametrize("addresses", ["", "tcp://127.0.0.1:1", "one,two", "tcp://a:1,"])
def test_a_bus_is_named_by_two_addresses(addresses: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="expected PUB,SUB"):
        find_bus(tmp_path, addresses)


def test_a_named_tcp_bus_is_spoken_to_with_the_keys_of_the_data_directory(tmp_path: Path) -> None:
    named = "tcp://127.0.0.1:5555, tcp://127.0.0.1:5556"
    assert find_bus(tmp_path, named) == BusAddress("tcp://127.0.0.1:5555", "tcp://127.0.0.1:5556")
    Keyring(tmp_path / "keys").server()
    assert find_bus(tmp_path, named).keyring == tmp_path / "keys"
    assert find_bus(tmp_path, "ipc:///a,ipc:///b").keyring is None


@asynccontextmanager
async def running_system(tmp_path: Path) -> AsyncIterator[tuple[Path, Bus]]:
    """A proxy and one participant, found by the data directory as a real system is."""
    data_dir = tmp_path / "data"
    directory = RunDirectory(data_dir)
    address = BusAddress(f"ipc://{directory.path / 'pub'}", f"ipc://{directory.path / 'sub'}")
    Declarations(data_dir / "senders").write("sender", Declaration(frozenset({""})))
    facts = RunInfo(os.getpid(), address.publish_to, address.subscribe_to, False, "", "stand_in", None)
    (directory.path / "facts.json").write_text(json.dumps(asdict(facts)))
    proxy = Proxy(address)
    try:
        async with Bus("sender", ZeroMQTransport(address)) as sender:
            await sender.ready()
            yield data_dir, sender
    finally:
        await asyncio.to_thread(proxy.close)
        shutil.rmtree(directory.path)


@asynccontextmanager
async def tap_command(*arguments: str) -> AsyncIterator[subprocess.Popen[bytes]]:
    """`local2 tap …` as a process of its own that has begun to listen; its output is a small pipe that nobody reads."""
    program = "import sys; from local.cli.tap_commands import tap_app; tap_app(sys.argv[1:], prog_name='tap')"
    pipe, variables = subprocess.PIPE, {**os.environ, "PYTHONPATH": str(SRC)}
    with subprocess.Popen(  # noqa: ASYNC220 - asyncio's own would read the pipe
        [sys.executable, "-c", program, *arguments], stdout=pipe, stderr=pipe, env=variables, pipesize=4096
    ) as process:
        assert process.stderr is not None
        try:
            assert await asyncio.to_thread(process.stderr.readline) == b"listening; Ctrl-C ends it\n"
            yield process
        finally:
            process.kill()


async def test_the_command_shows_messages_and_ctrl_c_ends_it_while_nobody_reads_its_output(
    tmp_path: Path, until: Callable[[Callable[[], object]], Awaitable[None]]
) -> None:
    async with (
        running_system(tmp_path) as (data_dir, sender),
        tap_command("--data-dir", str(data_dir), "--json", "--subject", "query.") as process,
    ):
        assert process.stdout is not None
        await sender.publish(cancel(1))
        assert json.loads(await asyncio.to_thread(process.stdout.readline))["payload"] == {"query_id": "q1"}
        output = process.stdout
        for number in range(1_500):  # a hundred times what the pipe holds
            await sender.publish(cancel(number))
        await until(lambda: unread(output))
        process.send_signal(signal.SIGINT)
        assert await asyncio.to_thread(process.wait, SECONDS) == 0


async def test_what_a_command_has_declared_counts_for_those_who_look_when_it_has_ended(tmp_path: Path) -> None:
    address = BusAddress(f"ipc://{tmp_path / 'pub'}", f"ipc://{tmp_path / 'sub'}", senders=tmp_path / "senders")
    for subject in ("query.cancel", "query.received"):
        async with client_bus(address, "tap_pub", Declaration(frozenset({subject}))):
            pass
    declared = Declarations(tmp_path / "senders").read("tap_pub")
    assert declared is not None and declared.says == {"query.cancel", "query.received"}
