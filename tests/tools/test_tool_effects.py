"""A tool that changes the world: each call takes effect at most once, whatever is repeated, cut off or killed."""

import asyncio
import sqlite3
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

import pytest

from local.bus.envelope import Envelope, Trace
from local.bus.message import ErrorInfo
from local.bus.messages import Grant, SessionDeleted, ToolBegins, ToolRequest, ToolResult
from local.core.errors import ConfigError, NotConfirmed, StoreFailed, StoreFenced, StoreFull, ToolError
from local.memory.messages import MemoryDeleted
from local.runtime.participant import Resources, Settingless
from local.tools.effects import EffectCall, EffectStore, StoredEffect
from local.tools.tool import Tool

NOT_REPEATED = "it may or may not have happened; it is not repeated"
ENVELOPE = Envelope("tool.request.note", "e", "generator", "i", 1, "q1", b"")
SECONDS = 90.0


class NoteTool(Tool):
    """Write a note."""

    name = "note"
    effect = "write"

    def __init__(self, config: Settingless) -> None:
        super().__init__(config)
        self.notes: list[str] = []
        self.started = asyncio.Event()
        self.may_end = asyncio.Event()
        self.may_end.set()

    async def run(self, text: str) -> str:
        self.notes.append(text)
        self.started.set()
        await self.may_end.wait()
        match text:
            case "refused":
                raise ToolError("no more paper", kind="refused")
            case "broken":
                raise ZeroDivisionError("the pencil broke")
            case "unspeakable":
                return "\ud800"
        return f"noted: {text}"


def request(text: str = "milk", call_id: str = "q1:0:0", **fields: Any) -> ToolRequest:
    return ToolRequest(query_id="q1", call_id=call_id, tool="note", args={"text": text}, **fields)


async def ask(tool: Tool, asked: ToolRequest | None = None) -> ToolResult:
    result = await asyncio.wait_for(tool.call(asked or request(), ENVELOPE), SECONDS)
    assert result is not None
    return result


async def cut_off(tool: NoteTool, asked: ToolRequest | None = None) -> None:
    """Have a call begin and its process end in the middle of it."""
    tool.may_end.clear()
    call = asyncio.create_task(tool.call(asked or request(), ENVELOPE))
    await asyncio.wait_for(tool.started.wait(), SECONDS)
    call.cancel()
    await asyncio.wait({call})


@pytest.fixture
def process(tmp_path: Path) -> Callable[[], AbstractAsyncContextManager[NoteTool]]:
    """Starts a process of the tool; they all have the same data directory."""

    @asynccontextmanager
    async def process() -> Any:
        tool = NoteTool.build(Settingless(), Resources(tmp_path))
        async with tool.lifespan():
            yield tool

    return process


Start = Callable[[], AbstractAsyncContextManager[NoteTool]]


async def test_a_call_that_is_made_again_gets_its_result_again_and_has_no_second_effect(process: Start) -> None:
    async with process() as tool:
        first = await ask(tool)
        assert (first.result, first.error) == ("noted: milk", None)
        assert await ask(tool) == first
        assert tool.notes == ["milk"]
    async with process() as successor:
        assert await ask(successor) == first
        assert successor.notes == []


async def test_other_calls_take_effect_even_if_they_ask_for_the_same(process: Start) -> None:
    async with process() as tool:
        for asked in (request(), request(call_id="q1:0:1"), request(respondent_id="B")):
            assert (await ask(tool, asked)).error is None
        assert tool.notes == ["milk"] * 3


async def test_whoever_asks_while_the_call_is_in_hand_gets_the_result_of_that_run(process: Start) -> None:
    async with process() as tool:
        tool.may_end.clear()
        calls = [asyncio.create_task(ask(tool)) for _ in range(3)]
        await asyncio.wait_for(tool.started.wait(), SECONDS)
        assert not any(call.done() for call in calls)
        tool.may_end.set()
        first, *others = await asyncio.gather(*calls)
        assert (first.result, others) == ("noted: milk", [first, first])
        assert tool.notes == ["milk"]


async def test_a_call_whose_process_ended_in_the_middle_is_not_repeated_but_reported(process: Start) -> None:
    async with process() as killed:
        await cut_off(killed)
        async with process() as successor:
            result = await ask(successor)
            assert result.error == ErrorInfo(
                kind="outcome_unknown", message=f"note was interrupted in this call: {NOT_REPEATED}"
            )
            assert await ask(successor) == result
            assert successor.notes == []
    async with process() as last:
        assert await ask(last) == result


async def test_a_call_begins_when_that_is_on_record_where_another_machine_can_continue(
    process: Start, tmp_path: Path
) -> None:
    class Record:
        blobs = None
        begun: ClassVar[list[ToolBegins]] = []
        is_there = False

        async def publish(self, message: ToolBegins, trace: Trace, *, envelope_id: str, seconds: float) -> None:
            if not self.is_there:
                raise NotConfirmed(message.subject, seconds)
            assert tool.notes == []
            self.begun.append(message)

    async with process() as tool:
        tool.lent(Resources(tmp_path, is_replicated=True))
        record: Any = Record()
        tool.grants, tool.bus = NoteTool.grants, record
        with pytest.raises(NotConfirmed):
            await ask(tool, request(call_id="q1:0:1"))
        assert tool.notes == []
        record.is_there = True
        for _ in range(2):
            assert (await ask(tool)).result == "noted: milk"
        assert tool.notes == ["milk"]
        assert [(begins.call_id, begins.args) for begins in Record.begun] == [("q1:0:0", request().args)]


async def test_a_known_call_with_other_arguments_is_refused(process: Start) -> None:
    async with process() as tool:
        await ask(tool)
        refused = await ask(tool, request("bread"))
        assert refused.error is not None
        assert refused.error.kind == "conflict"
        assert tool.notes == ["milk"]
        assert (await ask(tool)).result == "noted: milk"


async def test_a_run_over_the_time_limit_may_have_had_its_effect(process: Start) -> None:
    async with process() as tool:
        tool.timeout_seconds = 0.01
        tool.may_end.clear()
        result = await ask(tool)
        message = f"note did not finish within 0.01 s: {NOT_REPEATED}"
        assert result.error == ErrorInfo(kind="outcome_unknown", message=message)
        tool.may_end.set()
        assert await ask(tool) == result
        assert tool.notes == ["milk"]


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("refused", "refused", "no more paper"),
        (
            "broken",
            "internal",
            "note failed: ZeroDivisionError at tests/tools/test_tool_effects.py:48: the pencil broke",
        ),
    ],
)
async def test_a_failure_is_recorded_like_any_other_end(
    serve: Callable[[Tool], Awaitable[Any]], tmp_path: Path, text: str, kind: str, message: str
) -> None:
    tool = NoteTool.build(Settingless(), Resources(tmp_path))
    caller = await serve(tool)
    for _ in range(2):  # two envelopes, one call
        assert (await caller(text=text)).error == ErrorInfo(kind=kind, message=message)
    assert tool.notes == [text]


@pytest.mark.parametrize("error", [StoreFull("note.db: the disk is full"), StoreFailed("note.db: is locked")])
async def test_a_call_that_cannot_be_put_on_record_is_not_begun(
    process: Start, monkeypatch: pytest.MonkeyPatch, error: StoreFailed
) -> None:
    async def fails(*_: object) -> None:
        raise error

    async with process() as tool:
        tool.timeout_seconds = 0.4  # of half of which it waits for room
        with monkeypatch.context() as patch:
            patch.setattr(EffectStore, "begin", fails)
            result = await ask(tool)
        assert result.error == ErrorInfo(kind=error.kind, message=f"note was not run: {error}")
        tool.timeout_seconds = SECONDS
        assert tool.notes == []
        assert (await ask(tool)).result == "noted: milk"


async def test_a_call_on_a_full_disk_waits_for_room_and_is_run_once_there_is(
    process: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin, looks, is_waiting = EffectStore.begin, 0, asyncio.Event()

    async def full(store: EffectStore, call: EffectCall) -> StoredEffect | None:
        nonlocal looks
        looks += 1
        if looks > 1:
            is_waiting.set()
        if is_full:
            raise StoreFull("note.db: the disk is full")
        return await begin(store, call)

    is_full = True
    async with process() as tool:
        monkeypatch.setattr(EffectStore, "begin", full)
        calls = [asyncio.create_task(ask(tool)) for _ in range(2)]
        await asyncio.wait_for(is_waiting.wait(), SECONDS)
        assert (tool.notes, [call.done() for call in calls]) == ([], [False, False])
        is_full = False
        assert [(await call).result for call in calls] == ["noted: milk"] * 2
        assert tool.notes == ["milk"]


async def test_a_call_waits_for_room_no_longer_than_its_leave_holds(
    process: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*_: object) -> None:
        raise StoreFull("note.db: the disk is full")

    late = Grant(call_id="", respondent_id="", tool="", args_sha256="", key_id="", expires_at=time.time())
    async with process() as tool:
        tool.timeout_seconds = 1000.0
        tool.safety = "L0"  # the grant itself is looked at elsewhere
        monkeypatch.setattr(EffectStore, "begin", full)
        result = await ask(tool, request(grant=late))
        assert (result.error.kind, tool.notes) == ("store_full", [])


async def test_the_record_holds_no_arguments_and_lies_in_the_data_directory(process: Start, tmp_path: Path) -> None:
    async with process() as tool:
        await ask(tool, request("a secret"))
        connection = sqlite3.connect(tmp_path / "effects" / "note.db")
        [(key, asked)] = connection.execute("SELECT key, asked FROM effects").fetchall()
        connection.close()
    assert key == "A q1:0:0"
    assert "secret" not in asked


async def test_a_tool_with_effects_and_no_place_for_their_record_is_not_served() -> None:
    with pytest.raises(ConfigError, match=r"the tool note has effects and no record of them: build it \.with_record"):
        async with NoteTool(Settingless()).lifespan():
            pass


@pytest.mark.parametrize(
    "notice", [SessionDeleted(deleted_session_id="s"), MemoryDeleted(engram_id="m", query_id="q1")]
)
async def test_what_a_deleted_call_brought_is_gone_and_it_is_not_made_again(
    process: Start, tmp_path: Path, notice: SessionDeleted | MemoryDeleted
) -> None:
    handlers = {handles.message: handles for handles in NoteTool.handlers() if handles.durable == "tool_note"}
    async with process() as tool:
        await tool.call(request("secret"), ENVELOPE._replace(session_id="s"))
        await getattr(tool, handlers[type(notice)].method)(notice, ENVELOPE)
        assert b"noted: secret" not in b"".join(file.read_bytes() for file in (tmp_path / "effects").iterdir())
        again = await tool.call(request("secret"), ENVELOPE._replace(session_id="s"))
        assert again.error is not None
        assert (again.error.kind, tool.notes) == ("deleted", ["secret"])


async def test_a_process_that_was_replaced_begins_nothing(process: Start) -> None:
    async with process() as frozen, process() as successor:
        with pytest.raises(StoreFenced):
            await frozen.call(request(), ENVELOPE)
        assert frozen.notes == []
        assert (await ask(successor)).result == "noted: milk"


async def test_a_run_that_thaws_after_it_was_reported_unknown_tells_what_was_told(process: Start) -> None:
    async with process() as frozen:
        frozen.may_end.clear()
        call = asyncio.create_task(ask(frozen))
        await asyncio.wait_for(frozen.started.wait(), SECONDS)
        async with process() as successor:
            told = await ask(successor)
            frozen.may_end.set()
            assert await call == told
            assert told.error is not None
            assert told.error.kind == "outcome_unknown"
