"""The inspector of the bus: messages in a table, live, on record or of a file, with the selected one decoded."""

from __future__ import annotations

import json
import re
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from PySide6.QtCore import QModelIndex, QPoint, QStringListModel, Qt
from PySide6.QtGui import QAction, QKeySequence, QResizeEvent, QTextCursor
from PySide6.QtWidgets import (
    QComboBox,
    QCompleter,
    QDialog,
    QFileDialog,
    QFormLayout,
    QHBoxLayout,
    QLineEdit,
    QMenu,
    QPlainTextEdit,
    QSlider,
    QSplitter,
    QTabWidget,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from local.bus.blobs import read_payload
from local.bus.by_hand import BadPublication, checked
from local.bus.envelope import Envelope, decode, is_packed
from local.bus.filter import BadFilter, Filter, completions, quoted
from local.bus.message import PARTICIPANT_STATUS
from local.bus.messages import ParticipantStatus
from local.bus.security import Declarations
from local.bus.statistics import BusGraph, Delays
from local.core.config import layers_for
from local.core.data_dir import SENDERS
from local.core.errors import LocalError, MalformedFrame
from local.desktop.bus_feed import BY_HAND, BusFeed, message_of
from local.desktop.message_table import MOST, RULES, TERMS, MessageModel, MessageTable, Source, value_of
from local.desktop.style import label, mono, named, push_button
from local.journal.messages import JournalEntries, JournalEntry, JournalRead
from local.queries.export import read_export
from local.queries.otlp import load_otel, send

LATEST = 2**62  # a number behind all messages
PAGE, MOST_LOOKED_AT = 200, 4_000  # messages of the journal that are shown at a time; and looked at for them
LOW = 320  # pixels
NODES, TEXT = 2_000, 200_000  # of a message: nodes of its tree, characters of its text
RATE_SECONDS = 10
MAX_VALUE = 500  # characters of a value by which a filter can be made
DRAW_SECONDS = 1.0
LIVE, JOURNAL, FILE = "Live", "Journal", "File …"
TONES = ("bad", "warn", "good", "tool", "model", "soft", "faint")
_HEADER = {  # fields of the filter language by those of a header
    "subject": "subject", "sender": "sender", "instance": "instance", "id": "id", "correlation_id": "query",
    "cause_id": "cause", "in_reply_to": "reply", "session_id": "session", "user_id": "user", "seq": "seq",
}  # fmt: skip


class Node(NamedTuple):
    """One value of a message: its path, its place in the text, and how deep it is."""

    depth: int
    path: tuple[str, ...]
    value: Any
    start: int
    end: int


def laid_out(document: dict[str, Any]) -> tuple[str, list[Node]]:
    """Return a message as indented JSON, and the place of each of its values in it."""
    parts, nodes, at = list[str](), list[Node](), 0

    def put(text: str) -> None:
        nonlocal at
        parts.append(text)
        at += len(text)

    def write(value: Any, path: tuple[str, ...]) -> None:
        index, start = len(nodes), at
        nodes.append(Node(len(path), path, value, start, start))
        if isinstance(value, dict | list) and value and len(nodes) < NODES:
            pairs = value.items() if isinstance(value, dict) else ((None, each) for each in value)
            put("{" if isinstance(value, dict) else "[")
            for number, (key, each) in enumerate(pairs):
                put(("," if number else "") + "\n" + "  " * (len(path) + 1))
                put("" if key is None else json.dumps(key, ensure_ascii=False) + ": ")
                write(each, (*path, str(number) if key is None else str(key)))
            put("\n" + "  " * len(path) + ("}" if isinstance(value, dict) else "]"))
        else:
            put(json.dumps(value, ensure_ascii=False))
        nodes[index] = nodes[index]._replace(end=at)

    write(document, ())
    return "".join(parts), nodes[:NODES]


def term_of(node: Node) -> str | None:
    """Return the term of a filter for a value of a message; None if there is none."""
    if isinstance(node.value, dict | list) or not node.path:
        return None
    text = quoted(node.value if isinstance(node.value, str) else json.dumps(node.value, ensure_ascii=False))
    if len(text) > MAX_VALUE:
        return None
    if node.path[0] == "payload" and len(node.path) > 1:
        return f"{'.'.join(node.path)}={text}" if all(re.fullmatch(r"[\w$-]+", each) for each in node.path) else None
    field = _HEADER.get(node.path[-1])
    return f"{field}={text}" if field else None


class FilterField(QLineEdit):
    """The field of the filter language. `chosen` is called with a filter that can be read."""

    def __init__(self, chosen: Callable[[Filter], object], senders: Callable[[], Sequence[str]]) -> None:
        super().__init__()
        self._chosen, self._senders, self.applied = chosen, senders, ""
        named(self, "Filter", "such as subject:tool.* -sender:generator size>64k words")
        self.setPlaceholderText("Filter: subject:tool.* -sender:generator size>64k words")
        self.setFont(mono())
        self.setClearButtonEnabled(True)
        self.note = named(label("", "bad", wraps=True), "What is wrong with the filter")
        self.note.hide()
        self._offered = QStringListModel()
        completer = QCompleter(self._offered, self)
        completer.setCompletionMode(QCompleter.CompletionMode.UnfilteredPopupCompletion)
        if (popup := completer.popup()) is not None:
            named(popup, "Completions")
        self.setCompleter(completer)
        self.textEdited.connect(self._edited)
        self.returnPressed.connect(self.apply)

    def apply(self, text: str | None = None) -> None:
        """Use the filter that is typed, or this one."""
        if text is not None:
            self.setText(text)
        try:
            wanted = Filter(self.text())
        except BadFilter as error:
            self.note.setText(str(error))
            self.note.show()
            if error.position is not None and text is None:
                self.setCursorPosition(error.position)
            return
        self.note.hide()
        self.applied = self.text()
        self._chosen(wanted)

    def narrow(self, term: str) -> None:
        """Add a term to the filter that is applied."""
        before = f"({self.applied})" if re.search(r"(?i)\bor\b", self.applied) else self.applied
        self.apply(f"{before} {term}".strip())

    def _edited(self, text: str) -> None:
        if not text:
            self.apply()
        self._offered.setStringList([each.text for each in completions(text, self._senders())])


class MessageView(QSplitter):
    """One message: its values as a tree, and its text; what is selected in the tree is selected in the text."""

    def __init__(self, feed: BusFeed, filter_by: Callable[[str], object]) -> None:
        super().__init__(Qt.Orientation.Vertical)
        self._feed, self._filter_by, self._nodes = feed, filter_by, list[Node]()
        self.tree = named(QTreeWidget(), "Values of the message")
        self.tree.setHeaderLabels(["Field", "Value"])
        self.tree.setColumnWidth(0, 190)
        self.tree.setFont(mono())
        self.tree.setUniformRowHeights(True)
        self.tree.currentItemChanged.connect(self._mark)
        self.tree.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.tree.customContextMenuRequested.connect(self._menu)
        self.raw = named(QPlainTextEdit(), "Text of the message")
        self.raw.setReadOnly(True)
        self.raw.setTabChangesFocus(True)
        self.raw.setFont(mono())
        self.addWidget(self.tree)
        self.addWidget(self.raw)

    def show_message(self, envelope: Envelope | None) -> None:
        """Show a message, with its large fields once they are read."""
        self._envelope = envelope
        self._draw({} if envelope is None else {**envelope.header(), "payload": read_payload(envelope.payload)})
        if envelope is not None and is_packed(envelope.payload):
            self._feed.aside(
                lambda: {**envelope.header(), "payload": read_payload(envelope.payload, self._feed.blobs)},
                lambda whole: self._draw(whole) if self._envelope is envelope and isinstance(whole, dict) else None,
            )

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Have tree and text side by side where there is no room for one above the other."""
        is_low = event.size().height() < LOW
        self.setOrientation(Qt.Orientation.Horizontal if is_low else Qt.Orientation.Vertical)
        super().resizeEvent(event)

    def term(self) -> str | None:
        """Return the term of a filter for the selected value."""
        item = self.tree.currentItem()
        return None if item is None else term_of(self._nodes[item.data(0, Qt.ItemDataRole.UserRole)])

    def _draw(self, document: dict[str, Any]) -> None:
        self.tree.clear()
        text, self._nodes = laid_out(document) if document else ("", [])
        self.raw.setPlainText(text[:TEXT] + ("\n…" if len(text) > TEXT else ""))
        parents: list[QTreeWidgetItem] = []
        for index, node in enumerate(self._nodes[1:], 1):
            item = QTreeWidgetItem([node.path[-1], _in_short(node.value)])
            item.setData(0, Qt.ItemDataRole.UserRole, index)
            item.setToolTip(1, _in_short(node.value, 1_000))
            del parents[node.depth - 1 :]
            if parents:
                parents[-1].addChild(item)
            else:
                self.tree.addTopLevelItem(item)
            parents.append(item)
        self.tree.expandToDepth(1)

    def _mark(self, item: QTreeWidgetItem | None) -> None:
        if item is not None:
            node = self._nodes[item.data(0, Qt.ItemDataRole.UserRole)]
            cursor = self.raw.textCursor()
            end = len(self.raw.toPlainText())
            cursor.setPosition(min(node.start, end))
            cursor.setPosition(min(node.end, end), QTextCursor.MoveMode.KeepAnchor)
            self.raw.setTextCursor(cursor)
            self.raw.ensureCursorVisible()

    def _menu(self, at: QPoint) -> None:
        term = self.term()
        if term is not None:
            menu = QMenu(self)
            menu.addAction(f"Filter by {term[:60]}", partial(self._filter_by, term))
            menu.addAction(f"Leave out {term[:60]}", partial(self._filter_by, f"-{term}"))
            menu.popup(self.tree.mapToGlobal(at))


def _in_short(value: Any, most: int = 160) -> str:
    if isinstance(value, dict | list):
        return f"{len(value)} {'fields' if isinstance(value, dict) else 'elements'}"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return " ".join(text[:most].split()) + (" …" if len(text) > most else "")


class GraphView(QTreeWidget):
    """The table of participants and what they send: messages a second, delay to this window, and undelivered ones."""

    def __init__(self, feed: BusFeed) -> None:
        super().__init__()
        named(self, "Participants on the bus")
        self.setHeaderLabels(["Participant", "Messages/s", "Delay", "Waiting", "Subjects"])
        for column, width in enumerate((210, 110, 80, 80)):
            self.setColumnWidth(column, width)
        self._graph = BusGraph(Declarations(feed.data_dir / SENDERS).read)
        self._seconds = deque[tuple[int, Counter[str]]](maxlen=RATE_SECONDS + 1)
        self._delays: dict[str, Delays] = {}
        self._statuses: dict[str, Envelope] = {}  # which came since the figures were drawn
        self._pending: dict[str, int] = {}
        self._drawn_at = 0.0
        self._items: dict[str, QTreeWidgetItem] = {}

    def receive(self, batch: Sequence[Envelope]) -> None:
        """See `FeedView`."""
        now = time.time()
        if not self._seconds or self._seconds[-1][0] != int(now):
            self._seconds.append((int(now), Counter()))
        self._seconds[-1][1].update(each.sender for each in batch)
        for envelope in batch:
            if envelope.subject == PARTICIPANT_STATUS:
                self._statuses[envelope.sender] = envelope
                delays = self._delays.setdefault(envelope.sender, Delays(RATE_SECONDS))
                delays.add(now - envelope.sent_at)

    def rate(self, sender: str, now: float) -> float:
        """Return how many messages a second somebody has sent in the last ten."""
        return sum(sent[sender] for second, sent in self._seconds if now - RATE_SECONDS <= second) / RATE_SECONDS

    def refresh(self) -> None:
        """Draw the figures, once a second."""
        if not self.isVisible() or time.monotonic() - self._drawn_at < DRAW_SECONDS:
            return
        self._drawn_at, now = time.monotonic(), time.time()
        for name, envelope in self._statuses.items():
            self._graph.receive(envelope)
            status = message_of(ParticipantStatus, envelope)
            if status is not None and name == "journal":
                self._pending = dict(status.counters)
        self._statuses.clear()
        arrows = self._graph.without_upkeep().arrows()
        for name, member in sorted(self._graph.members.items()):
            waiting = sum(self._pending.get(f"pending_{each}", 0) for each in {*member.hears.values()} - {""})
            delay = self._delays.get(name, Delays()).mean
            figures = [name, f"{self.rate(name, now):.1f}", f"{1000 * delay:.0f} ms", f"{waiting:,}" if waiting else ""]
            item = self._items.get(name)
            if item is None:
                item = self._items[name] = QTreeWidgetItem()
                self.addTopLevelItem(item)
            for column, text in enumerate(figures):
                item.setText(column, text)
            to = {each.receiver for each in arrows if each.sender == name}
            if item.childCount() != len(to):
                item.takeChildren()
                for receiver in sorted(to):
                    subjects = [each.subject for each in arrows if (each.sender, each.receiver) == (name, receiver)]
                    item.addChild(QTreeWidgetItem([f"→ {receiver}", "", "", "", ", ".join(subjects)]))
        for name in self._items.keys() - self._graph.members.keys():
            self.takeTopLevelItem(self.indexOfTopLevelItem(self._items.pop(name)))


class PublishDialog(QDialog):
    """Asks for a message to publish, such as one that has passed, edited."""

    def __init__(self, feed: BusFeed, envelope: Envelope | None, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Publish a message")
        named(self, "Publish a message")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.resize(640, 520)
        self._feed = feed
        column = QVBoxLayout(self)
        warning = "A running system acts on this message as on any other, and records it. A copy has its query as well."
        column.addWidget(label(f"{warning} Its sender is {BY_HAND}.", "soft", wraps=True))
        form = QFormLayout()
        self.subject, self.query, self.session = (
            named(QLineEdit(), name) for name in ("Subject", "Query", "Conversation")
        )
        for field, name in ((self.subject, "Subject"), (self.query, "Query"), (self.session, "Conversation")):
            form.addRow(name, field)
        column.addLayout(form)
        self.payload = named(QPlainTextEdit(), "Payload")
        self.payload.setFont(mono())
        self.payload.setTabChangesFocus(True)
        column.addWidget(self.payload, 1)
        self.note = named(label("", "bad", wraps=True), "What became of it")
        column.addWidget(self.note)
        row = QHBoxLayout()
        row.addStretch()
        row.addWidget(push_button("Cancel", "", "Do not publish", self.reject))
        self.act = push_button("Publish", "accent", "Publish the message", self.publish)
        row.addWidget(self.act)
        column.addLayout(row)
        if envelope is not None:
            self.subject.setText(envelope.subject)
            self.query.setText(envelope.correlation_id)
            self.session.setText(envelope.session_id or "")
            value = read_payload(envelope.payload)
            self.payload.setPlainText(
                value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
            )

    def publish(self) -> None:
        """Check the message, and publish it."""
        subject = self.subject.text().strip()
        try:
            content = checked(subject, self.payload.toPlainText())
        except BadPublication as error:
            self.note.setText(str(error))
            return
        self.act.setEnabled(False)
        self.note.setText("")
        query, session = self.query.text().strip() or None, self.session.text().strip() or None
        self._feed.publish_by_hand(subject, content, query, session, self._published)

    def _published(self, result: str | LocalError) -> None:
        self.act.setEnabled(True)
        if isinstance(result, LocalError):
            self.note.setText(str(result))
        else:
            self.accept()


class RulesDialog(QDialog):
    """Asks for the colour rules, one a line: a tone, and the filter of its messages."""

    def __init__(self, text: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setWindowTitle("Colours of messages")
        named(self, "Colours of messages")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.resize(640, 320)
        column = QVBoxLayout(self)
        column.addWidget(label(f"A line for each rule: a tone ({', '.join(TONES)}), a colon, and a filter.", "soft"))
        self.text = named(QPlainTextEdit(text), "Rules")
        self.text.setFont(mono())
        self.text.setTabChangesFocus(True)
        column.addWidget(self.text, 1)
        self.note = named(label("", "bad", wraps=True), "What is wrong with the rules")
        column.addWidget(self.note)
        row = QHBoxLayout()
        row.addStretch()
        row.addWidget(push_button("Cancel", "", "Keep the rules as they were", self.reject))
        row.addWidget(push_button("Use", "accent", "Use these rules", self.use))
        column.addLayout(row)
        self.rules: list[tuple[str, Filter]] = []

    def use(self) -> None:
        """Check the rules, and close the dialog."""
        rules: list[tuple[str, Filter]] = []
        for number, line in enumerate(self.text.toPlainText().splitlines(), 1):
            tone, colon, text = line.partition(":")
            if not line.strip():
                continue
            if not colon or tone.strip() not in TONES:
                self.note.setText(f"line {number}: expected one of {', '.join(TONES)}, a colon, and a filter")
                return
            try:
                rules.append((tone.strip(), Filter(text)))
            except BadFilter as error:
                self.note.setText(f"line {number}: {error}")
                return
        self.rules = rules
        self.accept()


class Inspector(QWidget):
    """The messages of the bus as they pass, of the journal up to a moment, or of an exported file, with the selected
    one decoded. F6 leads from the filter to the table, the values and the text.
    """

    def __init__(self, feed: BusFeed) -> None:
        super().__init__()
        self._feed, self._senders = feed, set[str]()
        self._live, self._opened = Source(most=MOST), Source()
        self._rules = "\n".join(f"{tone}: {text}" for tone, text in RULES)
        self._asked, self._page = 0, list[Envelope]()
        self.model = MessageModel(self._live)
        self.table = MessageTable(self.model, "Messages")
        self.filter = FilterField(self._choose, lambda: sorted(self._senders))
        self.message = MessageView(feed, self.filter.narrow)
        self.graph = GraphView(feed)
        column = QVBoxLayout(self)
        column.setContentsMargins(8, 6, 8, 6)
        column.setSpacing(4)
        column.addLayout(self._make_head())
        column.addWidget(self.filter.note)
        self.tabs = named(QTabWidget(), "Inspector")
        self.tabs.setDocumentMode(True)
        named(self.tabs.tabBar(), "Parts of the inspector")
        split = QSplitter(Qt.Orientation.Horizontal)
        split.addWidget(self.table)
        split.addWidget(self.message)
        split.setSizes([700, 480])
        self.tabs.addTab(split, "Messages")
        self.tabs.addTab(self.graph, "Graph")
        column.addWidget(self.tabs, 1)
        column.addLayout(self._make_foot())
        self.table.selectionModel().currentRowChanged.connect(self._selected)
        self.table.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        for text, key, act in (
            ("Filter by this cell", "Ctrl+F", lambda: self.filter_by_cell()),
            ("Leave out this cell", "Ctrl+Shift+F", lambda: self.filter_by_cell(leave_out=True)),
            ("Follow this query", "Ctrl+Return", self.follow_query),
            ("Send the trace of this query", "", self.send_trace),
            ("Publish an edited copy …", "Ctrl+Shift+P", self.publish),
            ("Pause", "Ctrl+Space", lambda: self.pause.click()),
        ):
            self._add_action(text, key, act, self.table)
        self._add_action("Next part of the inspector", "F6", self.next_part, self)

    # The feed

    def receive(self, batch: Sequence[Envelope]) -> None:
        """See `FeedView`."""
        self._live.add(batch)
        self._senders.update(each.sender for each in batch)
        self.graph.receive(batch)

    def refresh(self) -> None:
        """Draw what is new, if it is visible."""
        if not self.isVisible():
            return
        self.graph.refresh()
        self.table.refresh()
        rows, model = self.model.rowCount(), self.model
        if self.source.currentText() != JOURNAL:
            with_rows = max(0, rows - 1)
            if self.slider.maximum() != with_rows:
                was_at_end = self.slider.value() == self.slider.maximum()
                self.slider.blockSignals(True)
                self.slider.setRange(0, with_rows)
                if was_at_end:
                    self.slider.setValue(with_rows)
                self.slider.blockSignals(False)
        waits = f" · {model.waiting:,} {'came since' if model.is_held else 'to be looked at'}" if model.waiting else ""
        lost = (
            f" · {model.left_out:,} went while it was paused; the journal has those on record" if model.left_out else ""
        )
        text = f"{rows:,} shown{waits}{lost}"
        if text != self.count.text():
            self.count.setText(text)

    # What is shown

    def show_source(self, name: str) -> None:
        """Show what passes, the journal, or a file, which is asked for."""
        self.pause.setEnabled(name == LIVE)
        self.pause.setChecked(False)
        self.where.setText("")
        self._asked += 1  # the answer to an earlier request is of no use now
        if name == LIVE:
            self._show(self._live)
        elif name == JOURNAL:
            self._show(Source())
            self._read(JournalRead(before=LATEST, limit=1), self._found_end)
        else:
            path, _ = QFileDialog.getOpenFileName(
                self, "Open an export of the journal", "", "Exports (*.jsonl *.ndjson *)"
            )
            self.open_file(Path(path)) if path else self.source.setCurrentText(LIVE)

    def open_file(self, path: Path) -> None:
        """Show the messages of a file that `local2 journal export` wrote."""

        def show(found: list[Any] | LocalError) -> None:
            if isinstance(found, LocalError):
                self.where.setText(str(found))
                return
            self._opened = Source([each.envelope for each in found])
            self.where.setText(f"{path.name}: {len(found):,} messages")
            self._show(self._opened)

        if self.source.currentText() != FILE:
            self.source.blockSignals(True)
            self.source.setCurrentText(FILE)
            self.source.blockSignals(False)
            self.pause.setEnabled(False)
        self._feed.aside(lambda: read_export(path), show)

    def _show(self, source: Source) -> None:
        self.model.show(source, self.model.wanted)
        self.message.show_message(None)

    def _choose(self, wanted: Filter) -> None:
        self.model.wanted = wanted
        if self.source.currentText() == JOURNAL:
            self._load(self.slider.value())
        else:
            self._show(self.model.source)

    def _hold(self, is_held: bool) -> None:
        self.model.is_held = is_held
        self.pause.setText("Go on" if is_held else "Pause")

    def _scrub(self, value: int) -> None:
        if self.source.currentText() == JOURNAL:
            self._load(value)
        elif value < self.slider.maximum() or self.model.is_held or self.source.currentText() == FILE:
            if self.source.currentText() == LIVE and not self.model.is_held:
                self.pause.click()
            self.table.setCurrentIndex(self.model.index(value, 1))
        if (envelope := self.table.current()) is not None and self.source.currentText() != JOURNAL:
            self.where.setText(f"at {time.strftime('%H:%M:%S', time.localtime(envelope.sent_at))}")

    # The journal, page by page

    def _read(self, request: JournalRead, then: Callable[[JournalEntries], object]) -> None:
        self._asked += 1
        number = self._asked

        def receive(answer: JournalEntries | LocalError) -> None:
            error = answer if isinstance(answer, LocalError) else answer.error
            if number == self._asked and error is not None:
                self.where.setText(f"The journal does not answer: {getattr(error, 'message', error)}")
            elif number == self._asked and isinstance(answer, JournalEntries):
                then(answer)

        self._feed.request(request, JournalEntries, receive)

    def _found_end(self, answer: JournalEntries) -> None:
        last = answer.entries[0].number if answer.entries else 0
        self.slider.blockSignals(True)
        self.slider.setRange(1 if last else 0, last)
        self.slider.setValue(last)
        self.slider.blockSignals(False)
        self._load(last)

    def _load(self, number: int) -> None:
        """Show the last messages that match up to this one."""
        self._page = []
        self._load_before(number + 1, number, 0)

    def _load_before(self, before: int, upto: int, looked_at: int) -> None:
        wanted = self.model.wanted
        request = JournalRead(
            subjects=tuple(each for each in wanted.subscriptions() if each), before=before, limit=PAGE,
            correlation_id=wanted.exact("query"), session_id=wanted.exact("session"),
        )  # fmt: skip

        def receive(answer: JournalEntries) -> None:
            found = (_decoded(entry) for entry in answer.entries)
            self._page += [each for each in found if each is not None and wanted.matches(each)]
            looked = looked_at + len(answer.entries)
            if answer.more and answer.entries and len(self._page) < PAGE and looked < MOST_LOOKED_AT:
                self._load_before(answer.entries[-1].number, upto, looked)
                return
            rows = self._page[PAGE - 1 :: -1]
            self._show(Source(rows))
            first = f" from {time.strftime('%d %b %H:%M:%S', time.localtime(rows[0].sent_at))}" if rows else ""
            self.where.setText(f"on record, up to number {upto:,}{first}")

        self._read(request, receive)

    # What a person does

    def filter_by_cell(self, *, leave_out: bool = False) -> None:
        """Add what is in the selected cell to the filter."""
        envelope, column = self.table.current(), self.table.currentIndex().column()
        if envelope is not None:
            self.filter.narrow(f"{'-' if leave_out else ''}{TERMS[column]}{quoted(value_of(envelope, column))}")

    def follow_query(self) -> None:
        """Show everything that the query of the selected message has caused."""
        envelope = self.table.current()
        if envelope is not None and envelope.correlation_id:
            self.filter.apply(f"query={quoted(envelope.correlation_id)}")

    def publish(self) -> None:
        """Ask for a message to publish; it begins with the selected one."""
        PublishDialog(self._feed, self.table.current(), self).open()

    def send_trace(self) -> None:
        """Send the trace of the selected message's query to the collector in otel.yaml."""
        envelope = self.table.current()
        if envelope is None or not envelope.correlation_id:
            return

        def told(result: int | LocalError) -> None:
            self.where.setText(str(result) if isinstance(result, LocalError) else f"{result} spans were sent")

        def found(trace: dict[str, Any] | LocalError) -> None:
            if isinstance(trace, LocalError):
                self.where.setText(str(trace))
            else:
                folder = self._feed.data_dir
                self._feed.aside(lambda: send(trace, load_otel(layers_for(None), folder)), told)

        self.where.setText("sending the trace …")
        self._feed.trace(envelope.correlation_id, found)

    def ask_for_rules(self) -> None:
        """Ask for the colour rules."""
        dialog = RulesDialog(self._rules, self)

        def use() -> None:
            self._rules = dialog.text.toPlainText()
            self.model.colour(dialog.rules)

        dialog.accepted.connect(use)
        dialog.open()

    def next_part(self) -> None:
        """Give the focus to the next of filter, table, values and text."""
        parts: list[QWidget] = [self.filter, self.table, self.message.tree, self.message.raw]
        self.tabs.setCurrentIndex(0)
        at = next((index for index, part in enumerate(parts) if part.hasFocus()), -1)
        parts[(at + 1) % len(parts)].setFocus()

    def _selected(self, current: QModelIndex) -> None:
        self.message.show_message(self.model.at(current.row()) if current.isValid() else None)

    # Parts

    def _make_head(self) -> QHBoxLayout:
        row = QHBoxLayout()
        self.source = named(QComboBox(), "Source of the messages")
        self.source.addItems([LIVE, JOURNAL, FILE])
        self.source.currentTextChanged.connect(self.show_source)
        row.addWidget(self.source)
        row.addWidget(self.filter, 1)
        self.pause = push_button(
            "Pause", "", "Pause", lambda: None, "Hold the table; messages are still read (Ctrl+Space)"
        )
        self.pause.setCheckable(True)
        self.pause.toggled.connect(self._hold)
        row.addWidget(self.pause)
        row.addWidget(push_button("Follow", "", "Follow this query", self.follow_query, "Ctrl+Enter"))
        row.addWidget(push_button("Publish …", "", "Publish a message", self.publish, "Ctrl+Shift+P"))
        row.addWidget(push_button("Colours …", "", "Colours of messages", self.ask_for_rules))
        return row

    def _make_foot(self) -> QHBoxLayout:
        row = QHBoxLayout()
        self.slider = named(QSlider(Qt.Orientation.Horizontal), "Moment")
        self.slider.setRange(0, 0)
        self.slider.setPageStep(PAGE)
        self.slider.valueChanged.connect(self._scrub)
        self.slider.setTracking(False)
        row.addWidget(self.slider, 2)
        self.where = named(label("", "soft", font=mono(9)), "Moment of the messages")
        row.addWidget(self.where, 1)
        self.count = named(label("", "faint", font=mono(9)), "Number of messages")
        row.addWidget(self.count)
        return row

    def _add_action(self, text: str, key: str, act: Callable[[], object], widget: QWidget) -> None:
        action = QAction(text, widget)
        action.setShortcut(QKeySequence(key))
        action.setShortcutContext(Qt.ShortcutContext.WidgetWithChildrenShortcut)
        action.triggered.connect(lambda: act())
        widget.addAction(action)


def _decoded(entry: JournalEntry) -> Envelope | None:
    with suppress(MalformedFrame):
        return decode(entry.frame.encode())
    return None
