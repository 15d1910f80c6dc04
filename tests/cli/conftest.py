"""A command as it is typed, and a running system that it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from local.cli.entry import main


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Runs `local2 …`; returns its status, and what it has written to stdout and stderr."""

    def command(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main([*arguments])
        return int(str(ended.value.code or 0)), *capfd.readouterr()

    return command


@pytest.fixture
def found_by(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Has the commands of some modules find a frontend."""

    def find(frontend: Any, *modules: ModuleType) -> None:
        @contextmanager
        def found(api: str | None, directory: Path | None) -> Iterator[Any]:
            yield frontend

        for module in modules:
            monkeypatch.setattr(module, "running_system", found)

    return find
