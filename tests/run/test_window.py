"""Whether `local2 run` opens the desktop window, and what it needs for that."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from local.run import window
from local.run.window import WindowRefused, WindowState, window_state


class Person:
    """Somebody at a terminal, and what is installed."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.answers: list[bool] = []
        self.installed: list[str] = []
        self.has_display = self.is_at_terminal = True
        patch.setattr(window, "has_display", lambda: self.has_display)
        patch.setattr(window, "find_spec", lambda name: None if name == "PySide6" and not self.installed else name)
        patch.setattr(window, "our_installer", lambda otherwise: self)
        patch.setattr(window.typer, "confirm", lambda *_, **__: self.answers.pop(0))
        patch.setattr(sys.stdin, "isatty", lambda: self.is_at_terminal, raising=False)
        patch.setattr(sys.stderr, "isatty", lambda: self.is_at_terminal, raising=False)

    def add(self, lock: str) -> None:
        self.installed.append(lock)


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> Person:
    return Person(monkeypatch)


def test_it_is_installed_once_the_user_agrees_and_opens(person: Person, tmp_path: Path) -> None:
    person.answers = [True]
    assert window_state(tmp_path, headless=False, insists=False) is WindowState.OPENS
    assert person.installed == ["requirements-desktop.lock"]
    assert window_state(tmp_path, headless=False, insists=False) is WindowState.OPENS


def test_who_declines_is_asked_again_only_by_the_option(person: Person, tmp_path: Path) -> None:
    person.answers = [False, True]
    for _ in range(2):
        assert window_state(tmp_path / "data", headless=False, insists=False) is WindowState.NOT_INSTALLED
    assert person.answers == [True]
    assert window_state(tmp_path / "data", headless=False, insists=True) is WindowState.OPENS


def test_without_a_display_a_terminal_or_a_wish_nobody_is_asked(person: Person, tmp_path: Path) -> None:
    assert window_state(tmp_path, headless=True, insists=False) is WindowState.UNWANTED
    person.is_at_terminal = False
    assert window_state(tmp_path, headless=False, insists=False) is WindowState.NOT_INSTALLED
    with pytest.raises(WindowRefused, match="in a terminal"):
        window_state(tmp_path, headless=False, insists=True)
    person.has_display = False
    assert window_state(tmp_path, headless=False, insists=False) is WindowState.NO_DISPLAY
    with pytest.raises(WindowRefused, match="no display"):
        window_state(tmp_path, headless=False, insists=True)


def test_what_a_start_imports_is_without_qt() -> None:
    code = (
        "import sys, local.run.run, local.cli.command_table; print([name for name in sys.modules if 'PySide' in name])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
