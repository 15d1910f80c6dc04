"""The table of messages: the latest ones that match a filter, in fixed memory and in fixed time at each tick.

Problem: inserting rows into a view of 20,000 and removing as many in front took up to 64 ms at a tick.

Idea: messages are only appended to a source when they arrive; matching them is done in `refresh`, for a few
milliseconds at each tick, and goes on from there. A full table does not move rows: all rows show the next message, and
the view moves its selection and its position by as many rows. What was found is shown four times a second, because a
paint costs about 10 ms. A row's text is made when the row is painted.

Rejected: a delegate in Python that paints cells; it saves a tenth of a paint.

Invariant: every message of the source is matched once, in order, unless it left the source before (`left_out`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from PySide6.QtCore import QAbstractTableModel, QModelIndex, QPersistentModelIndex, Qt, Signal
from PySide6.QtWidgets import QHeaderView, QTableView, QWidget

from local.bus.envelope import Envelope
from local.bus.filter import Filter
from local.desktop.loggers import bus_line
from local.desktop.style import colours, mono, named

MOST, SPARE = 20_000, 2_000  # rows; and what is dropped at a time
SIFT_SECONDS = 0.003  # of the thread's own time, in a tick
SHOW_SECONDS = 0.25  # nobody reads faster
AT_A_TIME = 8  # messages that are matched between two looks at the clock
REMEMBERED = 4_000  # lines and tones
COLUMNS = ("Time", "Subject", "Sender", "Query", "Message", "Bytes")
WIDTHS = (96, 200, 110, 76, 420, 64)
TERMS = ("time>=", "subject:", "sender:", "query=", "subject:", "size>=")  # what a cell of each column filters by

Index = QModelIndex | QPersistentModelIndex
_TOP = QModelIndex()
RULES = (  # the first that matches decides a row's colour
    ("bad", "subject:bus.gap,bus.dead,bus.rejected,query.failed or payload.error:*"),
    ("faint", "subject:agent.transition,participant.,journal.,model."),
    ("tool", "subject:tool."),
    ("warn", "subject:approval.,question."),
    ("model", "subject:generation.,response.generation"),
)


class Source:
    """Messages in the order of their arrival. `first` is the number of those that are no longer kept."""

    def __init__(self, rows: Sequence[Envelope] = (), most: int | None = None) -> None:
        self.rows, self.first, self._most = list(rows), 0, most

    def add(self, batch: Sequence[Envelope]) -> None:
        """Append messages; the oldest ones go where there are too many."""
        self.rows += batch
        if self._most is not None and len(self.rows) >= self._most + SPARE:
            gone = len(self.rows) - self._most
            del self.rows[:gone]
            self.first += gone


class MessageModel(QAbstractTableModel):
    """The last `most` messages of a source that match a filter. `moved` says by how many rows all have moved up."""

    moved = Signal(int)

    def __init__(self, source: Source, most: int = MOST) -> None:
        super().__init__()
        self.source, self.wanted, self.is_held, self.left_out = source, Filter(), False, 0
        self._most, self._shown, self._next, self._rows = most, list[Envelope](), 0, 0
        self._found, self._shown_at = list[Envelope](), 0.0
        self._lines: dict[str, str] = {}
        self._tones: dict[str, str] = {}
        self.rules: Sequence[tuple[str, Filter]] = [(tone, Filter(text)) for tone, text in RULES]

    def show(self, source: Source, wanted: Filter) -> None:
        """Begin again with these messages."""
        self.beginResetModel()
        self.source, self.wanted = source, wanted
        self._shown, self._rows, self._next, self.left_out = [], 0, source.first, 0
        self._found, self._shown_at = [], 0.0
        self.endResetModel()

    def colour(self, rules: Sequence[tuple[str, Filter]]) -> None:
        """Colour rows by these rules: a tone, and the filter of its messages."""
        self.rules = rules
        self._tones.clear()
        self._redraw()

    @property
    def waiting(self) -> int:
        """The number of messages that were not matched yet."""
        return self.source.first + len(self.source.rows) - max(self._next, self.source.first)

    def refresh(self, seconds: float = SIFT_SECONDS) -> bool:
        """Match messages for at most so long, and show what was found if it is time; returns whether it was."""
        if self.is_held:
            return False
        if self.waiting:
            self._found += self._sift(time.thread_time() + seconds)
        now = time.monotonic()
        if not self._found or now - self._shown_at < SHOW_SECONDS:
            return False
        new, self._found, self._shown_at = self._found, [], now
        rows = min(self._rows + len(new), self._most)
        moved = self._rows + len(new) - rows
        if rows > self._rows:
            self.beginInsertRows(_TOP, self._rows, rows - 1)
        self._shown += new
        if len(self._shown) >= self._most + SPARE:
            del self._shown[: len(self._shown) - self._most]
        if rows > self._rows:
            self._rows = rows
            self.endInsertRows()
        if moved:
            self._redraw()
            self.moved.emit(moved)
        return True

    def _sift(self, until: float) -> list[Envelope]:
        source = self.source
        self.left_out += max(0, source.first - self._next)
        at = max(0, self._next - source.first)
        found: list[Envelope] = []
        while at < len(source.rows):
            piece = source.rows[at : at + AT_A_TIME]
            found += filter(self.wanted.matches, piece)
            at += len(piece)
            if time.thread_time() >= until:
                break
        self._next = source.first + at
        return found

    def at(self, row: int) -> Envelope | None:
        """Return the message in a row."""
        return self._shown[len(self._shown) - self._rows + row] if 0 <= row < self._rows else None

    def line(self, envelope: Envelope) -> str:
        """Return the line of a message, as the table shows it."""
        return _kept(self._lines, envelope, bus_line)

    def tone(self, envelope: Envelope) -> str:
        """Return the tone of a message, by the colour rules."""
        return _kept(self._tones, envelope, self._tone_of)

    def _tone_of(self, envelope: Envelope) -> str:
        return next((tone for tone, wanted in self.rules if wanted.matches(envelope)), "")

    def _redraw(self) -> None:
        if self._rows:
            self.dataChanged.emit(self.index(0, 0), self.index(self._rows - 1, len(COLUMNS) - 1))

    # What Qt asks

    def rowCount(self, parent: Index = _TOP) -> int:
        """Return the number of rows."""
        return 0 if parent.isValid() else self._rows

    def columnCount(self, parent: Index = _TOP) -> int:
        """Return the number of columns."""
        return 0 if parent.isValid() else len(COLUMNS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return a column's title."""
        is_title = orientation == Qt.Orientation.Horizontal and role == Qt.ItemDataRole.DisplayRole
        return COLUMNS[section] if is_title else None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Return the text, the colour or the alignment of a cell."""
        envelope = self.at(index.row())
        if envelope is None:
            return None
        column = index.column()
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            return self.line(envelope) if column == 4 else _cell(envelope, column)
        if role == Qt.ItemDataRole.ForegroundRole:
            return colours().colour(self.tone(envelope) or ("ink" if column in (1, 4) else "soft"))
        if role == Qt.ItemDataRole.TextAlignmentRole and column == 5:
            return Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        return None


def _kept(kept: dict[str, str], envelope: Envelope, make: Callable[[Envelope], str]) -> str:
    text = kept.get(envelope.id)
    if text is None:
        if len(kept) >= REMEMBERED:
            kept.clear()
        text = kept[envelope.id] = make(envelope)
    return text


def _cell(envelope: Envelope, column: int) -> str:
    at = envelope.sent_at
    return (
        time.strftime("%H:%M:%S", time.localtime(at)) + f".{int(at * 10) % 10}",
        envelope.subject, envelope.sender, envelope.correlation_id[:8], "", f"{len(envelope.payload):,}",
    )[column]  # fmt: skip


def value_of(envelope: Envelope, column: int) -> str:
    """Return what a cell stands for, in full."""
    values = ("", envelope.subject, envelope.sender, envelope.correlation_id, envelope.subject, "")
    if column == 0:
        return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(envelope.sent_at))
    return str(len(envelope.payload)) if column == 5 else values[column]


class MessageTable(QTableView):
    """A table of messages. It follows the latest one unless it was scrolled back; a selected message stays selected."""

    def __init__(self, model: MessageModel, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.messages = model
        self.setModel(model)
        named(self, name)
        self.setFont(mono())
        self.setShowGrid(False)
        self.setWordWrap(False)
        self.setTabKeyNavigation(False)
        self.setSelectionBehavior(QTableView.SelectionBehavior.SelectRows)
        self.setSelectionMode(QTableView.SelectionMode.SingleSelection)
        down = self.verticalHeader()
        down.hide()
        down.setSectionResizeMode(QHeaderView.ResizeMode.Fixed)
        down.setDefaultSectionSize(22)
        across = self.horizontalHeader()
        across.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft)
        across.setHighlightSections(False)
        for column, width in enumerate(WIDTHS):
            self.setColumnWidth(column, width)
        across.setSectionResizeMode(4, QHeaderView.ResizeMode.Stretch)
        model.moved.connect(self._follow)
        model.modelReset.connect(lambda: setattr(self, "_is_at_end", True))
        self._is_at_end = True
        self.verticalScrollBar().valueChanged.connect(self._scrolled)

    def refresh(self) -> None:
        """Show what is new."""
        if self.messages.refresh() and self._is_at_end:
            self.scrollToBottom()

    def current(self) -> Envelope | None:
        """Return the selected message."""
        return self.messages.at(self.currentIndex().row())

    def _scrolled(self, value: int) -> None:
        self._is_at_end = value >= self.verticalScrollBar().maximum()

    def _follow(self, rows: int) -> None:
        index = self.currentIndex()
        if index.isValid():
            self.selectionModel().blockSignals(True)  # it is the same message
            if index.row() < rows:
                self.selectionModel().clear()
            else:
                self.setCurrentIndex(self.messages.index(index.row() - rows, index.column()))
            self.selectionModel().blockSignals(False)
        if not self._is_at_end:
            bar = self.verticalScrollBar()
            bar.setValue(bar.value() - rows)
