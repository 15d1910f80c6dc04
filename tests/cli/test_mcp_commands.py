"""`local2 mcp add | approve | list | remove`, with a server over HTTP that changes what it says."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
import typer

from local.cli.command_table import run_command
from local.core.secrets import SecretMask, secret_mask
from local.mcp.client import ApprovedTool, changes
from tests.mcp.http_server import PlainHTTPServer, served
from tests.mcp.login_server import Logins, sums


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "config").mkdir()
    return tmp_path


async def said(capsys: pytest.CaptureFixture[str], folder: Path, *words: str, data: bool = True) -> tuple[int, str]:
    """Exit status and output of a command, which is run in a thread, as it has a loop of its own."""
    options = ["--config-dir", str(folder / "config"), *(["--data-dir", str(folder / "data")] if data else [])]
    status = await asyncio.to_thread(run_command, ["mcp", words[0], *options, *words[1:]])
    shown = capsys.readouterr()
    return status, shown.out + shown.err


async def test_a_server_is_added_approved_listed_compared_and_removed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = PlainHTTPServer()
    async with served(plain.app) as port:
        url = f"http://127.0.0.1:{port}/mcp"
        assert (await said(capsys, folder, "add", "plain", url, "--header", "X-Key=secret:box", data=False))[0] == 0
        assert "there is no secret box" in (await said(capsys, folder, "list", "--check"))[1]
        config = written(folder)
        config["mcpServers"]["plain"].pop("headers")
        (folder / "config" / "mcp.json").write_text(json.dumps({**config, "theirs": 1}))
        assert f"plain  {url}  no tool approved, L2  not running" in (await said(capsys, folder, "list"))[1]
        status, shown = await said(capsys, folder, "approve", "--yes", "plain")
        assert (status, "plain__echo (new)" in shown) == (0, True)
        assert shown.endswith("approved; no system runs; the change applies to the next start\n")
        assert (
            "2 tools approved, L2  not running\n    as approved" in (await said(capsys, folder, "list", "--check"))[1]
        )
        plain.said = "Something else."
        told = (await said(capsys, folder, "list", "--check"))[1]
        assert "changed: plain__echo, changed: plain__huge" in told
    assert "does not answer" in (await said(capsys, folder, "list", "--check"))[1]
    assert (await said(capsys, folder, "remove", "plain"))[0] == 0
    assert written(folder) == {"mcpServers": {}, "theirs": 1}
    assert not (folder / "data" / "mcp" / "plain.json").exists()


async def test_a_login_is_made_by_a_browser_and_forgotten(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def launch(url: str) -> None:
        how = {"follow_redirects": True, "trust_env": False}
        threading.Thread(target=httpx.get, args=(url,), kwargs=how, daemon=True).start()

    monkeypatch.setattr(typer, "launch", launch)
    monkeypatch.setattr(secret_mask, "__dict__", dict(vars(SecretMask())))
    logins = Logins()
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    async with served(sums(logins, port), port):
        await said(capsys, folder, "add", "sums", f"http://127.0.0.1:{port}/mcp", data=False)
        status, shown = await said(capsys, folder, "login", "sums")
        assert (status, f"Log in there: http://127.0.0.1:{port}/authorize?" in shown) == (0, True)
        assert "sums__add (new)" in (await said(capsys, folder, "approve", "--yes", "sums"))[1]
    forgotten = ["mcp", "logout", "sums", "--data-dir", str(folder / "data")]
    assert [await asyncio.to_thread(run_command, forgotten) for _ in range(2)] == [0, 2]
    assert "there is no login at sums" in capsys.readouterr().err


async def test_a_server_that_a_command_starts_has_no_login(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    await said(capsys, folder, "add", "w", "x", data=False)
    status, shown = await said(capsys, folder, "login", "w")
    assert (status, "only servers at a URL have a login" in shown) == (2, True)


async def test_a_command_is_added_with_its_words_and_only_the_owner_reads_the_file(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--env", "KEY=secret:w", "--readable", "/opt/w", "--network", "w", "--", "python3", "-u", "/opt/w/s.py"]
    assert (await said(capsys, folder, "add", *words, data=False))[0] == 0
    assert written(folder)["mcpServers"] == {
        "w": {
            "command": "python3", "args": ["-u", "/opt/w/s.py"], "env": {"KEY": "secret:w"}, "readable": ["/opt/w"],
            "network": True,
        }
    }  # fmt: skip
    assert (folder / "config" / "mcp.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["w", "x"], "has a server 'w'; take it out with 'local2 mcp remove w'"),
        (["a.b", "x"], "'a.b' cannot be a server's name"),
        (["c", "x", "--env", "KEY"], "expected NAME=VALUE"),
        (["c", "x", "--header", "A B=c"], "mcpServers.c.headers.A B"),
    ],
)
async def test_what_cannot_be_is_not_written(
    folder: Path, capsys: pytest.CaptureFixture[str], words: list[str], why: str
) -> None:
    await said(capsys, folder, "add", "w", "x", data=False)
    before = written(folder)
    status, shown = await said(capsys, folder, "add", *words, data=False)
    assert (status, written(folder)) == (2, before)
    assert why in shown


async def test_what_is_not_there_is_not_removed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, shown = await said(capsys, folder, "remove", "w")
    assert (status, "has no server 'w'; it has: none" in shown) == (2, True)


def test_tools_are_compared_with_what_was_approved() -> None:
    a, b, c, d = (ApprovedTool(name, name, "It does.", {}, "digest") for name in "abcd")
    other = ApprovedTool("b", "b", "It does.", {}, "another")
    assert changes([a, b, c], [a, other, d]) == {"a": "as approved", "b": "changed", "d": "new", "c": "gone"}


def written(folder: Path) -> Any:
    return json.loads((folder / "config" / "mcp.json").read_text())
