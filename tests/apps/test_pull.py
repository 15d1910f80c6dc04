"""`local2 pull` shows how far Ollama is."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from local.apps.cli import main
from local.apps.pull import describe, pull_at
from local.errors import ModelError


@asynccontextmanager
async def ollama(*steps: dict[str, object]) -> AsyncIterator[str]:
    """Pulls whatever it is asked to, in these steps; gives its address."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        lines = b"".join(json.dumps(step).encode() + b"\n" for step in steps)
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/x-ndjson\r\nContent-Length: {len(lines)}\r\n\r\n"
        writer.write(head.encode() + lines)
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_each_step_is_shown_once_and_each_full_percent() -> None:
    layer = {"status": "pulling 3fa", "total": 8_100_000_000}
    amounts = (0, 40_000_000, 81_000_000, 8_100_000_000)
    steps = [{"status": "pulling manifest"}, *({**layer, "completed": done} for done in amounts), {"status": "success"}]
    shown: list[str] = []
    async with ollama(*steps) as url:
        await pull_at(url, "gemma4:12b", shown.append)
    assert shown == [
        "pulling manifest",
        "pulling 3fa 0 % of 8.1 GB",
        "pulling 3fa 1 % of 8.1 GB",
        "pulling 3fa 100 % of 8.1 GB",
        "success",
    ]


async def test_what_ollama_complains_about_is_the_error() -> None:
    async with ollama({"status": "pulling manifest"}, {"error": "pull model manifest: file does not exist"}) as url:
        with pytest.raises(ModelError, match="file does not exist"):
            await pull_at(url, "nonsense", lambda _: None)


@pytest.mark.parametrize(("total", "size"), [(512, "512 B"), (20_000, "20 kB"), (1_500_000, "1.5 MB")])
def test_a_size_is_told_in_its_unit(total: int, size: str) -> None:
    assert describe({"status": "pulling", "total": total}) == f"pulling 0 % of {size}"


def test_without_a_server_the_command_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "system.yaml").write_text("ollama_url: http://127.0.0.1:1\n")
    with pytest.raises(SystemExit) as ended:
        main(["pull", "gemma4:12b", "--config-dir", str(tmp_path)])
    assert ended.value.code == 2
    assert "local2: no Ollama server answers at http://127.0.0.1:1: start it" in capsys.readouterr().err
