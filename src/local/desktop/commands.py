"""`local2 desktop`: the desktop window."""

from __future__ import annotations

import sys
from importlib.util import find_spec

import typer

from local.cli.main import DataDir
from local.core.environment import data_dir as find_data_dir
from local.core.environment import has_display
from local.core.errors import LocalError

INSTALL = "run `python3 scripts/run_local.py --desktop`, or `pip install 'local2-assistant[desktop]'`"


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
    from PySide6.QtWidgets import QApplication

    from local.desktop.bus_feed import BusFeed
    from local.desktop.style import apply_style, system_colours
    from local.desktop.window import ParticipantLogWidget

    application = QApplication(sys.argv[:1])
    application.setApplicationName("LoCAL2")
    colours = system_colours()
    apply_style(application, colours)
    feed = BusFeed(find_data_dir(data_dir))
    window = ParticipantLogWidget(feed, colours)
    feed.start()
    window.show()
    raise typer.Exit(application.exec())
