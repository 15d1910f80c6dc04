"""`local2 desktop`: the desktop window."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

import typer

from local.cli.client import SystemClient, running_system
from local.cli.main import DataDir
from local.core.environment import data_dir as find_data_dir
from local.core.environment import has_display
from local.core.errors import LocalError

INSTALL = "run `python3 scripts/run_local.py --desktop`, or `pip install 'local2-assistant[desktop]'`"

LIBRARIES = "on Debian: apt install libegl1 libxcb-cursor0 libxcb-icccm4 libxcb-keysyms1 libxkbcommon-x11-0"


class NoWindow(LocalError):
    """The error where no window can be shown."""

    kind = "no_window"


def desktop(data_dir: DataDir = None) -> None:
    """Open the desktop window of the running system. It waits for a system that is not running yet. Closing the window
    ends nothing else.

    Example: local2 desktop
    """
    if find_spec("PySide6") is None:
        raise NoWindow(f"the desktop window needs PySide6, which is not installed; {INSTALL}")
    if not has_display():
        raise NoWindow("there is no display to open a window on; `local2 open` opens the page in a browser")
    try:
        from local.desktop.application import run_window
    except ImportError as error:  # Qt is installed, and lacks a library of the operating system
        raise NoWindow(f"the desktop window cannot start: {error}; {LIBRARIES}") from None

    folder = find_data_dir(data_dir)
    raise typer.Exit(run_window(folder, ApiSettings(folder)))


class ApiSettings:
    """A `SettingsSource` over the HTTP API of the system that runs on a data directory."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir

    def files(self) -> list[dict[str, Any]]:
        """See `SettingsSource`."""
        found: list[dict[str, Any]] = self._client().request("GET", "/settings")["settings"]
        return found

    def show(self, name: str) -> dict[str, Any]:
        """See `SettingsSource`."""
        return self._client().request("GET", f"/settings/{quote(name, safe='')}")

    def change(self, name: str, values: Mapping[str, Any], reset: Sequence[str]) -> dict[str, Any]:
        """See `SettingsSource`."""
        body = {"values": dict(values), "reset": list(reset)}
        return self._client().request("PUT", f"/settings/{quote(name, safe='')}", body)

    def _client(self) -> SystemClient:
        return running_system(None, self._data_dir)
