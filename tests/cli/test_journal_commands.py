"""`local2 journal list`, `show` and `export`: what is on record, as a person and a program read it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from local.bus.blobs import BlobStore
from local.bus.envelope import Envelope
from local.bus.message import ErrorInfo, Message
from local.bus.messages import QueryFailed, QueryReceived, ResponseGeneration, ToolRequest, ToolResult
from local.cli.entry import main
from local.cli.main import BadMoment, moment
from local.journal import commands
from local.journal.commands import _record
from local.journal.delivery import ConsumerChanges
from local.journal.schema import FILE_NAME, Entry, Stored
from local.journal.store import JournalStore
from local.queries.export import BadExport, JournalRecord, read_export

SRC = Path(__file__).parents[2] / "src"
NOON = 1_777_000_000.0
CALL: dict[str, Any] = {"query_id": "q1", "call_id": "q1:0:0", "tool": "web_search"}
TALK = (
    (QueryReceived(query_id="q1", query="What is the\x1b[31m tallest tree?"), "s1"),
    (ToolRequest(**CALL, args={"query": "tallest tree"}), "s1"),
    (ToolResult(**CALL, result="Hyperion, 116 m"), "s1"),
    (
        ResponseGeneration(
            query_id="q1", status="answered", query="…", answer="Hyperion.\nA redwood.", thinking="I should look it up."
        ),
        "s1",
    ),
    (QueryReceived(query_id="q2", query="And the oldest?"), "s1"),
    (QueryFailed(query_id="q2", error=ErrorInfo(kind="queue_full", message="too many queries wait")), "s1"),
    (QueryReceived(query_id="q3", query="Hello"), "s2"),
)
Run = Callable[..., str]


def entry(number: int, message: Message, session: str) -> Entry:
    query_id = str(getattr(message, "query_id", ""))
    answered = f"id-{number - 1}" if isinstance(message, ToolResult) else None
    envelope = Envelope(
        message.routing_key, f"id-{number}", "api", "i1", number, query_id, message.encode(), None, answered, session
    )
    return Entry(envelope.subject, envelope.id, "api", "i1", number, query_id, session, 0.0, envelope.encode())


def record(
    data_dir: Path, talk: Sequence[tuple[Message, str]] = TALK, *, redact: str | None = None, at_once: int = 1
) -> None:
    """Put a talk on record, so many messages each second from noon on; then redact a session."""

    async def write() -> None:
        now = NOON
        async with JournalStore(data_dir / FILE_NAME, clock=lambda: now) as store:
            entries = [entry(number, message, session) for number, (message, session) in enumerate(talk, 1)]
            for first in range(0, len(entries), at_once):
                await store.commit(entries[first : first + at_once])
                now += 1
            if redact:
                await store.redact_session(redact)

    asyncio.run(write())


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    return tmp_path / "data"


@pytest.fixture
def run(data_dir: Path, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs `local2 journal …` on the data directory; returns its output, or what it says when it ends with status 2."""

    def call(*arguments: str) -> str:
        with pytest.raises(SystemExit) as ended:
            main(["journal", *arguments, "--data-dir", str(data_dir)])
        out, err = capfd.readouterr()
        assert ended.value.code in ((0, None) if out else (0, None, 2))
        return out or err

    return call


def test_the_list_has_each_session_and_the_totals(data_dir: Path, run: Run) -> None:
    record(data_dir)
    head, first, second, total = run("list").splitlines()
    assert head.split() == ["session", "messages", "first", "last", "first", "query"]
    assert (first.split()[:2], second.split()[:2]) == (["s1", "6"], ["s2", "1"])
    assert first.endswith("What is the\\x1b[31m tallest tree?")
    assert total.startswith("7 messages in all, numbers 1 to 7, ")


def test_with_a_filter_the_list_has_the_messages_that_match(data_dir: Path, run: Run) -> None:
    record(data_dir)
    lines = run("list", "session:s1 -subject:tool.*", "query:q2").splitlines()
    assert [line.split()[0] for line in lines] == ["5", "6"]


def test_a_session_is_told_from_the_journal_alone(data_dir: Path, run: Run) -> None:
    record(data_dir)
    lines = [line for line in run("show", "s1").splitlines() if " query q" not in line]
    assert lines == [
        "    What is the\\x1b[31m tallest tree?",
        'web_search {"query": "tallest tree"}',
        "    Hyperion, 116 m",
        "thinking",
        "    I should look it up.",
        "answered",
        "    Hyperion.",
        "    A redwood.",
        "",
        "    And the oldest?",
        "failed",
        "    queue_full: too many queries wait",
        "",
    ]


def test_a_query_is_shown_alone_and_one_without_an_outcome_says_so(data_dir: Path, run: Run) -> None:
    record(data_dir)
    assert run("show", "q3").splitlines()[1:] == ["    Hello", "no outcome recorded", ""]


def test_all_messages_of_a_session_are_listed_in_order(data_dir: Path, run: Run) -> None:
    record(data_dir)
    lines = [line.split() for line in run("show", "s1", "--messages").splitlines()]
    assert [(line[0], line[3], line[4]) for line in lines[:3]] == [
        ("1", "query.received", "api"), ("2", "tool.request.web_search", "api"), ("3", "tool.result.web_search", "api"),
    ]  # fmt: skip
    assert len(lines) == 6


def test_what_was_removed_is_shown_and_exported_as_removed(data_dir: Path, run: Run) -> None:
    record(data_dir, redact="s1")
    assert "(removed)" in run("list").splitlines()[1]
    assert [line for line in run("show", "q1").splitlines()[1:] if line] == [
        "    (removed)", "web_search (removed)", "    (removed)", "(removed)", "    (removed)",
    ]  # fmt: skip
    first = json.loads(run("export").splitlines()[0])
    assert (first["redacted"], first["payload"], first["header"]["id"]) == (True, None, "id-1")


def test_the_beginning_of_an_id_will_do_where_it_is_the_only_one(data_dir: Path, run: Run) -> None:
    record(
        data_dir,
        [(QueryReceived(query_id=f"{c}{'0' * 31}", query=f"{c}?"), f"{c}{'f' * 31}") for c in ("aa", "ab", "b")],
    )
    assert "aa?" in run("show", "aa000000") and "b?" in run("show", "bf")
    assert len(run("export", "--session", "abff").splitlines()) == 1
    several = run("show", "a")
    assert "several ids begin with 'a': aa0000" in several and several.strip().endswith("type more of it")
    assert "no session or query 'c' is in the journal" in run("export", "--session", "c")
    assert "no session or query '' is in the journal" in run("show", "")


def test_an_export_can_be_narrowed_by_session_time_and_subject(data_dir: Path, run: Run) -> None:
    record(data_dir)

    def numbers(*arguments: str) -> list[int]:
        return [json.loads(line)["number"] for line in run("export", *arguments).splitlines()]

    assert numbers() == [1, 2, 3, 4, 5, 6, 7]
    assert numbers("--session", "s2") == [7]
    assert numbers("--subject", "tool.", "--subject", "query.failed") == [2, 3, 6]
    assert numbers("--subject", "*.web_search") == [2, 3]
    assert numbers("subject:tool.* payload.result:hyperion") == numbers("subject:tool.*", "116") == [3]
    assert numbers("--since", "2026-04-24T03:06:42+00:00", "--until", "2026-04-24T03:06:44+00:00") == [3, 4]


def test_an_export_comes_back_as_it_was(data_dir: Path, tmp_path: Path, run: Run) -> None:
    record(data_dir, redact="s2")
    file = tmp_path / "export.jsonl"
    assert run("export", "--output", str(file)) == ""
    assert file.stat().st_mode & 0o077 == 0
    records = read_export(file)
    assert [each.as_json(None) for each in records] == file.read_text().splitlines()
    stored = Stored(3, NOON + 2, False, entry(3, *TALK[2]))
    assert records[2] == _record(stored)
    assert records[6].redacted


def test_large_fields_are_in_an_export(data_dir: Path, run: Run) -> None:
    long = "x" * 100_000
    message = ToolResult(**CALL, result=long)
    packed = BlobStore(data_dir / "blobs").pack(message.encode())
    envelope = Envelope(message.routing_key, "id-1", "tool", "i1", 1, "q1", packed)
    stored = Entry(envelope.subject, "id-1", "tool", "i1", 1, "q1", None, 0.0, envelope.encode())

    async def write() -> None:
        async with JournalStore(data_dir / FILE_NAME) as store:
            await store.commit([stored])

    asyncio.run(write())
    line = run("export").strip()
    assert json.loads(line)["payload"]["result"] == long
    assert len(JournalRecord.parse(line, "line 1").envelope.payload) > 100_000


def test_bad_input_is_one_clear_line(data_dir: Path, tmp_path: Path, run: Run) -> None:
    assert "journal.db: there is no journal; the first start of a system on this data directory creates it" in run(
        "list"
    )
    record(data_dir)
    for arguments, said in (
        (["show", "s9"], "no session or query 's9' is in the journal; `local2 journal list` shows the sessions"),
        (["export", "--since", "yesterday"], "--since 'yesterday': expected a time such as 2026-05-01T12:00 or an age"),
        (["export", "--subject", "a b"], "subject 'a b': expected a subject"),
        (["list", "sendr:api"], "filter, character 1: there is no field 'sendr'; use sender"),
        (["export", "--output", str(tmp_path)], "cannot be written: Is a directory"),
    ):
        answer = run(*arguments)
        assert said in answer
        assert answer.startswith("local2: ") and answer.count("\n") == 1


def test_a_moment_is_a_time_or_how_long_ago() -> None:
    for text, expected in [
        ("2h", NOON - 7200),
        ("1.5m", NOON - 90),
        ("7d", NOON - 604800),
        ("90s", NOON - 90),
        ("1w", NOON - 604800),
        ("9" * 400 + "w", 0.0),
        ("0002-01-01", 0.0),
        ("2026-04-24T03:06:40Z", NOON),
        ("2026-04-24T05:06:40+02:00", NOON),
    ]:
        assert moment(text, "--since", NOON) == expected


def test_anything_else_is_no_moment() -> None:
    for text in ["", "h", "2y", "-2h", "2026-13-01", "99999999999999d?"]:
        with pytest.raises(BadMoment, match="expected a time such as"):
            moment(text, "--since", NOON)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"header": None}, "header: "),
        ({"subject": "x"}, "the subject before the header differs from the one in the header"),
        ({"payload": 5}, "payload: expected an object or a string, found int"), ({"number": "x"}, "invalid literal"),
    ],
)  # fmt: skip
def test_a_line_that_is_no_record_is_named(changed: dict[str, Any], said: str) -> None:
    line = json.loads(_record(Stored(1, NOON, False, entry(1, *TALK[0]))).as_json(None))
    with pytest.raises(BadExport, match=r"^line 3: ") as refused:
        JournalRecord.parse(json.dumps(line | changed), "line 3")
    assert said in str(refused.value)
    del line["payload"]
    with pytest.raises(BadExport, match="'payload' is missing"):
        JournalRecord.parse(json.dumps(line), "line 3")
    for rubbish in ("{", "[]", "nan", '"x"'):
        with pytest.raises(BadExport, match=r"^line 3: .*; expected a line of `local2 journal export`"):
            JournalRecord.parse(rubbish, "line 3")


def test_dead_letters_are_given_again_only_by_a_system_that_runs(run: Run, data_dir: Path) -> None:
    assert f"no system runs on {data_dir}" in run("redeliver", "5")
    assert "give the NUMBERs of dead letters, or --consumer NAME" in run("redeliver")


def test_dead_letters_are_listed_with_their_consumer_and_why(
    run: Run, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def give_up() -> None:
        async with JournalStore(data_dir / FILE_NAME) as store:
            await store.register("diary", ["query.received"], floor=0)
            reasons = {5: "failed 24 times: ValueError at my_observers/diary.py:12"}
            await store.commit([], {"diary": ConsumerChanges(settled={1}, dead_letters=reasons)})

    record(data_dir)
    assert run("dead") == "there are no dead letters\n"
    asyncio.run(give_up())
    monkeypatch.setattr(commands, "terminal_width", lambda: 80)
    [_, line] = run("dead").splitlines()
    number, *_, query_id, why = re.split(r"  +", line.strip())
    assert (number, query_id) == ("5", "q2")
    assert why == "failed 24 times: ValueError at my_observers/diary.py:12"
    assert " diary " in line and " query.received " in line
