"""`python -m local.stand_in`, as a person runs it."""

from __future__ import annotations

import asyncio
import signal
import socket
import sys
from pathlib import Path

import httpx
import pytest

from local.stand_in.__main__ import app


async def _start(*arguments: str) -> asyncio.subprocess.Process:
    command = (sys.executable, "-m", "local.stand_in", *arguments)
    return await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)


async def test_it_says_where_it_listens_serves_and_ends_with_status_0_at_sigterm() -> None:
    process = await _start("--port", "0")
    assert process.stderr
    url = (await process.stderr.readline()).decode().split()[-1]
    async with httpx.AsyncClient(trust_env=False, timeout=90) as http:
        answer = await http.get(url, timeout=90)
    assert answer.text == "Ollama is running"
    assert answer.headers["server"] == "local2-stand-in"
    process.send_signal(signal.SIGTERM)
    assert await asyncio.wait_for(process.wait(), 90) == 0
    assert await process.stderr.read() == b""


def test_a_taken_port_and_a_bad_script_are_one_line_and_status_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert run(["--port", port]) == 2
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 1 and port in told[0]
    assert run(["--port", "0", "--script", str(tmp_path / "none.yaml")]) == 2
    assert "none.yaml" in capsys.readouterr().err.splitlines()[-1]


def run(arguments: list[str]) -> int:
    with pytest.raises(SystemExit) as ended:
        app(arguments)
    return int(ended.value.code or 0)
