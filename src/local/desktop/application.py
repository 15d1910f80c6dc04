"""The Qt application that shows the desktop window."""

from __future__ import annotations

import gc
import signal
import sys
from pathlib import Path

from PySide6.QtCore import QSettings
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication

from local.desktop.bus_feed import BusFeed
from local.desktop.settings_form import SettingsSource
from local.desktop.style import apply_style, system_colours
from local.desktop.window import ParticipantLogWidget


def run_window(data_dir: Path, source: SettingsSource) -> int:
    """Show the window of the system on `data_dir` until it is closed; returns the exit status."""
    application = QApplication(sys.argv[:1])
    application.setApplicationName("LoCAL2")
    application.setDesktopFileName("local2")
    apply_style(application, system_colours())
    feed = BusFeed(data_dir)
    window = ParticipantLogWidget(feed, source, QSettings("LoCAL2", "desktop"))
    QGuiApplication.styleHints().colorSchemeChanged.connect(lambda _: window.retheme())
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: window.close())  # Python hears it at the next tick
    feed.start()
    window.show()
    settle_memory()
    return application.exec()


def settle_memory() -> None:
    """Keep the collection of garbage short: what is there now is not looked through any more, and of what comes only
    the latest, because the messages that pass make few cycles.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000, 10_000, 10_000)
