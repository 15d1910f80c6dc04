"""The desktop window: who takes part in a rail, the conversation in the middle, a dock for each panel."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

from PySide6.QtCore import QByteArray, QSettings, Qt, QTimer
from PySide6.QtGui import QAction, QCloseEvent, QKeySequence
from PySide6.QtWidgets import (
    QApplication,
    QDockWidget,
    QFrame,
    QHBoxLayout,
    QListWidget,
    QListWidgetItem,
    QMainWindow,
    QPushButton,
    QTabBar,
    QVBoxLayout,
    QWidget,
)

from local.bus.messages import ToolSchema
from local.desktop.bus_feed import BusFeed, FeedView
from local.desktop.conversation import Conversation
from local.desktop.critic import CriticPanel
from local.desktop.inspector import Inspector
from local.desktop.loggers import EventLogger, ThinkingLogger
from local.desktop.memory import Episodes, MemoryInspector
from local.desktop.panels import LATEST, ParticipantPanel, People, Person, clock
from local.desktop.settings_form import SettingsSource
from local.desktop.style import apply_style, colours, label, mono, named, push_button, sign, styled, system_colours
from local.journal.messages import JournalRead

TICK_MS = 33
LEAST, MOST = 8, 512  # messages that a tick takes
WANTED_SECONDS = 0.003  # of the thread's own time, for a tick's messages
DRAWN_SECONDS = 0.005  # of a tick, after which nothing else is drawn
STATE_SECONDS = 0.2  # between two drawings of the participants and counts
RECENT_SECONDS = 60.0  # for which a loss or a restart is shown
RIGHT, BOTTOM = Qt.DockWidgetArea.RightDockWidgetArea, Qt.DockWidgetArea.BottomDockWidgetArea
NAME = Qt.ItemDataRole.UserRole
WIDTH, HEIGHT = 430, 320  # of docks, at first
_ORIENTATIONS = {True: Qt.Orientation.Horizontal, False: Qt.Orientation.Vertical}
PANELS: dict[str, type[ParticipantPanel]] = {"critic": CriticPanel}  # of those whose activity is more than lines


class Pace:
    """The number of messages that a tick takes, from the time that they needed in earlier ticks. `ticks` are the
    seconds of whole ticks, if they are measured.
    """

    def __init__(self) -> None:
        self.most = 64
        self.ticks: list[float] | None = None

    def note(self, seconds: float, taken: int) -> None:
        """A tick that took so many messages needed that long."""
        if seconds > WANTED_SECONDS and taken:
            self.most = max(LEAST, int(min(taken, self.most) * WANTED_SECONDS / seconds))
        elif taken == self.most:
            self.most = min(MOST, self.most + LEAST)


class ParticipantLogWidget(QMainWindow):
    """The window of one system. Every panel is a dock, which can float, be tabbed and be hidden. The parts that show
    messages get them at each tick, and then draw what is new.
    """

    def __init__(self, feed: BusFeed, source: SettingsSource | None = None, settings: QSettings | None = None) -> None:
        """`source` is where participants' settings are changed, `settings` keep the window's layout."""
        super().__init__()
        self.feed, self.pace, self.people = feed, Pace(), People()
        self._source, self._settings = source, settings
        self._views: list[FeedView] = [self.people]
        self._drawn = deque[Callable[[], object]]([self._show_state])
        self._next_state = 0.0
        self.docks: dict[str, QDockWidget] = {}
        self._panels: dict[str, ParticipantPanel] = {}
        self._connections, self._missed, self._lost_at, self._connected_at = 0, 0, 0.0, 0.0
        self.setWindowTitle("LoCAL2")
        self.resize(1440, 900)
        self.setDockNestingEnabled(True)
        self.conversation = Conversation(feed)
        self._make_centre()
        self._add(self.conversation)
        self.memory = MemoryInspector(feed)
        self.episodes = Episodes(feed, self._open_episode)
        brain = sign("🧠", "◈")
        self.add_dock("episodes", "≡ Episodes", self.episodes, shown=False)
        self.add_dock("memory", f"{brain} Memory", self.memory, shown=False)
        self.inspector = Inspector(feed)
        self.add_dock("thinking", "◈ Thinking", ThinkingLogger(), shown=False)
        self.add_dock("events", "Events", EventLogger(), BOTTOM, shown=False)
        self.add_dock("bus", "⇄ Bus", self.inspector, BOTTOM, shown=False)
        self._restore()
        self._timer = QTimer(self)
        self._timer.setInterval(TICK_MS)
        self._timer.timeout.connect(self.tick)
        self._timer.start()
        self.conversation.composer.text.setFocus()

    # Parts

    def add_dock(
        self, name: str, title: str, widget: QWidget, area: Qt.DockWidgetArea = RIGHT, *, shown: bool = True
    ) -> QDockWidget:
        """Put a widget into a dock. `name` is the dock's in the saved layout. A widget with `receive` is a `FeedView`;
        one with `refresh` draws what is new at each tick, within a few milliseconds.
        """
        dock = QDockWidget(title, self)
        dock.setObjectName(f"dock-{name}")
        dock.setWidget(widget)
        named(dock, title)
        others = [each for each in self.docks.values() if self.dockWidgetArea(each) == area and not each.isFloating()]
        self.docks[name] = dock
        self.addDockWidget(area, dock)
        if others:
            self.tabifyDockWidget(others[-1], dock)
        dock.setVisible(shown)
        self.resizeDocks([dock], [WIDTH if area == RIGHT else HEIGHT], _ORIENTATIONS[area == RIGHT])
        self._add(widget)
        QTimer.singleShot(0, self._name_tabs)  # Qt makes the bar of tabs later
        return dock

    def add_rail_button(self, text: str, name: str, pressed: Callable[[], object], key: str = "") -> QPushButton:
        """Add a button to the rail, above the participants."""
        button = push_button(text, "rail", name, pressed, f"{name} ({key})" if key else name)
        if key:
            self.add_key(key, name, button.click)
        self._buttons.addWidget(button)
        return button

    def add_key(self, key: str, name: str, pressed: Callable[[], object]) -> None:
        """Have a key do something wherever the focus is."""
        action = QAction(name, self)
        action.setShortcut(QKeySequence(key))
        action.triggered.connect(lambda: pressed())
        self.addAction(action)

    def show_dock(self, name: str) -> None:
        """Show a dock, in front of those that it shares its place with, and give it the focus."""
        dock = self.docks[name]
        dock.show()
        dock.raise_()
        widget = dock.widget()
        if widget is not None:
            widget.setFocus()
            first = widget.nextInFocusChain()
            if first is not None and widget.isAncestorOf(first):
                first.setFocus()

    def open_panel(self, name: str) -> ParticipantPanel:
        """Show the panel of a participant or a tool."""
        panel = self._panels.get(name) or self._make_panel(self.people.get(name))
        self.show_dock(name)
        return panel

    def retheme(self) -> None:
        """Take the colours that the desktop is set to now."""
        application = QApplication.instance()
        if isinstance(application, QApplication):
            apply_style(application, system_colours())
            self.recolour()

    def recolour(self) -> None:
        """Draw what has colours of its own in those that are in use."""
        self.people.changed.update(self.people.all)
        self._read_again()

    # The bus

    def tick(self) -> None:
        """Show what has come since the last tick, as much as there is time for: first the messages, then one part after
        the other draws what is new, and the next tick goes on where this one stops.
        """
        began = time.thread_time()
        self.feed.settle(most=1)
        batch = self.feed.take(self.pace.most)
        if batch:
            for view in self._views:
                view.receive(batch)
        self.pace.note(time.thread_time() - began, len(batch))
        for _ in range(len(self._drawn)):
            self._drawn[0]()
            self._drawn.rotate(-1)
            if time.thread_time() - began > DRAWN_SECONDS:
                break
        if self.pace.ticks is not None:
            self.pace.ticks.append(time.thread_time() - began)

    def _show_state(self) -> None:
        now = time.monotonic()
        if now > self._next_state:
            self._next_state = now + STATE_SECONDS
            self._show_people()
            self._show_link()

    def _show_link(self) -> None:
        feed = self.feed
        now = time.time()
        if feed.connections != self._connections:
            self._connected_at = now if self._connections else 0.0
            self._connections = feed.connections
            self._read_again()
        if feed.missed != self._missed:
            self._missed, self._lost_at = feed.missed, now
            self.conversation.read_again()
        self.live.setText("live" if feed.link.is_live else "waiting")
        dropped = f" · {feed.dropped:,} dropped" if feed.dropped else ""
        lost = f" · {feed.missed:,} lost" if feed.missed else ""
        self.counts.setText(f"{feed.heard:,} heard{dropped}{lost}")
        self.conversation.show_notice(self._notice(now))

    def _notice(self, now: float) -> str:
        link = self.feed.link
        if not link.is_live:
            kept = "Questions are kept, and sent when it is back."
            return f"Nothing is heard since {clock(link.since)}: {link.why}. {kept}" if self._connections else link.why
        away = [each for each in self.people.all.values() if each.is_child and not each.is_well]
        said = [
            f"{each.name} is {each.state} since {clock(each.since)}{f' ({each.detail})' if each.detail else ''}"
            for each in away
        ]
        said += [
            f"{each.name} was restarted at {clock(each.restarted_at)}{f' ({each.detail})' if each.detail else ''}"
            for each in self.people.all.values()
            if each.is_well and now - each.restarted_at < RECENT_SECONDS
        ]
        if self.people.problem:
            said.append(self.people.problem)
        if now - self._connected_at < RECENT_SECONDS:
            said.append(f"the bus is back since {clock(self._connected_at)}; live text of meanwhile may be missing")
        if self._missed and now - self._lost_at < RECENT_SECONDS:
            said.append(f"messages were lost at {clock(self._lost_at)} ({self._missed:,} in all)")
        return "; ".join(said)

    def _read_again(self) -> None:
        """Read what may have been missed."""
        if self.conversation.turns:
            self.conversation.read_again()
        else:
            self.conversation.open_last()
        for panel in self._panels.values():
            panel.read_again()
        schemas = JournalRead(subjects=(ToolSchema.subject,), before=LATEST, limit=200)
        self.feed.read(schemas, lambda found: self.people.learn(found), most=200)
        self.memory.is_old = self.episodes.is_old = True

    # The rail

    def _show_people(self) -> None:
        self.people.silence(time.time())
        for name in list(self.people.changed)[:8]:
            self.people.changed.discard(name)
            self._show_person(self.people.all[name])

    def _show_person(self, person: Person) -> None:
        items = {str(item.data(NAME)): item for item in map(self.list.item, range(self.list.count())) if item}
        item = items.get(person.name)
        if item is None:
            item = QListWidgetItem()
            item.setData(NAME, person.name)
            later = (row for row, name in enumerate(items) if self._order(self.people.all[name]) > self._order(person))
            self.list.insertItem(next(later, len(items)), item)
        mark = "◇" if person.is_tool else "●" if person.is_well else "○"
        state = "" if person.is_well or person.is_tool else f"  {person.state}"
        busy = f"  {person.inflight}" if person.inflight else ""
        item.setText(f"{mark}  {person.code}  {person.name.replace('_', ' ')}{state}{busy}")
        what = f"tool of {person.of}" if person.is_tool else f"{person.state} since {clock(person.since)}"
        item.setToolTip(f"{person.name}: {what}")
        item.setForeground(colours().colour("soft" if person.is_well else "faint" if person.is_tool else "bad"))
        item.setData(Qt.ItemDataRole.AccessibleTextRole, f"{person.name}, {what}")
        if person.name == "generator":
            model = person.facts.get("model", "")
            self.setWindowTitle(f"LoCAL2  [{model}]" if model else "LoCAL2")
        for button, needed in ((self.memory_button, "memory"), (self.episodes_button, "journal")):
            if person.name == needed:
                button.setEnabled(person.is_well)
                button.setToolTip("" if person.is_well else f"{needed} is {person.state}")
        self._reopen(person)

    @staticmethod
    def _order(person: Person) -> tuple[bool, str]:
        return person.is_tool, person.name

    def _make_panel(self, person: Person) -> ParticipantPanel:
        panel = PANELS.get(person.name, ParticipantPanel)(person, self.feed, self._source)
        self._panels[person.name] = panel
        dock = self.add_dock(person.name, f"{person.code}  {person.name.replace('_', ' ')}", panel)
        self.restoreDockWidget(dock)
        return panel

    def _open_item(self, item: QListWidgetItem) -> None:
        self.open_panel(str(item.data(NAME)))

    def _open_episode(self, session_id: str) -> None:
        self.conversation.open(session_id)
        self.conversation.composer.text.setFocus()

    def _open_memory(self) -> None:
        self.memory.is_old = True
        self.show_dock("memory")

    def _open_episodes(self) -> None:
        self.episodes.is_old = True
        self.show_dock("episodes")

    # The frame

    def _name_tabs(self) -> None:
        for bar in self.findChildren(QTabBar):
            if not bar.accessibleName():
                named(bar, "Panels")

    def closeEvent(self, event: QCloseEvent) -> None:
        """Stop reading, and keep the layout. Nothing but the window ends."""
        self._timer.stop()
        if self._settings is not None:
            self._settings.setValue("geometry", self.saveGeometry())
            self._settings.setValue("layout", self.saveState())
            shown = [name for name in self._panels if not self.docks[name].isHidden()]
            self._settings.setValue("panels", shown)
        self.feed.close()
        super().closeEvent(event)

    def _restore(self) -> None:
        self._waiting_panels: set[str] = set()  # which were open last time, until their participant is known
        if self._settings is None:
            return
        for name, restore in (("geometry", self.restoreGeometry), ("layout", self.restoreState)):
            value = self._settings.value(name)
            if isinstance(value, QByteArray):
                restore(value)
        names = self._settings.value("panels") or []
        self._waiting_panels = {names} if isinstance(names, str) else set(names)  # of one name Qt makes a text

    def _reopen(self, person: Person) -> None:
        if person.name in self._waiting_panels:
            self._waiting_panels.discard(person.name)
            self._make_panel(person)

    def _add(self, widget: QWidget) -> None:
        if hasattr(widget, "receive"):
            self._views.append(widget)
        if hasattr(widget, "refresh"):
            self._drawn.append(widget.refresh)

    def _make_centre(self) -> None:
        rail = styled(QFrame(), "rail")
        rail.setFixedWidth(228)
        column = QVBoxLayout(rail)
        column.setContentsMargins(12, 14, 12, 12)
        column.setSpacing(4)
        brand = QHBoxLayout()
        mark = label("◉ LoCAL2")
        font = mark.font()
        font.setPointSizeF(12.0)
        font.setWeight(font.Weight.DemiBold)
        mark.setFont(font)
        brand.addWidget(mark)
        brand.addStretch()
        self.live = named(label("connecting", "faint", font=mono(9)), "State of the connection")
        brand.addWidget(self.live)
        column.addLayout(brand)
        self._buttons = QVBoxLayout()
        self._buttons.setSpacing(0)
        column.addLayout(self._buttons)
        self.add_rail_button("+  New conversation", "New conversation", self.conversation.begin_new, "Ctrl+N")
        self.add_rail_button("×  Clear log", "Clear log", self.conversation.clear, "Ctrl+L")
        self.episodes_button = self.add_rail_button("≡  Episodes", "Episodes", self._open_episodes, "Ctrl+E")
        self.memory_button = self.add_rail_button(f"{sign('🧠', '◈')}  Memory", "Memory", self._open_memory, "Ctrl+M")
        self.add_rail_button("⇄  Bus", "Bus", lambda: self.show_dock("bus"), "Ctrl+B")
        self.add_rail_button("◈  Thinking", "Thinking", lambda: self.show_dock("thinking"), "Ctrl+T")
        self.add_rail_button("!  Events", "Events", lambda: self.show_dock("events"))
        self.add_key("Ctrl+K", "Question", self.conversation.composer.text.setFocus)
        column.addWidget(styled(label("Participants and tools"), "head"))
        self.list = named(styled(QListWidget(), "people"), "Participants and tools")
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.itemActivated.connect(self._open_item)
        self.list.itemClicked.connect(self._open_item)
        self.add_key("Ctrl+P", "Participants", self.list.setFocus)
        column.addWidget(self.list, 1)
        self.counts = named(label("", "faint", font=mono(9)), "Messages")
        column.addWidget(self.counts)
        centre = QWidget()
        row = QHBoxLayout(centre)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(rail)
        row.addWidget(self.conversation, 1)
        self.setCentralWidget(centre)
