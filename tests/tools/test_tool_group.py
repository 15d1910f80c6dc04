"""Several tools in one process."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from local.bus.messages import SessionDeleted
from local.core.errors import ToolError
from local.runtime.participant import Resources, Settingless, declaration_of
from local.tools.group import ToolGroup
from local.tools.tool import Tool

BEGUN = asyncio.Event()
Serve = Callable[..., Awaitable[Any]]


class UpTool(Tool):
    """Count up."""

    name = "up"
    effect = "write"

    async def run(self, by: int = 1) -> str:
        if by < 0:
            raise ToolError("that is down", kind="wrong_way")
        if by == 0:
            BEGUN.set()
            await asyncio.Event().wait()
        return f"up {by}"


class LookTool(Tool):
    """Tell the count."""

    name = "look"
    safety = "L0"

    async def run(self) -> str:
        raise ZeroDivisionError("no count")


class CounterGroup(ToolGroup):
    """Counts."""

    name = "counter"
    tools = (UpTool, LookTool)


@pytest.fixture
async def call(serve: Serve, tmp_path: Path) -> Any:
    return await serve(CounterGroup.build(Settingless(), Resources(data_dir=tmp_path)))


async def test_each_of_its_tools_tells_its_own_schema_and_tells_it_again_when_asked(call: Any) -> None:
    assert {(await call.schema()).tool for _ in range(2)} == {"up", "look"}
    await call.ask_for_schemas()
    schemas = {schema.tool: schema for schema in [await call.schema() for _ in range(2)]}
    assert (schemas["up"].effect, schemas["up"].safety, schemas["look"].safety) == ("write", "L2", "L0")


async def test_a_call_reaches_the_tool_that_it_names_and_fails_as_that_tool_fails(call: Any) -> None:
    assert (await call.call({"by": 2}, "q1:0:0", tool="up")).result == "up 2"
    assert (await call.call({"by": -1}, "q1:0:1", tool="up")).error.kind == "wrong_way"
    broken = await call.call({}, "q1:0:2", tool="look")
    assert (broken.tool, broken.error.kind) == ("look", "internal")


async def test_what_has_effects_happens_once_for_a_repeated_call(call: Any) -> None:
    first = await call.call({"by": 3}, "q1:0:0", tool="up")
    assert await call.call({"by": 3}, "q1:0:0", tool="up") == first
    assert (await call.call({"by": 4}, "q1:0:0", tool="up")).error.kind == "conflict"


async def test_a_cancelled_query_ends_its_calls(call: Any) -> None:
    waiting = asyncio.create_task(call.call({"by": 0}, "q7:0:0", "q7", tool="up"))
    await asyncio.wait_for(BEGUN.wait(), 20)
    await call.cancel("q7")
    assert (await waiting).error.kind == "outcome_unknown"


async def test_a_deleted_session_is_forgotten_by_each_tool(call: Any, tmp_path: Path) -> None:
    await call.call({"by": 5}, "q1:0:0", tool="up")
    await call.tool.forget_session(SessionDeleted(deleted_session_id="q1"), None)
    assert (await call.call({"by": 5}, "q1:0:0", tool="up")).error.kind == "deleted"


def test_it_declares_what_its_tools_say_and_one_consumer_for_all() -> None:
    declared = declaration_of(CounterGroup)
    assert {"tool.schema", "tool.result.up", "tool.result.look"} <= declared.says
    assert not declared.allows("tool.result.dice") and declared.serves == {"tool_counter"}
