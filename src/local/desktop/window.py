"""The desktop window: the participants in a rail, the conversation in the middle, a dock for each panel."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from PySide6.QtCore import QSettings, Qt, QTimer
from PySide6.QtGui import QAction, QCloseEvent, QKeySequence
from PySide6.QtWidgets import (
    QDockWidget,
    QFrame,
    QHBoxLayout,
    QLabel,
    QListWidget,
    QListWidgetItem,
    QMainWindow,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from local.bus.envelope import Envelope
from local.desktop.bus_feed import BusFeed, FeedView
from local.desktop.style import Colours, label, mono, named, push_button, styled

TICK_MS = 33
LEAST, MOST = 16, 512  # messages that a tick takes
WANTED_SECONDS = 0.006  # of the thread's own time, for a tick's messages

NAME = Qt.ItemDataRole.UserRole


class Pace:
    """The number of messages that a tick takes, from the time that earlier ticks needed: all work of a tick is for its
    messages, so this bounds it.
    """

    def __init__(self) -> None:
        self.most = 128
        self.ticks: list[float] = []  # seconds of the thread's own time, if they are measured
        self.measures = False

    def note(self, seconds: float, taken: int) -> None:
        """A tick that took so many messages needed that long."""
        if self.measures:
            self.ticks.append(seconds)
        if seconds > WANTED_SECONDS and taken:
            self.most = max(LEAST, int(min(taken, self.most) * WANTED_SECONDS / seconds))
        elif taken == self.most:
            self.most = min(MOST, self.most + LEAST)


class ParticipantLogWidget(QMainWindow):
    """The window of one system. Every panel is a dock, which can float, be tabbed and be hidden; those that show
    messages get them at each tick.
    """

    def __init__(self, feed: BusFeed, colours: Colours, settings: QSettings | None = None) -> None:
        super().__init__()
        self.feed, self.colours, self.pace = feed, colours, Pace()
        self._settings = settings
        self._views: list[FeedView] = []
        self._docks: dict[str, QDockWidget] = {}
        self.setWindowTitle("LoCAL2")
        self.resize(1440, 900)
        self.setDockNestingEnabled(True)
        self._rail = QVBoxLayout()
        self._live = label("connecting", "faint", font=mono())
        self._make_centre()
        self._timer = QTimer(self, interval=TICK_MS)
        self._timer.timeout.connect(self.tick)
        self._timer.start()

    # Parts

    def add_view(self, view: FeedView) -> None:
        """Show a part of the window the messages from now on."""
        self._views.append(view)

    def add_dock(
        self,
        name: str,
        title: str,
        widget: QWidget,
        area: Qt.DockWidgetArea = Qt.DockWidgetArea.RightDockWidgetArea,
        *,
        shown: bool = True,
    ) -> QDockWidget:
        """Put a widget into a dock. `name` is the dock's in the saved layout; a widget with `receive` gets messages."""
        dock = QDockWidget(title, self)
        dock.setObjectName(f"dock-{name}")
        dock.setAccessibleName(title)
        dock.setWidget(widget)
        self._docks[name] = dock
        earlier = [each for each in self._docks.values() if each is not dock and self.dockWidgetArea(each) == area]
        self.addDockWidget(area, dock)
        if earlier and area == Qt.DockWidgetArea.RightDockWidgetArea:
            self.tabifyDockWidget(earlier[-1], dock)
        dock.setVisible(shown)
        if hasattr(widget, "receive"):
            self.add_view(widget)
        return dock

    def add_rail_button(self, text: str, name: str, pressed: Callable[[], object], key: str = "") -> QPushButton:
        """Add a button to the rail, above the participants."""
        button = push_button(text, "rail", name, pressed, f"{name} ({key})" if key else name)
        if key:
            action = QAction(name, self, shortcut=QKeySequence(key))
            action.triggered.connect(button.click)
            self.addAction(action)
        self._rail.addWidget(button)
        return button

    def show_dock(self, name: str) -> None:
        """Show a dock, in front of those that it shares its place with."""
        self._docks[name].show()
        self._docks[name].raise_()

    # The bus

    def tick(self) -> None:
        """Show what has come since the last tick, as much as there is time for."""
        began = time.thread_time()
        self.feed.settle()
        batch = self.feed.take(self.pace.most)
        if batch:
            self._show(batch)
        self._live.setText("live" if self.feed.link.is_live else "waiting")
        self.pace.note(time.thread_time() - began, len(batch))

    def _show(self, batch: Sequence[Envelope]) -> None:
        for view in self._views:
            view.receive(batch)

    def closeEvent(self, event: QCloseEvent) -> None:
        """Stop reading. Nothing but the window ends."""
        self._timer.stop()
        self.feed.close()
        super().closeEvent(event)

    # The frame

    def _make_centre(self) -> None:
        rail = styled(QFrame(), "rail")
        rail.setFixedWidth(220)
        column = QVBoxLayout(rail)
        column.setContentsMargins(12, 16, 12, 12)
        column.setSpacing(2)
        brand = QHBoxLayout()
        brand.addWidget(QLabel("<b>LoCAL2</b>"))
        brand.addStretch()
        brand.addWidget(self._live)
        column.addLayout(brand)
        column.addLayout(self._rail)
        column.addWidget(styled(QLabel("Participants"), "head"))
        self.people = named(styled(QListWidget(), "people"), "Participants")
        column.addWidget(self.people, 1)
        centre = QWidget()
        row = QHBoxLayout(centre)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(rail)
        self.talk = styled(QFrame(), "talk")
        row.addWidget(self.talk, 1)
        self.setCentralWidget(centre)


def people_item(name: str) -> QListWidgetItem:
    """Return the line of a participant."""
    item = QListWidgetItem(name)
    item.setData(NAME, name)
    return item
