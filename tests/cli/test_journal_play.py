"""`local2 journal play`: what is said again, how fast, and what never is."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from local.bus.blobs import BlobStore
from local.bus.bus import Bus
from local.bus.envelope import Envelope
from local.bus.filter import Filter
from local.bus.message import Message
from local.bus.messages import (
    AgentTransition,
    BusGap,
    QueryCancel,
    QueryReceived,
    ToolRequest,
    ToolResult,
    ToolSchemaRequest,
)
from local.bus.proxy import Proxy
from local.bus.zeromq import MemoryHub, ZeroMQTransport
from local.cli.entry import main
from local.core.bus_address import BusAddress
from local.core.data_dir import RunDirectory, RunInfo
from local.journal import commands
from local.journal.commands import (
    EnvelopeRewriter,
    JournalPlayer,
    Pace,
    PlayFilter,
    spaced,
    stepwise,
    until,
)
from local.journal.commands import without_pause as at_once
from local.queries.export import JournalRecord

SECONDS = 90.0  # beside others a command may take long to begin
SRC = Path(__file__).parents[2] / "src"
EVERYTHING = Filter("subject:*")
CALL: dict[str, Any] = {"query_id": "q1", "call_id": "c", "tool": "x"}
TALK = (
    QueryReceived(query_id="q1", query="?"),
    AgentTransition(agent="generator", query_id="q1", from_state="a", action="b", to_state="c"),
    ToolRequest(**CALL, args={}),
    ToolResult(**CALL, result="r"),
    QueryCancel(query_id="q1"),
    ToolSchemaRequest(),
    BusGap(observer="a", sender="b", instance="c", missed_subject="d", missed=1),
)


def record(number: int, message: Message, *, redacted: bool = False) -> JournalRecord:
    """Message `number`, committed so many seconds after the beginning, caused by the one before it."""
    envelope = Envelope(
        message.routing_key, f"id-{number}", "sender", "i1", number, "q1", b"" if redacted else message.encode(),
        f"id-{number - 1}", None, "s1", sent_at=1.0,
    )  # fmt: skip
    return JournalRecord(number, 1000.0 + number, redacted, envelope)


RECORDS = [record(number, message) for number, message in enumerate(TALK, 1)]


def test_what_makes_a_system_work_is_left_out_and_counted() -> None:
    play_filter = PlayFilter(EVERYTHING, include_queries=False)
    assert [each.envelope.subject for each in play_filter.choose(RECORDS)] == ["agent.transition", "tool.result.x"]
    assert play_filter.left_out == {
        "that the system would execute; --include-queries plays them, too": 3,
        "about the internals of the recording system": 2,
    }


def test_queries_are_played_if_asked_for_but_the_machinery_never() -> None:
    play_filter = PlayFilter(EVERYTHING, include_queries=True)
    assert [each.number for each in play_filter.choose(RECORDS)] == [1, 2, 3, 4, 5]


def test_what_was_removed_is_no_message_or_is_not_selected_is_not_played() -> None:
    play_filter = PlayFilter(Filter("subject:tool.result."), include_queries=False)
    text = RECORDS[3]._replace(envelope=RECORDS[3].envelope._replace(payload=b"no JSON"))
    assert list(play_filter.choose([RECORDS[1], record(3, TALK[3], redacted=True), text])) == []
    assert play_filter.left_out == {"whose payload was removed": 1, "whose payload is no JSON object": 1}


def test_a_rewritten_message_is_new_but_belongs_where_it_belonged() -> None:
    rewriter = EnvelopeRewriter("me", keeps_ids=False)
    first, second = (rewriter.rewrite(each.envelope, 5.0) for each in RECORDS[:2])
    assert (first.sender, first.instance, first.seq, first.sent_at) == ("player", "me", 1, 5.0)
    assert (first.subject, first.correlation_id, first.session_id) == ("query.received", "q1", "s1")
    assert first.payload == RECORDS[0].envelope.payload
    assert first.id != "id-1"
    assert (first.cause_id, second.cause_id) == ("id-0", first.id)
    assert EnvelopeRewriter("me", keeps_ids=True).rewrite(RECORDS[1].envelope, 5.0).id == "id-2"


def test_a_reply_is_one_only_to_a_request_that_is_played_too() -> None:
    reply = RECORDS[3].envelope._replace(in_reply_to="id-3")
    assert EnvelopeRewriter("me", keeps_ids=True).rewrite(reply, 5.0).in_reply_to is None
    rewriter = EnvelopeRewriter("me", keeps_ids=False)
    request = rewriter.rewrite(RECORDS[2].envelope, 5.0)
    assert rewriter.rewrite(reply, 5.0).in_reply_to == request.id


def test_numbers_run_by_subject_so_that_nobody_counts_a_gap() -> None:
    rewriter = EnvelopeRewriter("me", keeps_ids=False)
    envelopes = [RECORDS[1].envelope, RECORDS[3].envelope, RECORDS[1].envelope]
    assert [rewriter.rewrite(each, 5.0).seq for each in envelopes] == [1, 1, 2]


async def played(pace: Pace, *, records: list[JournalRecord] = RECORDS) -> list[Envelope]:
    """What a listener hears."""
    hub, heard = MemoryHub(), list[Envelope]()
    async with Bus("listener", hub.transport()) as listener:
        listener.subscribe("", heard.append)
        await listener.ready()
        player = JournalPlayer(Bus("player", hub.transport()), BlobStore(Path("/nowhere")), lambda envelope: None)
        await asyncio.wait_for(player.play(records, pace, keeps_ids=True), SECONDS)
        await listener.ready()
    return heard


async def test_everything_is_heard_in_order_when_the_play_is_over() -> None:
    assert [envelope.id for envelope in await played(at_once())] == [each.envelope.id for each in RECORDS]


async def test_pauses_are_the_original_ones_divided_by_the_rate() -> None:
    loop = asyncio.get_running_loop()
    started = loop.time()
    due = spaced(100.0)
    assert [await due(seconds) for seconds in (0.0, 1.0, 5.0)] == [True] * 3
    assert 0.05 <= loop.time() - started < SECONDS


async def test_a_message_is_due_by_its_distance_from_the_first_whatever_the_clocks_did() -> None:
    asked: list[float] = []

    async def due(seconds: float) -> bool:
        asked.append(seconds)
        return True

    late = RECORDS[2]._replace(committed_at=999.0)
    await played(due, records=[RECORDS[0], RECORDS[3], late])
    assert asked == [0.0, 3.0, 0.0]


async def test_a_step_is_a_line_of_input_and_its_end_is_the_end() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"\n\n")
    os.close(writing)
    assert [envelope.id for envelope in await played(stepwise(reading))] == ["id-1", "id-2"]
    os.close(reading)


async def test_stopping_ends_a_play_that_waits_and_an_error_ends_it_with_its_reason() -> None:
    stop = asyncio.Event()

    async def forever() -> None:
        stop.set()
        await asyncio.Event().wait()

    async def fails() -> None:
        raise ValueError("reason")

    await asyncio.wait_for(until(stop, forever()), SECONDS)
    with pytest.raises(ValueError, match="reason"):
        await until(asyncio.Event(), fails())


async def test_a_large_field_travels_as_a_reference(tmp_path: Path) -> None:
    blobs, sent = BlobStore(tmp_path), list[Envelope]()
    message = ToolResult(**CALL, result="x" * 2_000_000)
    player = JournalPlayer(Bus("player", MemoryHub().transport()), blobs, sent.append)
    await player.play([record(1, message)], at_once(), keeps_ids=False)
    assert ToolResult.decode(blobs.unpack(sent[0].payload)) == message


@asynccontextmanager
async def proxied(tmp_path: Path) -> AsyncIterator[tuple[str, Bus]]:
    """A real proxy: its addresses as `--bus` takes them, and a bus on it."""
    address = BusAddress(f"ipc://{tmp_path / 'pub'}", f"ipc://{tmp_path / 'sub'}")
    proxy = Proxy(address)
    try:
        async with Bus("listener", ZeroMQTransport(address)) as bus:
            yield f"{address.publish_to},{address.subscribe_to}", bus
    finally:
        await asyncio.to_thread(proxy.close)


async def test_the_command_plays_a_file_on_a_real_bus(tmp_path: Path) -> None:
    file = tmp_path / "export.jsonl"
    file.write_text("".join(f"{each.as_json(None)}\n" for each in RECORDS))
    async with proxied(tmp_path) as (addresses, listener):
        heard: asyncio.Queue[Envelope] = asyncio.Queue()
        for subject in ("query.", "tool.", "agent."):
            listener.subscribe(subject, heard.put_nowait)
        await listener.ready()
        arguments = ["journal", "play", str(file), "--at-once", "--bus", addresses, "--data-dir", str(tmp_path)]
        program = f"from local.cli.entry import main; main({arguments!r})"
        done = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-c", program],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            env={**os.environ, "PYTHONPATH": str(SRC)},
        )
        assert done.returncode == 0, done.stderr
        assert [(await heard.get()).subject for _ in range(2)] == ["agent.transition", "tool.result.x"]
        assert heard.empty()
    assert [line.split()[1] for line in done.stdout.splitlines()] == ["agent.transition", "tool.result.x"]
    assert done.stderr.splitlines() == [
        "left out 3 that the system would execute; --include-queries plays them, too",
        "left out 2 about the internals of the recording system",
        "played 2 of 2",
    ]


def test_a_running_system_is_not_played_its_own_record_a_second_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def play(*flags: str) -> None:
        main(["journal", "play", str(file), "--at-once", "--data-dir", str(tmp_path), *flags])

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    file = tmp_path / "export.jsonl"
    file.write_text(f"{RECORDS[1].as_json(None)}\n")
    played: list[str | None] = []
    monkeypatch.setattr(commands, "play", lambda *_, addresses, **__: played.append(addresses))
    own = ("ipc:///tmp/pub", "ipc:///tmp/sub")
    RunDirectory(tmp_path).write(RunInfo(os.getpid(), *own, False, "", "", None))
    for flags in ([], ["--bus", ",".join(own)]):
        with pytest.raises(SystemExit) as ended:
            play(*flags)
        assert ended.value.code == 2
        assert "record all messages a second time" in capsys.readouterr().err
    for flags in (["--bus", "ipc:///a,ipc:///b"], ["--same-ids"], ["--twice-on-record"]):
        with pytest.raises(SystemExit) as ended:
            play(*flags)
        assert ended.value.code == 0
    assert played == ["ipc:///a,ipc:///b", None, None]


def test_bad_use_is_one_clear_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rubbish, binary = tmp_path / "rubbish", tmp_path / "binary"
    rubbish.write_text(f"{RECORDS[0].as_json(None)}\n{{}}\n")
    binary.write_bytes(b"\xff\xfe")
    for arguments, said in (
        ([str(tmp_path / "none")], "none cannot be read: No such file or directory"),
        ([str(rubbish)], "rubbish line 2: 'header' is missing; expected a line of `local2 journal export`"),
        ([str(binary)], "binary is not text"),
        ([str(rubbish), "--step", "--rate", "2"], "--rate, --step and --at-once exclude each other"),
    ):
        with pytest.raises(SystemExit) as ended:
            main(["journal", "play", *arguments, "--data-dir", str(tmp_path)])
        assert ended.value.code == 2
        error = capsys.readouterr().err
        assert said in error and error.count("\n") == 1
