"""The desktop window that `local2 run` opens: whether it can be shown, its installation, and its process. Nothing here
imports Qt: the window is a process of its own, and closing it ends nothing else.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import suppress
from enum import Enum
from importlib.util import find_spec
from pathlib import Path

import typer

from local.core.environment import has_display
from local.core.errors import LocalError, SetUpFailed
from local.run.trial import our_installer

LOCK = "requirements-desktop.lock"
DECLINED = "desktop_declined"  # a file in the data directory: the user is not asked again
ABOUT = "The desktop window needs PySide6 (Qt for Python, licence LGPL-3.0), about 250 MB on the disk."
END_SECONDS = 5.0
CLOSED = "the desktop window was closed; LoCAL2 still runs (`local2 desktop` opens it again, Ctrl-C stops LoCAL2)"


class WindowState(Enum):
    """The decision whether to open a desktop window; the values are the reasons for the user, or empty."""

    OPENS = ""
    UNWANTED = "\0"
    NO_DISPLAY = "no desktop window: there is no display"
    NOT_INSTALLED = "no desktop window: `--desktop` installs it"

    @property
    def reason(self) -> str:
        """Return why there is none, for the user to read."""
        return "" if self is WindowState.UNWANTED else self.value


class WindowRefused(LocalError):
    """A desktop window was asked for, and cannot be opened."""

    kind = "no_window"


def window_state(data_dir: Path, *, headless: bool, insists: bool) -> WindowState:
    """Return whether to open a window. Where only PySide6 is missing, a person at the terminal is asked once whether to
    install it; one who `insists` is asked again. Raises `WindowRefused` if a window that is insisted on cannot be
    opened.
    """
    if (headless and not insists) or find_spec("local.desktop") is None:
        return WindowState.UNWANTED
    if not has_display():
        if insists:
            raise WindowRefused("there is no display to open a window on; leave `--desktop` out, and use the page")
        return WindowState.NO_DISPLAY
    if find_spec("PySide6") is not None or _installs(data_dir / DECLINED, insists=insists):
        return WindowState.OPENS
    return WindowState.NOT_INSTALLED


def _installs(declined: Path, *, insists: bool) -> bool:
    if declined.exists() and not insists:
        return False
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        if insists:
            raise WindowRefused(f"{ABOUT} Run the same command in a terminal to install it")
        return False
    typer.echo(f"{ABOUT} Without it, LoCAL2 has its page in the browser.", err=True)
    if not typer.confirm("Install it?", default=True, err=True):
        with suppress(OSError):  # the user is then asked once more
            declined.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            declined.touch()
        return False
    try:
        our_installer("install PySide6-Essentials yourself").add(LOCK)
    except (SetUpFailed, OSError) as error:
        raise WindowRefused(f"the desktop window could not be installed: {error}") from None
    declined.unlink(missing_ok=True)
    return True


async def show_window(data_dir: Path) -> None:
    """Run the window of the system on `data_dir` until it is closed; cancelled, close it."""
    # In a session of its own: Ctrl-C is for the supervisor, which then closes the window.
    command = [sys.executable, "-m", "local.cli.entry", "desktop", "--data-dir", str(data_dir)]
    process = await asyncio.create_subprocess_exec(*command, stdin=asyncio.subprocess.DEVNULL, start_new_session=True)
    try:
        status = await process.wait()
        ended = CLOSED if status == 0 else f"the desktop window has ended with status {status}; LoCAL2 still runs"
        print(ended, file=sys.stderr)  # noqa: T201
    except asyncio.CancelledError:
        with suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(END_SECONDS):
                await process.wait()
        except TimeoutError:
            process.kill()
        raise
