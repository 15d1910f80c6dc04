"""A home of the test's own, and git with and without a sandbox."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from local.core.errors import SandboxMissing
from local.files.git import GitProgram, GitRepository
from local.files.workspace import Workspace
from local.sandbox.sandbox import Bubblewrap

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
