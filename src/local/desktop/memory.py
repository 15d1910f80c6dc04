"""What is remembered: the inspector of the engrams (🧠), and the list of the conversations (≡ Episodes)."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QTreeWidget, QTreeWidgetItem, QVBoxLayout, QWidget

from local.bus.envelope import Envelope, Trace, new_id
from local.bus.messages import QueryReceived, SessionDeleted
from local.core.errors import LocalError
from local.desktop.bus_feed import BusFeed, message_of
from local.desktop.conversation import LATEST, own_questions
from local.desktop.style import colours, label, mono, named, push_button, tone_of
from local.journal.messages import JournalRead
from local.memory.messages import (
    EngramRecord,
    MemoryAnnotated,
    MemoryDeleted,
    MemoryIngested,
    MemoryRequest,
    MemoryResult,
)

COLUMNS = ("Age", "Respondent", "Score", "Sentiment", "Winner", "Query")
PAGE = 50
PAUSE_SECONDS = 1.0  # between two readings by itself
OF_MEMORY = frozenset({MemoryIngested.subject, MemoryAnnotated.subject, MemoryDeleted.subject})
QUESTIONS = 500  # on record, of which the conversations are made
RECORD = Qt.ItemDataRole.UserRole


class MemoryInspector(QWidget):
    """The exchanges that are remembered, the latest first, with what was thought of each. An exchange is opened to show
    its answer and its source."""

    def __init__(self, feed: BusFeed) -> None:
        super().__init__()
        self._feed = feed
        self._cursor, self.is_old, self._read_at = "", True, 0.0
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        self.tree = named(QTreeWidget(), "What is remembered")
        self.tree.setHeaderLabels(list(COLUMNS))
        self.tree.setUniformRowHeights(False)
        self.tree.setTextElideMode(Qt.TextElideMode.ElideRight)
        self.tree.setWordWrap(True)
        self.tree.setIndentation(14)
        for index, width in enumerate((88, 100, 64, 88, 68)):
            self.tree.setColumnWidth(index, width)
        self.tree.header().setDefaultAlignment(Qt.AlignmentFlag.AlignLeft)
        self.tree.itemExpanded.connect(self._expand)
        self.tree.itemActivated.connect(lambda item: item.setExpanded(not item.isExpanded()))
        column.addWidget(self.tree, 1)
        row = QHBoxLayout()
        row.setContentsMargins(12, 4, 12, 10)
        self.note = named(label("", "faint", wraps=True), "About what is remembered")
        row.addWidget(self.note, 1)
        self.more = push_button("More", "", "Show older memories", lambda: self._read(self._cursor))
        self.more.hide()
        self.renew = push_button("Refresh", "", "Read what is remembered again", self.load)
        row.addWidget(self.more)
        row.addWidget(self.renew)
        column.addLayout(row)

    def load(self) -> None:
        """Read the latest memories."""
        self.is_old, self._read_at = False, time.monotonic()
        self._read("")

    def receive(self, batch: Sequence[Envelope]) -> None:
        """See `FeedView`."""
        self.is_old = self.is_old or any(envelope.subject in OF_MEMORY for envelope in batch)

    def refresh(self) -> None:
        """Read again if something has changed, and it is visible."""
        if self.is_old and self.isVisible() and time.monotonic() - self._read_at > PAUSE_SECONDS:
            self.load()

    def _read(self, cursor: str) -> None:
        self.note.setText("reading …")
        request = MemoryRequest(verb="list", cursor=cursor, limit=PAGE)
        self._feed.request(request, MemoryResult, lambda result: self._receive(result, is_first=not cursor), _trace())

    def _receive(self, result: MemoryResult | LocalError, *, is_first: bool) -> None:
        error = result if isinstance(result, LocalError) else result.error
        if isinstance(result, LocalError) or error is not None:
            self.note.setText(f"The memory does not answer: {getattr(error, 'message', error)}")
            return
        opened = {_record(item).engram_id for item in self._items() if item.isExpanded()}
        if is_first:
            self.tree.clear()
        now = time.time()
        items = [_item(engram, now) for engram in result.engrams]
        self.tree.addTopLevelItems(items)
        for item in items:
            item.setExpanded(_record(item).engram_id in opened)
        self._cursor = result.cursor
        self.more.setVisible(bool(result.cursor))
        count = self.tree.topLevelItemCount()
        self.note.setText(f"{count} shown" if count else "Nothing is remembered yet.")

    def _items(self) -> list[QTreeWidgetItem]:
        items = (self.tree.topLevelItem(row) for row in range(self.tree.topLevelItemCount()))
        return [item for item in items if item is not None]

    def _expand(self, item: QTreeWidgetItem) -> None:
        placeholder = item.child(0)
        if placeholder is not None and not placeholder.text(0):
            item.removeChild(placeholder)
            for text in whole(_record(item)):
                child = QTreeWidgetItem([text])
                item.addChild(child)
                child.setFirstColumnSpanned(True)
                child.setToolTip(0, text)


def _trace() -> Trace:
    return Trace(new_id())


def _record(item: QTreeWidgetItem) -> EngramRecord:
    record: EngramRecord = item.data(0, RECORD)
    return record


def _item(engram: EngramRecord, now: float) -> QTreeWidgetItem:
    item = QTreeWidgetItem(list(cells(engram, now)))
    item.setData(0, RECORD, engram)
    item.setToolTip(5, engram.query)
    for index in (0, 1, 2, 4):
        item.setFont(index, mono())
    item.setForeground(0, colours().colour("faint"))
    if engram.score is not None:
        item.setForeground(2, colours().colour(tone_of(engram.score)))
    if engram.sentiment:
        item.setForeground(3, colours().colour("good" if engram.sentiment > 0 else "bad"))
    item.addChild(QTreeWidgetItem([""]))  # its content is made when it is opened
    return item


def cells(engram: EngramRecord, now: float) -> tuple[str, ...]:
    """Return the text of each column."""
    return (
        age(now - engram.asked_at),
        engram.respondent_id,
        "–" if engram.score is None else f"★ {engram.score:g}",
        {1: "▲ good", -1: "▼ poor"}.get(engram.sentiment or 0, "–"),
        engram.winner or "–",
        ("▪ " if engram.pinned else "") + " ".join(engram.query.split()),
    )


def whole(engram: EngramRecord) -> list[str]:
    """Return what an opened exchange shows, in paragraphs."""
    facts = [
        f"from {engram.origin}{', with untrusted content' if engram.tainted else ''}",
        f"about {engram.intent}: {', '.join(engram.entities)}" if engram.intent else "",
        f"based on {len(engram.recalled)} memories" if engram.recalled else "",
        f"superseded by {engram.superseded_by[:8]}" if engram.superseded_by else "",
        f"query {engram.query_id[:8]}",
    ]
    return [" ".join(engram.answer.split()) + (" …" if engram.cut else ""), "  ·  ".join(filter(None, facts))]


def age(seconds: float) -> str:
    """Return a time span in its largest unit."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{max(0, int(seconds))} s"


class Episodes(QWidget):
    """The conversations on record, the latest first. `opened` is called with the session of one that is chosen."""

    def __init__(self, feed: BusFeed, opened: Callable[[str], object]) -> None:
        super().__init__()
        self._feed, self._opened = feed, opened
        self.is_old, self._read_at = True, 0.0
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        self.tree = named(QTreeWidget(), "Conversations")
        self.tree.setHeaderLabels(["Last", "Questions", "Begins with"])
        self.tree.setRootIsDecorated(False)
        self.tree.setUniformRowHeights(True)
        self.tree.setColumnWidth(0, 78)
        self.tree.setColumnWidth(1, 84)
        self.tree.header().setDefaultAlignment(Qt.AlignmentFlag.AlignLeft)
        self.tree.itemActivated.connect(self._open)
        self.tree.itemClicked.connect(self._open)
        column.addWidget(self.tree, 1)
        row = QHBoxLayout()
        row.setContentsMargins(12, 4, 12, 10)
        self.note = named(label("", "faint", wraps=True), "About the conversations")
        row.addWidget(self.note, 1)
        self.renew = push_button("Refresh", "", "Read the conversations again", self.load)
        row.addWidget(self.renew)
        column.addLayout(row)

    def load(self) -> None:
        """Read the latest conversations."""
        self.is_old, self._read_at = False, time.monotonic()
        self.note.setText("reading …")
        request = JournalRead(subjects=(QueryReceived.subject,), before=LATEST, limit=QUESTIONS)
        self._feed.read(request, lambda found: self._receive(own_questions(found)), most=QUESTIONS)

    def receive(self, batch: Sequence[Envelope]) -> None:
        """See `FeedView`."""
        changes = (QueryReceived.subject, SessionDeleted.subject)
        self.is_old = self.is_old or any(envelope.subject in changes for envelope in batch)

    def refresh(self) -> None:
        """Read again if something has changed, and it is visible."""
        if self.is_old and self.isVisible() and time.monotonic() - self._read_at > PAUSE_SECONDS:
            self.load()

    def _receive(self, found: list[Envelope] | LocalError) -> None:
        if isinstance(found, LocalError):
            self.note.setText(f"The journal does not answer: {found}")
            return
        now = time.time()
        self.tree.clear()
        for session_id, asked in by_session(found).items():
            first = message_of(QueryReceived, asked[-1])
            text = " ".join(first.query.split()) if first is not None else ""
            item = QTreeWidgetItem([age(now - asked[0].sent_at), str(len(asked)), text])
            item.setData(0, RECORD, session_id)
            item.setToolTip(2, text)
            for index in (0, 1):
                item.setFont(index, mono())
            self.tree.addTopLevelItem(item)
        count = self.tree.topLevelItemCount()
        self.note.setText(f"of the last {len(found)} questions" if count else "Nothing was asked yet.")

    def _open(self, item: QTreeWidgetItem) -> None:
        self._opened(str(item.data(0, RECORD)))


def by_session(found: Sequence[Envelope]) -> OrderedDict[str, list[Envelope]]:
    """Return questions by their session, in the order of the first one of each."""
    sessions: OrderedDict[str, list[Envelope]] = OrderedDict()
    for envelope in found:
        sessions.setdefault(envelope.session_id or envelope.correlation_id, []).append(envelope)
    return sessions
