"""The critic's panel (Cr): a row for each answer, with its grades and the comparison of both respondents."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHeaderView, QTableWidget, QTableWidgetItem, QVBoxLayout, QWidget

from local.bus.envelope import Envelope
from local.bus.messages import QueryReceived
from local.core.errors import LocalError
from local.critic.messages import CritiqueResult, PairwiseResult
from local.desktop.bus_feed import BusFeed, message_of
from local.desktop.panels import LATEST, ParticipantPanel, clock
from local.desktop.style import colours, label, mono, named, tone_of
from local.journal.messages import JournalRead

COLUMNS = ("Time", "Question", "A", "B", "Winner", "Says")
KEPT_ROWS = 300
AT_A_TICK = 8
READ_AGAIN = 100


@dataclass(slots=True)
class Grade:
    """The critic's grades of the answers to one question, a row of the table."""

    query_id: str
    at: float = 0.0
    question: str = ""
    a: CritiqueResult | None = None
    b: CritiqueResult | None = None
    pairwise: PairwiseResult | None = None

    def cells(self) -> tuple[str, ...]:
        """Return the text of each column."""
        says = self.a.feedback if self.a else self.b.feedback if self.b else ""
        return (
            clock(self.at), self.question or self.query_id[:8], score_told(self.a), score_told(self.b),
            winner_of(self.pairwise), " ".join(says.split()),
        )  # fmt: skip

    def whole(self) -> str:
        """Return all that was said, in paragraphs."""
        parts = [f"{name}: {score_told(one)}  {one.feedback}" for name, one in (("A", self.a), ("B", self.b)) if one]
        if self.pairwise is not None:
            parts.append(f"Compared: {winner_of(self.pairwise)}  {self.pairwise.feedback}")
        notes = [f"judge: {one.judge}{', of its own answer' if one.self_judged else ''}" for one in (self.a,) if one]
        return "\n\n".join([*parts, *notes])


class GradeTable(QWidget):
    """The grades, the latest at the top, and below them what was said of the selected one."""

    def __init__(self, feed: BusFeed) -> None:
        super().__init__()
        self._feed = feed
        self.grades: OrderedDict[str, Grade] = OrderedDict()
        self._changed: OrderedDict[str, None] = OrderedDict()
        self._rows: list[str] = []  # by row, the latest first
        self._nameless: set[str] = set()  # whose question is not known
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        self.table = named(QTableWidget(0, len(COLUMNS)), "Grades")
        self.table.setHorizontalHeaderLabels(list(COLUMNS))
        self.table.verticalHeader().hide()
        self.table.verticalHeader().setDefaultSectionSize(28)
        self.table.setShowGrid(False)
        self.table.setTabKeyNavigation(False)
        self.table.setWordWrap(False)
        self.table.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        self.table.setSelectionBehavior(QTableWidget.SelectionBehavior.SelectRows)
        header = self.table.horizontalHeader()
        header.setStretchLastSection(True)
        header.setHighlightSections(False)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft)
        for index, width in enumerate((84, 150, 52, 52, 72)):
            self.table.setColumnWidth(index, width)
        header.setSectionResizeMode(1, QHeaderView.ResizeMode.Interactive)
        self.table.currentCellChanged.connect(lambda row, *_: self._select(row))
        column.addWidget(self.table, 1)
        self.said = named(label("", wraps=True), "What the critic says")
        self.said.setContentsMargins(14, 6, 14, 10)
        self.said.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.said.hide()
        column.addWidget(self.said)
        self.empty = label("No answer has been graded yet. The critic works while the model is idle.", "faint")
        self.empty.setContentsMargins(14, 12, 14, 12)
        self.empty.setWordWrap(True)
        column.insertWidget(0, self.empty)

    def add(self, envelopes: Sequence[Envelope]) -> None:
        """Take messages; all but the critic's results and questions are ignored."""
        for envelope in envelopes:
            if envelope.subject in (CritiqueResult.subject, PairwiseResult.subject):
                self._receive(envelope)

    def refresh(self) -> None:
        """Draw some of what is new."""
        if not self.isVisible():
            return
        for _ in range(min(AT_A_TICK, len(self._changed))):
            query_id, _ = self._changed.popitem(last=False)
            self._draw(self.grades[query_id])
        if self._nameless and not self._changed:
            self._read_questions()

    def read_again(self) -> None:
        """Read the grades on record."""
        request = JournalRead(
            subjects=(CritiqueResult.subject, PairwiseResult.subject), before=LATEST, limit=READ_AGAIN
        )
        self._feed.read(request, self._read, most=READ_AGAIN)

    def _read(self, found: list[Envelope] | LocalError) -> None:
        if isinstance(found, list):
            self.add(found[::-1])

    def _receive(self, envelope: Envelope) -> None:
        critique = message_of(CritiqueResult, envelope, self._feed.blobs)
        pairwise = message_of(PairwiseResult, envelope, self._feed.blobs)
        told = critique or pairwise
        if told is None:
            return
        grade = self.grades.get(told.query_id)
        if grade is None:
            grade = self.grades[told.query_id] = Grade(told.query_id)
            self._nameless.add(told.query_id)
        grade.at = max(grade.at, envelope.sent_at)
        if pairwise is not None:
            grade.pairwise = pairwise
        elif critique is not None and critique.respondent_id == "A":
            grade.a = critique
        else:
            grade.b = critique
        self._changed[told.query_id] = None

    def _draw(self, grade: Grade) -> None:
        if grade.query_id not in self._rows:
            later = (row for row, other in enumerate(self._rows) if self.grades[other].at <= grade.at)
            row = next(later, len(self._rows))
            self._rows.insert(row, grade.query_id)
            self.table.insertRow(row)
            self.empty.hide()
            if len(self._rows) > KEPT_ROWS:
                self.grades.pop(self._rows.pop(), None)
                self.table.removeRow(len(self._rows))
        row = self._rows.index(grade.query_id)
        for index, text in enumerate(grade.cells()):
            item = QTableWidgetItem(text)
            item.setToolTip(text)
            if index in (0, 2, 3):
                item.setFont(mono())
            told = grade.a if index == 2 else grade.b if index == 3 else None
            item.setForeground(colours().colour("faint" if index == 0 else tone_of(told.score) if told else "ink"))
            self.table.setItem(row, index, item)
        if row == self.table.currentRow():
            self._select(row)

    def _select(self, row: int) -> None:
        grade = self.grades.get(self._rows[row]) if 0 <= row < len(self._rows) else None
        self.said.setText(grade.whole() if grade else "")
        self.said.setVisible(grade is not None)

    def _read_questions(self) -> None:
        wanted = tuple(self._nameless)[:100]
        self._nameless.difference_update(wanted)

        def receive(found: list[Envelope] | LocalError) -> None:
            for envelope in found if isinstance(found, list) else ():
                asked = message_of(QueryReceived, envelope, self._feed.blobs)
                if asked is not None and asked.query_id in self.grades:
                    self.grades[asked.query_id].question = " ".join(asked.query.split())
                    self._changed[asked.query_id] = None

        request = JournalRead(subjects=(QueryReceived.subject,), correlation_ids=wanted, limit=100)
        self._feed.read(request, receive, most=100)


class CriticPanel(ParticipantPanel):
    """The critic's panel: its *Activity* are the grades."""

    def make_activity(self) -> QWidget:
        """Return the table of grades."""
        self.grades = GradeTable(self._feed)
        self.grades.add(list(self.person.latest))
        return self.grades

    def read_again(self) -> None:
        """Read the grades on record."""
        self.grades.read_again()

    def refresh(self) -> None:
        """Draw what is new, if it is visible."""
        self.grades.refresh()
        self.refresh_state()

    def receive(self, batch: Sequence[Envelope]) -> None:
        """See `FeedView`."""
        self.grades.add(batch)


def score_told(critique: CritiqueResult | None) -> str:
    """Return a grade in a few characters."""
    if critique is None:
        return "–"
    return f"★ {critique.score}" if critique.score is not None else critique.status


def winner_of(pairwise: PairwiseResult | None) -> str:
    """Return the winner of a comparison, or why there is none."""
    return "–" if pairwise is None else pairwise.winner or pairwise.status
