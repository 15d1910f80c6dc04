"""The base of every tool."""

import asyncio
import re
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Any

import pytest

from local.bus.message import ErrorInfo
from local.bus.messages import ToolSchema
from local.core.config import load_system
from local.core.environment import Environment
from local.core.errors import ConfigError, ToolError
from local.core.shipped import shipped_dir
from local.run.participant import find_class
from local.runtime.participant import Settingless
from local.tools.tool import CALLS_AT_ONCE, Tool, ToolOutput

HERE, FAILED = "tests/tools/test_tool.py", "weather failed: "
Serve = Callable[[Tool], Awaitable[Any]]


class WeatherTool(Tool):
    """Tell the weather
    of a city."""

    name = "weather"
    effect = "none"
    repeatable = False
    timeout_seconds = 7.5
    rubric = "forecasts"

    def __init__(self) -> None:
        super().__init__(Settingless())
        self.gate = asyncio.Event()
        self.started = asyncio.Semaphore(0)
        self.cancelled: list[str] = []

    async def run(self, city: Annotated[str, "A city"], days: int = 1) -> str | ToolOutput:
        match city:
            case "Atlantis":
                raise ToolError("Atlantis is under water", kind="unknown_city")
            case "Babel":
                raise ZeroDivisionError("too many words")
            case "Utopia":
                return object()  # type: ignore[return-value]
            case "Sodom":
                raise SystemExit(3)
            case "Gomorrah":
                raise KeyboardInterrupt
            case "Rome":
                return ToolOutput("Sunny.", ("http://weather/rome",))
            case "slow":
                await self._wait()
        return f"{days} days of rain in {city}"

    async def _wait(self) -> None:
        self.started.release()
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled.append("slow")
            raise


async def test_the_schema_is_published_at_the_start_and_whenever_somebody_asks(serve: Serve) -> None:
    caller = await serve(WeatherTool())
    first = await caller.schema()
    assert (first.tool, first.description) == ("weather", "Tell the weather\nof a city.")
    assert (first.effect, first.repeatable, first.timeout_seconds) == ("none", False, 7.5)
    assert first.rubric == "forecasts"
    assert first.parameters["properties"]["city"] == {"type": "string", "description": "A city"}
    await caller.ask_for_schemas()
    assert await caller.schema() == first


async def test_a_call_returns_text(serve: Serve) -> None:
    caller = await serve(WeatherTool())
    result = await caller(city="Oslo", days="2")
    assert (result.tool, result.query_id, result.call_id) == ("weather", "q1", "q1:0:0")
    assert (result.result, result.error, result.sources) == ("2 days of rain in Oslo", None, ())
    assert result.duration_ms >= 0


@pytest.mark.parametrize(
    ("args", "kind", "message"),
    [
        ({"city": "Atlantis"}, "unknown_city", "Atlantis is under water"),
        (
            {"city": "Babel"},
            "internal",
            f"{FAILED}ZeroDivisionError at {HERE}:N: too many words",
        ),
        (
            {"city": "Utopia"},
            "internal",
            "run returned object, expected text, ToolOutput or what JSON can say",
        ),
        ({"city": "Sodom"}, "internal", f"{FAILED}RuntimeError at {HERE}:N: run ended with SystemExit(3)"),
        (
            {"city": "Gomorrah"},
            "internal",
            f"{FAILED}RuntimeError at {HERE}:N: run ended with KeyboardInterrupt()",
        ),
        ({}, "bad_arguments", "weather: bad arguments: city: Field required. Expected: city, days."),
        (
            {"city": "Oslo", "planet": "Mars"},
            "bad_arguments",
            "weather: bad arguments: planet: Extra inputs are not permitted. Expected: city, days.",
        ),
    ],
)
async def test_a_failure_is_a_result_that_the_model_can_read(
    serve: Serve, args: dict[str, Any], kind: str, message: str
) -> None:
    caller = await serve(WeatherTool())
    result = await caller(**args)
    assert (result.result, result.error.kind) == (None, kind)
    assert re.sub(r":\d+:", ":N:", result.error.message) == message
    assert (await caller(city="Oslo")).error is None


async def test_a_call_that_takes_too_long_is_stopped(serve: Serve) -> None:
    tool = WeatherTool()
    tool.timeout_seconds = 0.01
    caller = await serve(tool)
    result = await caller(city="slow")
    assert result.error == ErrorInfo(kind="timeout", message="weather did not finish within 0.01 s")
    assert tool.cancelled == ["slow"]


async def test_cancelling_a_query_stops_its_calls_and_no_others(serve: Serve) -> None:
    tool = WeatherTool()
    caller = await serve(tool)
    calls = [
        asyncio.create_task(caller.call({"city": "slow"}, f"{query_id}:0:{index}", query_id))
        for query_id, index in (("q1", 0), ("q1", 1), ("q2", 0))
    ]
    for _ in calls:
        await asyncio.wait_for(tool.started.acquire(), 10)
    await caller.cancel("q1")
    for call in calls[:2]:
        assert (await call).error == ErrorInfo(kind="cancelled", message="weather was cancelled")
    tool.gate.set()
    assert (await calls[2]).result == "1 days of rain in slow"
    assert tool.cancelled == ["slow", "slow"]


async def test_a_call_that_waits_for_its_turn_is_not_begun_after_its_query_was_cancelled(serve: Serve) -> None:
    tool = WeatherTool()
    caller = await serve(tool)
    running = [asyncio.create_task(caller.call({"city": "slow"}, f"q1:0:{n}")) for n in range(CALLS_AT_ONCE)]
    for _ in running:
        await asyncio.wait_for(tool.started.acquire(), 10)
    waiting = asyncio.create_task(caller.call({"city": "slow"}, "q2:0:0", "q2"))
    await asyncio.sleep(0)  # its request is on the bus before the word that it is not wanted any more
    await caller.cancel("q2")
    await caller.cancel("q1")
    assert {(await call).error.kind for call in (*running, waiting)} == {"cancelled"}
    assert tool.started.locked()


DICE = '''
import random
from local.tools.tool import Tool


class DiceTool(Tool):
    """Roll dice."""

    name = "dice"

    async def run(self, sides: int = 6, count: int = 1) -> str:
        return ", ".join(str(random.randint(1, sides)) for _ in range(count))
'''


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    package = tmp_path / "newcomers_tools"
    package.mkdir()
    (package / "dice.py").write_text(DICE)
    monkeypatch.setattr(sys, "path", [*sys.path])
    return tmp_path


async def test_a_newcomers_tool_is_one_file_and_a_name(serve: Serve, folder: Path) -> None:
    kind = find_class("newcomers_tools.dice:DiceTool", (folder,))
    assert issubclass(kind, Tool)
    caller = await serve(kind(kind.Config()))
    assert (await caller.schema()).description == "Roll dice."
    assert (await caller(sides=1, count=3)).result == "1, 1, 1"


class QuietTool(Tool):
    """A tool that says nothing of its dangers."""

    name = "quiet"

    async def run(self) -> str:
        return ""


def test_a_tool_has_the_highest_level_of_danger_unless_it_says_otherwise_and_cannot_lie() -> None:
    assert QuietTool(Settingless()).schema().safety == "L2"
    assert ToolSchema(tool="old", description="Of an older program.", parameters={}).safety == "L2"

    class TwoFacedTool(QuietTool):
        """It writes, and says it does not."""

        effect = "write"
        safety = "L0"

    with pytest.raises(ConfigError, match=r'the tool quiet changes something \(effect "write"\); safety "L0"'):
        TwoFacedTool(Settingless())


def test_every_tool_that_is_shipped_says_how_dangerous_it_is() -> None:
    system = load_system([shipped_dir() / "config"], {}, Environment())
    kinds = [find_class(entry.target) for entry in system.participants]
    tools = [kind for kind in kinds if issubclass(kind, Tool)]
    assert tools
    assert [tool.name for tool in tools if not {"safety", "category"} <= vars(tool).keys()] == []
