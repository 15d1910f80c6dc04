"""The process that looks through programs, and its end."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from local.core.errors import ToolError
from local.files.code import CodeJob, CodeLimits, CodeRunner

MANY_WAYS = r"(a+)+$"


def job(root: Path, wanted: str, seconds: float = 15) -> CodeJob:
    return CodeJob("text", str(root), (), CodeLimits(seconds=seconds), wanted)


def children() -> list[psutil.Process]:
    return psutil.Process().children(recursive=True)


async def test_a_pattern_that_tries_too_many_ways_is_ended(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x\n" + "a" * 60 + "!\n")
    runner = CodeRunner(kill_after=0.0)
    before = children()
    with pytest.raises(ToolError) as ended:
        await runner.findings(job(tmp_path, MANY_WAYS, seconds=1.0))
    assert ended.value.kind == "too_slow"
    assert children() == before


async def test_a_call_that_is_cancelled_ends_its_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, start = asyncio.Event(), asyncio.create_subprocess_exec

    async def started(*arguments: Any, **options: Any) -> asyncio.subprocess.Process:
        process = await start(*arguments, **options)
        begun.set()
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", started)
    (tmp_path / "a.txt").write_text("a" * 60 + "!\n")
    before = children()
    call = asyncio.create_task(CodeRunner().findings(job(tmp_path, MANY_WAYS)))
    await asyncio.wait_for(begun.wait(), 90)
    assert children() != before
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert children() == before


async def test_a_process_that_breaks_is_an_error_that_says_why(tmp_path: Path) -> None:
    broken = CodeRunner((sys.executable, "-I", "-S", "-c", "raise SystemExit('no memory is left')"))
    with pytest.raises(ToolError, match="ended with 1: no memory is left"):
        await broken.findings(job(tmp_path, "x"))
