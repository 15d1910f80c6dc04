"""What becomes of what a tool's `run` returns or raises."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from local.bus.blobs import BlobStore
from local.run.participant import find_class
from local.runtime.participant import Settingless
from local.tools.tool import Tool, ToolOutput, ToolSettings

Serve = Callable[..., Awaitable[Any]]
BIG = 3 * 1024 * 1024


class Ship(BaseModel):
    name: str
    masts: int = 3


@dataclass
class Port:
    name: str


class ShipTool(Tool):
    """Tell of ships."""

    name = "ship"
    answers: dict[str, Any] = {  # noqa: RUF012 - never changed
        "model": Ship(name="Argo"),
        "dict": {"name": "Argo", "crew": [1, 2]},
        "list": ["Argo", None],
        "dataclass": Port("Kiel"),
        "number": 42,
        "nothing": None,
        "output": ToolOutput("Argo.", ("http://ships/argo",)),
    }

    async def run(self, what: str) -> Any:
        return self.answers[what]


@pytest.mark.parametrize(
    ("what", "told"),
    [
        ("model", '{"name":"Argo","masts":3}'),
        ("dict", '{"name":"Argo","crew":[1,2]}'),
        ("list", '["Argo",null]'),
        ("dataclass", '{"name":"Kiel"}'),
        ("number", "42"),
        ("nothing", ""),
        ("output", "Argo."),
    ],
)
async def test_what_is_no_text_is_told_as_json(serve: Serve, what: str, told: str) -> None:
    caller = await serve(ShipTool(Settingless()))
    result = await caller(what=what)
    assert (result.result, result.error) == (told, None)


class SlowTool(Tool):
    """Blocks."""

    name = "slow"

    def __init__(self, config: Any = None) -> None:
        super().__init__(config or Settingless())
        self.gate = threading.Event()

    def run(self, word: str) -> str:
        if word == "wait":
            self.gate.wait()
        if word == "fail":
            raise StopIteration("enough")
        return f"{word} for {self.asked_for()}"


async def test_a_run_without_async_runs_in_a_thread_and_holds_up_nobody(serve: Serve) -> None:
    tool = SlowTool()
    caller = await serve(tool)
    waiting = asyncio.create_task(caller.call({"word": "wait"}, "q1:0:0"))
    assert (await caller.call({"word": "go"}, "q1:0:1")).result == "go for A"
    assert not waiting.done()
    tool.gate.set()
    assert (await waiting).result == "wait for A"
    assert "StopIteration" in (await caller(word="fail")).error.message


async def test_a_huge_result_is_told_in_part_and_kept_whole(serve: Serve, tmp_path: Path) -> None:
    class LongTool(Tool):
        """Tell much."""

        name = "long"

        async def run(self) -> str:
            return "é" + "x" * (BIG - 2)

    blobs = BlobStore(tmp_path)
    caller = await serve(LongTool(ToolSettings(max_result_chars=1000)), blobs)
    result = await caller()
    assert result.result.startswith("éxxx") and len(result.result) < 1200
    assert f"[Cut off here: these are 1000 of {BIG - 1} characters." in result.result
    assert (result.whole["size"], result.whole["characters"]) == (BIG, BIG - 1)
    assert len(blobs.get(result.whole["$blob"])) == BIG
    again = await caller.call({}, "q2:0:0")
    assert again.whole == result.whole


BROKEN = '''
from local.tools.tool import Tool


class DiceTool(Tool):
    """Roll dice."""

    name = "dice"

    async def run(self, sides: int = 6) -> str:
        return self.roll(sides)

    def roll(self, sides: int) -> str:
        return int("six")
'''


async def test_an_error_in_a_tool_names_file_and_line_and_its_traceback_is_in_the_log(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    (tmp_path / "erring_tools").mkdir()
    (tmp_path / "erring_tools" / "dice.py").write_text(BROKEN)
    kind = find_class("erring_tools.dice:DiceTool", (tmp_path,))
    caller = await serve(kind(kind.Config()))
    error = (await caller()).error
    line = BROKEN[: BROKEN.index('int("six")')].count("\n") + 1
    text = "invalid literal for int() with base 10: 'six'"
    assert error.message == f"dice failed: ValueError at erring_tools/dice.py:{line}: {text}"
    [record] = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert record.exc_info is not None and record.exc_info[0] is ValueError
