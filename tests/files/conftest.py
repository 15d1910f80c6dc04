"""A home of the test's own, git with and without a sandbox, and the tools for files on an in-process bus."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from local.bus.envelope import Trace
from local.bus.messages import ToolRequest, ToolResult
from local.core.errors import SandboxMissing
from local.core.workspace import Workspace
from local.files.git import GitProgram, GitRepository
from local.files.messages import ChangeRequest, ChangeResult
from local.files.participant import FileTools
from local.sandbox.sandbox import Bubblewrap
from tests.tools.conftest import granted, serve  # noqa: F401 - fixtures

SECONDS = 90.0
Opened = Callable[[Path], GitRepository]


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home"))


@pytest.fixture
def uncontained(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no sandbox."""

    def missing() -> Bubblewrap:
        raise SandboxMissing("none here", "install one")

    monkeypatch.setattr(Bubblewrap, "found", missing)


@pytest.fixture(params=["machine_sandbox", "uncontained"])
def opened(request: pytest.FixtureRequest) -> Opened:
    """The repository of a folder, as git in a sandbox sees it, and as without one."""
    request.getfixturevalue(request.param)
    return lambda root: GitRepository(Workspace(root), GitProgram(root))


class Hands:
    """Calls the tools, each time as another call."""

    def __init__(self, caller: Any, root: Path, tools: FileTools) -> None:
        self.bus, self.root, self.tools, self._number = caller.bus, root, tools, 0

    async def __call__(self, tool: str, *, tainted: bool = False, user: str | None = None, **args: Any) -> ToolResult:
        self._number += 1
        request = ToolRequest(query_id="q1", call_id=f"q1:{self._number}:0", tool=tool, args=args, tainted=tainted)
        trace = Trace("q1", session_id="s1", user_id=user)
        result: ToolResult = await self.bus.request(request, ToolResult, SECONDS, trace)
        return result

    async def ask(self, verb: Any, **fields: Any) -> ChangeResult:
        """As a frontend does."""
        result: ChangeResult = await self.bus.request(ChangeRequest(verb=verb, **fields), ChangeResult, SECONDS)
        return result
