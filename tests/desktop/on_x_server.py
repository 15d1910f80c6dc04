"""A program that shows the window on a display, and looks at what only a display has: focus, clipboard, a floating
panel. It prints one line, or fails.

    python on_x_server.py DATA_DIR
"""

from __future__ import annotations

import sys
from pathlib import Path

from PySide6.QtCore import Qt, QtMsgType, qInstallMessageHandler
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from local.desktop.bus_feed import BusFeed
from local.desktop.style import apply_style, system_colours
from local.desktop.window import ParticipantLogWidget


def main(data_dir: Path) -> None:
    warnings: list[str] = []
    qInstallMessageHandler(lambda kind, _, text: warnings.append(text) if kind is not QtMsgType.QtDebugMsg else None)
    application = QApplication(sys.argv[:1])
    apply_style(application, system_colours())
    window = ParticipantLogWidget(BusFeed(data_dir))
    window.show()
    assert QTest.qWaitForWindowExposed(window)
    window.activateWindow()
    window.conversation.composer.text.setFocus()
    QTest.keyClicks(window.conversation.composer.text, "spider")
    window.conversation.composer.text.selectAll()
    window.conversation.composer.text.copy()
    assert QGuiApplication.clipboard().text() == "spider"
    dock = window.docks["memory"]
    dock.show()
    dock.setFloating(True)
    assert QTest.qWaitForWindowExposed(dock) and dock.isFloating()
    QTest.keyClick(window.conversation.composer.text, Qt.Key.Key_Return)
    assert len(window.conversation.turns) == 1
    window.close()
    assert not warnings, warnings
    sys.stdout.write(f"shown on {QGuiApplication.platformName()}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
