"""The conversation in the desktop window: its turns, the approvals that wait, and the field for the next question.

A turn is computed by `QueryView`, the fold that the page and the terminal use. Messages only mark a turn as changed;
`Conversation.refresh` then draws changed turns for as long as a tick allows.
"""

from __future__ import annotations

import json
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, cast

from PySide6.QtCore import QEvent, QObject, Qt, QUrl, Signal
from PySide6.QtGui import (
    QDesktopServices,
    QGuiApplication,
    QKeyEvent,
    QResizeEvent,
    QTextBlockFormat,
    QTextCursor,
    QTextDocument,
    QWheelEvent,
)
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLineEdit,
    QMessageBox,
    QPlainTextEdit,
    QProgressBar,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QTextBrowser,
    QVBoxLayout,
    QWidget,
)

from local.bus.envelope import Envelope, Trace, new_id
from local.bus.message import MAIN_RESPONDENT, Message
from local.bus.messages import (
    AgentTransition,
    GenerationProgress,
    GenerationThinking,
    GenerationToken,
    GenerationWaiting,
    PlanMode,
    QueryCancel,
    QueryReceived,
    ToolRequest,
)
from local.bus.vocabulary import CLARIFICATION, PROPOSE_PLAN, TRUST_FOLDER
from local.core.errors import LocalError
from local.core.text import visible
from local.critic.messages import UserFeedback
from local.desktop.bus_feed import BusFeed, message_of
from local.desktop.style import label, mono, named, prose, push_button, sign, stars, styled, tone_of
from local.journal.messages import JournalRead
from local.permissions.messages import (
    ApprovalDecision,
    ApprovalRequest,
    Decision,
    PermissionRequest,
    PermissionResult,
)
from local.queries.asker import query_envelope_id
from local.queries.view import EVENT_KINDS, QueryView, kind_of

KEPT_TURNS = 20
KEPT_MESSAGES = 3_000  # of a conversation that is read from the journal
CHUNK = 1_200  # characters of an answer that are drawn together
CALLS_AT_A_TICK = 5  # new ones of tools
REFRESH_SECONDS = 0.006  # of the thread's own time, at a tick
REDRAW_SECONDS = 0.15  # between two drawings of an answer that grows
REDRAW_SHARE = 20  # times as long as a drawing has taken is no other one
LATEST = 2**62  # before this entry: from the latest on
MEASURE = 760  # pixels, the width of a line of text
LINE_PERCENT = 125.0  # of the typeface's own height
FRAGMENTS = (GenerationThinking.subject, GenerationToken.subject, GenerationProgress.subject)
_KINDS: tuple[type[Message], ...] = (QueryReceived, *EVENT_KINDS)
RECORDED = tuple(kind.subject for kind in _KINDS if kind.subject not in FRAGMENTS)

Json = dict[str, Any]


class MarkdownView(QTextBrowser):
    """A text as high as its content, shown as Markdown without HTML. It loads nothing, and opens a link only after it
    has shown where it leads."""

    FEATURES = QTextDocument.MarkdownFeature.MarkdownDialectGitHub | QTextDocument.MarkdownFeature.MarkdownNoHTML

    def __init__(self, name: str) -> None:
        super().__init__()
        named(self, name)
        self._shown = ""
        self.setOpenLinks(False)
        self.setFont(prose())
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.document().setDocumentMargin(0)
        self.anchorClicked.connect(self._follow)

    def show_markdown(self, text: str) -> None:
        """Show another text."""
        if text != self._shown:
            self._shown = text
            self.document().setMarkdown(text, self.FEATURES)
            every = QTextCursor(self.document())
            every.select(QTextCursor.SelectionType.Document)
            spaced = QTextBlockFormat()
            spaced.setLineHeight(LINE_PERCENT, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
            every.mergeBlockFormat(spaced)
            self._fit()

    def loadResource(self, kind: int, name: QUrl | str) -> Any:
        """Load nothing: neither files nor addresses."""
        return None

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the height that the text needs."""
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self._fit()

    def wheelEvent(self, event: QWheelEvent) -> None:
        """Scroll the conversation, not this text."""
        event.ignore()

    def _fit(self) -> None:
        self.document().setTextWidth(self.viewport().width())
        self.setFixedHeight(int(self.document().size().height()) + 4)

    def _follow(self, url: QUrl) -> None:
        if url.scheme() not in ("http", "https"):
            return
        asked = f"Open this address in the browser?\n\n{url.host()}\n{url.toDisplayString()[:300]}"
        if QMessageBox.question(self, "Open a link", asked) == QMessageBox.StandardButton.Yes:
            QDesktopServices.openUrl(url)


class Folded(QWidget):
    """A line that opens a text below it. The text is made when it is first opened."""

    def __init__(self, title: str, name: str) -> None:
        super().__init__()
        self._name = name
        self._text: Callable[[], str] = str
        self._shown = ""
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(4)
        self.button = QPushButton(f"▸ {title}")
        named(styled(self.button, "quiet"), name)
        self.button.setCheckable(True)
        self.button.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.button.setMinimumWidth(1)  # a long title is cut, and does not widen the conversation
        self.button.toggled.connect(self._toggle)
        self._column.addWidget(self.button)
        self._body: QPlainTextEdit | None = None

    def show_text(self, title: str, text: Callable[[], str]) -> None:
        """Show another title and text; `text` is called while it is open."""
        self._text = text
        self.button.setText(f"{'▾' if self.button.isChecked() else '▸'} {title}")
        if self.button.isChecked() and self._body is not None:
            new = text()
            if new.startswith(self._shown):
                self._body.moveCursor(QTextCursor.MoveOperation.End)
                self._body.insertPlainText(new[len(self._shown) :])
            else:
                self._body.setPlainText(new)
            self._shown = new

    def _toggle(self, is_open: bool) -> None:
        self.button.setText(f"{'▾' if is_open else '▸'}{self.button.text()[1:]}")
        if self._body is None:
            self._body = QPlainTextEdit()
            self._body.setReadOnly(True)
            self._body.setFixedHeight(150)
            self._body.setFont(mono())
            self._body.setTabChangesFocus(True)
            named(self._body, f"{self._name}: text")
            self._column.addWidget(self._body)
        self._shown = self._text()
        self._body.setPlainText(self._shown)
        self._body.setVisible(is_open)


class Turn(QWidget):
    """One question with its thinking, tool calls, answer and judgements. `act` carries out what is asked for here."""

    def __init__(self, view: QueryView, feed: BusFeed, again: Callable[[str], object]) -> None:
        super().__init__()
        self.view, self._feed, self._again = view, feed, again
        self.is_changed = True
        self._next_drawing = 0.0
        self._doing = "waits to be stored"
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 18)
        column.setSpacing(8)
        self._column = column
        self.asked = label("", font=prose(), wraps=True)
        self.asked.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        bubble = styled(QFrame(), "asked")
        inside = QVBoxLayout(bubble)
        inside.setContentsMargins(14, 8, 14, 8)
        inside.addWidget(self.asked)
        row = QHBoxLayout()
        row.addStretch(1)
        row.addWidget(bubble)
        column.addLayout(row)
        self._think_column = QVBoxLayout()
        column.addLayout(self._think_column)
        self._calls: dict[str, Folded] = {}
        self._call_states: dict[str, tuple[bool, ...]] = {}
        self._whole = ""  # the start of the answer whose parts do not change any more
        self._call_column = QVBoxLayout()
        self._call_column.setSpacing(4)
        column.addLayout(self._call_column)
        self._answer = QVBoxLayout()
        self._answer.setSpacing(0)
        column.addLayout(self._answer)
        self.chunks: list[MarkdownView] = []
        self._is_last_whole = False
        self.status = label("", "faint", font=prose(9.5), wraps=True)
        column.addWidget(self.status)
        self._left = [self._make_line, self._make_acts, self._make_thinking]  # each is made in a tick of its own

    @property
    def answer(self) -> str:
        """Return the answer as far as it is known."""
        return self.view.answer

    def receive(self, envelope: Envelope) -> None:
        """Fold one message of the query."""
        kind = kind_of(envelope.subject)
        message = None if kind is None else message_of(kind, envelope, self._feed.blobs)
        if message is None:
            return
        if isinstance(message, GenerationToken):
            self._doing = "writes"
        elif isinstance(message, GenerationThinking):
            self._doing = "thinks"
        elif isinstance(message, GenerationProgress):
            self._doing = f"reads {message.done:,} of {message.total:,} tokens"
        elif isinstance(message, GenerationWaiting):
            self._doing = message.reason
        elif isinstance(message, ToolRequest):
            self._doing = f"uses {message.tool}"
        elif isinstance(message, AgentTransition) and message.to_state == "GENERATING":
            self._doing = "the model works"
        elif isinstance(message, QueryReceived) and self._doing == "waits to be stored":
            self._doing = "waits for its turn"
        self.view.receive(message, envelope)
        self.view.states.clear()  # what it does is shown, what it did is not
        self.is_changed = True

    def stored(self, error: LocalError | None) -> None:
        """The question is stored, or was refused."""
        if error is not None:
            self.view.fail(error)
        elif self._doing == "waits to be stored":
            self._doing = "waits for its turn"
        self.is_changed = True

    def refresh(self, now: float) -> bool:
        """Draw what has changed; returns False if that has to wait for a while."""
        if not self.view.ended and now < self._next_drawing:
            return False
        began = time.thread_time()
        if self._left:
            self._left.pop(0)()
            return True
        self._show_question()
        thinking = self.view.thinking
        self.thinking.setVisible(bool(thinking))
        if thinking:
            seconds = sum(step.thinking for step in self.view.response.usage.steps) if self.view.response else 0.0
            words = f"◈ thought for {seconds:.1f} s" if seconds else "◈ thinking"
            self.thinking.show_text(f"{words}, {len(thinking):,} characters", lambda: self.view.thinking)
        is_whole = self._show_calls() and self._show_answer()
        self._show_status()
        self.is_changed = not is_whole
        pause = max(REDRAW_SECONDS, REDRAW_SHARE * (time.thread_time() - began))
        self._next_drawing = now + pause if is_whole else now
        return True

    # Parts

    def _show_question(self) -> None:
        text = self.view.query or ""
        if text != self.asked.text():
            self.asked.setText(text)
            measure = self.asked.fontMetrics()
            widest = max((measure.horizontalAdvance(line[:200]) for line in text.splitlines()), default=0)
            self.asked.setMinimumWidth(min(widest + 4, MEASURE // 2))

    def _show_calls(self) -> bool:
        """Draw some calls of tools; returns whether these were all."""
        before = len(self._calls)
        calls = self.view.calls if self.view.response is None else self.view.response.tool_calls
        for call in calls:
            told = call if isinstance(call, dict) else call.model_dump(mode="json")  # as it was, or in the answer
            call_id, state = told["call_id"], (told.get("result") is None, told.get("error") is None, "args" in told)
            if self._call_states.get(call_id) == state:
                continue
            card = self._calls.get(call_id)
            if card is None and len(self._calls) >= before + CALLS_AT_A_TICK:
                return False
            self._call_states[call_id] = state
            if card is None:
                card = self._calls[call_id] = Folded(told["tool"], f"Call of {told['tool']}")
                self._call_column.addWidget(card)
            card.show_text(call_title(told), partial(call_text, told))
        return True

    def _show_answer(self) -> bool:
        """Draw the next part of the answer; returns whether that was the last one."""
        answer = self.view.answer
        if not answer.startswith(self._whole):  # a later attempt, or the recorded answer after a loss
            self._whole = ""
            for chunk in self.chunks:
                chunk.hide()
                chunk.deleteLater()
            self.chunks = []
        left = answer[len(self._whole) :]
        *whole, last = chunks_of(left) or [""]
        if whole or last:
            part = whole[0] if whole else last
            self._chunk().show_markdown(part)
            self._is_last_whole = bool(whole)
            self._whole += part if whole else ""
        return not whole

    def _chunk(self) -> MarkdownView:
        """The part to draw: the last one, unless that is whole."""
        if self._is_last_whole or not self.chunks:
            chunk = MarkdownView(f"Answer to: {(self.view.query or '')[:80]}")
            self.chunks.append(chunk)
            self._answer.addWidget(chunk)
        return self.chunks[-1]

    def _show_status(self) -> None:
        view, tone = self.view, "faint"
        if view.failure is not None:
            text, tone = f"✕ {view.failure}", "bad"
        elif view.response is None:
            text = f"… {self._doing}"
        elif view.response.status != "answered":
            text = f"{view.response.status}: {view.response.error.message if view.response.error else 'no answer'}"
            tone = "bad" if view.response.status == "failed" else "warn"
        else:
            text = "\n".join(f"⚠ {each}" for each in view.response.degraded)
            tone = "warn"
        self.status.setText(text)
        self.status.setVisible(bool(text))
        if self.status.property("tone") != tone:
            self.status.setProperty("tone", tone)
            self.status.style().polish(self.status)
        self.stop.setVisible(not view.ended)
        self.retry.setVisible(view.failure is not None or (view.response is not None and not view.response.answer))
        is_answered = view.response is not None and bool(view.response.answer)
        for button in (self.good, self.poor, self.copy):
            button.setVisible(is_answered)
        self._show_judgements()

    def _show_judgements(self) -> None:
        judged = self.view.judgements.as_json()
        self.good.setChecked(judged["rating"] == 1)
        self.poor.setChecked(judged["rating"] == -1)
        critique, pairwise, response = judged["critique"], judged["pairwise"], self.view.response
        score = None if critique is None else critique["score"]
        self.grade.setVisible(critique is not None)
        if critique is not None:
            self.grade.setText(stars(score) if score else f"☆ {critique['status']}")
            self.grade.setToolTip(critique["feedback"] or "The critic's grade")
            self.grade.setProperty("tone", tone_of(score))
            self.grade.style().polish(self.grade)
        facts = [] if pairwise is None or pairwise["winner"] is None else [winner_told(pairwise["winner"])]
        if response is not None:
            facts += [response.model, f"{response.usage.prompt_tokens:,} + {response.usage.completion_tokens:,} tokens"]
        facts.append(self.view.query_id[:8])
        self.facts.setText("  ·  ".join(filter(None, facts)))

    def _make_line(self) -> None:
        line = styled(QFrame(), "line")
        self._row = QHBoxLayout(line)
        self._row.setContentsMargins(0, 6, 0, 0)
        self._row.setSpacing(6)
        self.grade = label("", "good", font=mono())
        self.grade.setAccessibleName("The critic's grade")
        self.stop = push_button("Stop", "quiet", "Stop this answer", self._stop, "Stop this answer")
        self.facts = label("", "faint", font=mono(9))
        self.facts.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        self.facts.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)  # it may be cut
        for widget in (self.grade, self.stop):
            self._row.addWidget(widget)
            widget.hide()
        self._row.addWidget(self.facts, 1)
        self._column.addWidget(line)

    def _make_acts(self) -> None:
        self.good = push_button(f"{sign('👍', '▲')} Good", "quiet", "Good answer", lambda: self._rate(1))
        self.poor = push_button(f"{sign('👎', '▼')} Poor", "quiet", "Poor answer", lambda: self._rate(-1))
        for button in (self.good, self.poor):
            button.setCheckable(True)
        self.copy = push_button("Copy", "quiet", "Copy the answer", self._copy)
        self.retry = push_button("Ask again", "quiet", "Ask this question again", self._ask_again)
        for place, button in enumerate((self.good, self.poor, self.copy, self.retry), 1):
            self._row.insertWidget(place, button)
            button.hide()

    def _make_thinking(self) -> None:
        self.thinking = Folded("thinking", "Thinking")
        self.thinking.hide()
        self._think_column.addWidget(self.thinking)

    # Acts

    def _rate(self, rating: Literal[-1, 1]) -> None:
        withdrawn = self.view.judgements.as_json()["rating"] == rating
        message = UserFeedback(
            query_id=self.view.query_id, respondent_id=MAIN_RESPONDENT, rating=None if withdrawn else rating,
            rated_at=time.time(),
        )  # fmt: skip
        trace = self.view.answers.get(MAIN_RESPONDENT)
        envelope_id = self._feed.publish(message, trace)
        self.view.judgements.receive(message, envelope_id)  # shown at once; the message that comes back is the same
        self.is_changed = True
        self._show_judgements()

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.view.answer)

    def _ask_again(self) -> None:
        self._again(self.view.query or "")

    def _stop(self) -> None:
        self._feed.publish(QueryCancel(query_id=self.view.query_id), Trace(self.view.query_id))


class ApprovalCard(QFrame):
    """A request to a person: a call that needs approval, a question of the model, or a plan. `decide` sends the
    decision. It never takes the focus by itself, so that a key typed for the question never answers it.
    """

    def __init__(self, asked: ApprovalRequest, decide: Callable[..., object], *, is_elsewhere: bool) -> None:
        super().__init__()
        styled(self, "approval")
        self.asked = asked
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 10, 14, 10)
        where = "  (in another conversation)" if is_elsewhere else ""
        head = label(f"{heading(asked)}{where}", font=prose(), wraps=True)
        named(self, head.text())
        column.addWidget(head)
        if text := effect_of(asked):
            effect = named(QPlainTextEdit(text), f"What {asked.tool} would do")
            effect.setReadOnly(True)
            effect.setTabChangesFocus(True)
            effect.setFont(mono())
            lines = min(12, max(2, text.count("\n") + len(text) // 90 + 1))
            effect.setFixedHeight(lines * effect.fontMetrics().lineSpacing() + 12)
            column.addWidget(effect)
        if asked.why:
            column.addWidget(label(visible(asked.why), "soft", wraps=True))
        if asked.sources:
            text = f"This conversation contains untrusted content from {', '.join(asked.sources)}."
            column.addWidget(label(visible(text), "warn", wraps=True))
        row = QHBoxLayout()
        self.answer: QLineEdit | None = None
        if asked.tool in (CLARIFICATION, PROPOSE_PLAN):
            self.answer = named(QLineEdit(), "Your answer" if asked.tool == CLARIFICATION else "What to change")
            self.answer.setPlaceholderText(self.answer.accessibleName())
            row.addWidget(self.answer, 1)
        self.buttons: list[QPushButton] = []
        for text, decision, mode in choices_of(asked):
            kind = "accent" if decision == "allow" and mode is None else ""
            pressed = partial(self._decide, decide, decision, mode)
            button = push_button(text, kind, f"{text}: {asked.tool}", pressed)
            button.setAutoDefault(False)
            self.buttons.append(button)
            row.addWidget(button)
        row.addStretch(0 if self.answer else 1)
        column.addLayout(row)
        self.trouble = label("", "bad", wraps=True)
        self.trouble.hide()
        column.addWidget(self.trouble)

    def refused(self, error: str) -> None:
        """The decision was not accepted."""
        self.trouble.setText(error)
        self.trouble.show()
        for button in self.buttons:
            button.setEnabled(True)

    def _decide(self, decide: Callable[..., object], decision: Decision, mode: PlanMode | None) -> None:
        text = self.answer.text().strip() if self.answer is not None else ""
        if self.asked.tool == CLARIFICATION and decision == "allow" and not text:
            return
        for button in self.buttons:
            button.setEnabled(False)
        decide(self, decision, text or None, mode)


class Composer(QFrame):
    """The field for a question. Enter sends it, Shift+Enter begins a new line."""

    sent = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        styled(self, "composer")
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 8, 8)
        column.setSpacing(4)
        self.text = named(QPlainTextEdit(), "Question")
        self.text.setPlaceholderText("Ask anything")
        self.text.setFont(prose())
        self.text.setTabChangesFocus(True)
        self.text.setFixedHeight(46)
        self.text.installEventFilter(self)
        self.text.textChanged.connect(self._changed)
        column.addWidget(self.text)
        row = QHBoxLayout()
        row.addWidget(label("Enter sends, Shift+Enter begins a line", "faint", font=prose(9)))
        row.addStretch(1)
        self.send = push_button("Send", "accent", "Send the question", self._send)
        row.addWidget(self.send)
        column.addLayout(row)
        self._changed()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Send on Enter; show where the focus is."""
        if event.type() in (QEvent.Type.FocusIn, QEvent.Type.FocusOut):
            self.setProperty("active", event.type() == QEvent.Type.FocusIn)
            self.style().polish(self)
        if event.type() == QEvent.Type.KeyPress:
            key = cast(QKeyEvent, event)
            is_enter = key.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
            if is_enter and not key.modifiers() & Qt.KeyboardModifier.ShiftModifier:
                self._send()
                return True
        return super().eventFilter(watched, event)

    def _changed(self) -> None:
        self.send.setEnabled(bool(self.text.toPlainText().strip()))
        lines = min(6, max(2, self.text.document().blockCount()))
        self.text.setFixedHeight(lines * self.text.fontMetrics().lineSpacing() + 12)

    def _send(self) -> None:
        text = self.text.toPlainText().strip()
        if text:
            self.text.clear()
            self.sent.emit(text)


class Conversation(QFrame):
    """One conversation with its turns, and the approvals that wait in any conversation."""

    def __init__(self, feed: BusFeed) -> None:
        super().__init__()
        styled(self, "talk")
        self._feed = feed
        self.session_id = new_id()
        self.turns: OrderedDict[str, Turn] = OrderedDict()
        self.cards: dict[str, ApprovalCard] = {}
        self._settled: set[str] = set()  # approvals that were decided
        self._unread = deque[Envelope]()  # of the journal, still to be folded
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._make_bar())
        self.notice = named(label("", wraps=True), "Notice")
        styled(self.notice, "notice").hide()
        column.addWidget(self.notice)
        self.area = named(QScrollArea(), "Conversation")
        self.area.setWidgetResizable(True)
        self.area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        sheet = styled(QWidget(), "sheet")
        across = QHBoxLayout(sheet)
        across.setContentsMargins(24, 20, 24, 8)
        page = QWidget()
        page.setMaximumWidth(MEASURE)
        self._page = QVBoxLayout(page)
        self._page.setContentsMargins(0, 0, 0, 0)
        self._page.setSpacing(0)
        self.empty = label("Ask anything. The answer, its thinking and its tools appear here.", "faint", font=prose())
        self._page.addWidget(self.empty)
        self._page.addStretch(1)
        across.addStretch(1)
        across.addWidget(page, 100)
        across.addStretch(1)
        self.area.setWidget(sheet)
        bar = self.area.verticalScrollBar()
        bar.rangeChanged.connect(self._keep_at_end)
        bar.valueChanged.connect(self._scrolled)
        self._is_at_end = True
        column.addWidget(self.area, 1)
        foot = QWidget()
        self._foot = QVBoxLayout(foot)
        self._foot.setContentsMargins(24, 4, 24, 16)
        self._foot.setSpacing(8)
        self.composer = Composer()
        self.composer.sent.connect(self.ask)
        self._foot.addWidget(self.composer)
        column.addWidget(foot)

    # What the window does with it

    def ask(self, text: str) -> str:
        """Ask a question in this conversation; returns its query_id."""
        query_id = new_id()
        message = QueryReceived(query_id=query_id, query=text, session_id=self.session_id)
        trace = Trace(query_id, None, self.session_id)
        turn = self._begin(query_id, text)
        self._feed.publish(message, trace, turn.stored, envelope_id=query_envelope_id(query_id))
        self._is_at_end = True
        return query_id

    def begin_new(self) -> None:
        """Begin another conversation."""
        self.clear()
        self.session_id = new_id()
        self.title.setText("New conversation")
        self.composer.text.setFocus()

    def clear(self) -> None:
        """Remove what is shown. Nothing is deleted."""
        self._unread.clear()
        for turn in self.turns.values():
            turn.hide()
            turn.deleteLater()
        self.turns.clear()
        self.empty.show()
        self.gauge.hide()

    def open(self, session_id: str) -> None:
        """Show a conversation as it is recorded."""
        self.clear()
        self.session_id = session_id
        self.title.setText(f"Conversation {session_id[:8]}")
        self.read_again()

    def read_again(self) -> None:
        """Read what was recorded meanwhile: messages may have been lost."""
        request = JournalRead(subjects=RECORDED, session_id=self.session_id, before=LATEST, limit=1000)
        session_id = self.session_id

        def receive(found: list[Envelope] | LocalError) -> None:
            if isinstance(found, LocalError):
                if not self.turns:
                    self.empty.setText(f"What was said before could not be read: {found}")
            elif session_id == self.session_id:
                self._unread.extend(reversed(found))

        self._feed.read(request, receive, most=KEPT_MESSAGES)
        self._feed.request(PermissionRequest(verb="list"), PermissionResult, self._list_approvals)

    def open_last(self) -> None:
        """Show the conversation of the latest question on record."""

        def receive(found: list[Envelope] | LocalError) -> None:
            if isinstance(found, list) and found and not self.turns:
                self.open(found[0].session_id or found[0].correlation_id)

        # asked by the user of this machine in person, not by a schedule or an agent
        request = JournalRead(subjects=(QueryReceived.subject,), before=LATEST, limit=20)
        self._feed.read(request, lambda found: receive(own_questions(found)), most=20)

    def receive(self, batch: Sequence[Envelope]) -> None:
        """See `FeedView`."""
        for envelope in batch:
            if kind_of(envelope.subject) is not None:
                self._fold(envelope)

    def refresh(self) -> None:
        """Draw what has changed, as far as a tick allows."""
        began, now = time.thread_time(), time.monotonic()
        while self._unread and time.thread_time() - began < REFRESH_SECONDS:
            self._fold(self._unread.popleft())
        if self._unread:
            return
        for turn in list(self.turns.values()):
            if turn.is_changed:
                turn.refresh(now)
                if time.thread_time() - began > REFRESH_SECONDS:
                    return
        self._show_gauge()

    def show_notice(self, text: str) -> None:
        """Show a sentence above the conversation for as long as it is true; empty to remove it."""
        if text != self.notice.text():
            self.notice.setText(text)
            self.notice.setVisible(bool(text))

    # Messages

    def _fold(self, envelope: Envelope) -> None:
        turn = self.turns.get(envelope.correlation_id)
        if turn is None and envelope.subject == QueryReceived.subject:
            message = message_of(QueryReceived, envelope, self._feed.blobs)
            if message is not None and (envelope.session_id or message.query_id) == self.session_id:
                turn = self._begin(message.query_id, message.query)
        if turn is not None:
            turn.receive(envelope)
        if envelope.subject == ApprovalRequest.subject:
            asked = message_of(ApprovalRequest, envelope, self._feed.blobs)
            if asked is not None:
                self._show_approval(asked)
        elif envelope.subject == ApprovalDecision.subject:
            decided = message_of(ApprovalDecision, envelope, self._feed.blobs)
            if decided is not None:
                self._remove_approval(decided.call_id)

    def _begin(self, query_id: str, text: str) -> Turn:
        if query_id in self.turns:
            return self.turns[query_id]
        turn = Turn(QueryView(query_id, text, self.session_id), self._feed, self.ask)
        self.turns[query_id] = turn
        self._page.insertWidget(self._page.count() - 1, turn)
        self.empty.hide()
        if len(self.turns) == 1:
            self.title.setText(" ".join(text.split())[:90])
        while len(self.turns) > KEPT_TURNS:
            _, oldest = self.turns.popitem(last=False)
            oldest.hide()
            oldest.deleteLater()
        return turn

    # Approvals

    def _list_approvals(self, result: PermissionResult | LocalError) -> None:
        if isinstance(result, LocalError):
            return
        waiting = {asked.call_id for asked in result.waiting}
        for call_id in [each for each in self.cards if each not in waiting]:
            self._remove_approval(call_id)
        for asked in result.waiting:
            self._show_approval(asked)

    def _show_approval(self, asked: ApprovalRequest) -> None:
        if asked.call_id in self.cards or asked.call_id in self._settled or asked.expires_at < time.time():
            return
        is_elsewhere = self.session_id not in (asked.session_id, asked.root_session_id)
        card = self.cards[asked.call_id] = ApprovalCard(asked, self._decide, is_elsewhere=is_elsewhere)
        self._foot.insertWidget(self._foot.count() - 1, card)

    def _remove_approval(self, call_id: str) -> None:
        self._settled.add(call_id)
        card = self.cards.pop(call_id, None)
        if card is not None:
            focused = self.focusWidget()
            had_focus = focused is not None and card.isAncestorOf(focused)
            card.hide()
            card.deleteLater()
            if had_focus:
                self.composer.text.setFocus()

    def _decide(self, card: ApprovalCard, decision: Decision, answer: str | None, mode: PlanMode | None) -> None:
        request = PermissionRequest(
            verb="decide", call_id=card.asked.call_id, decision=decision, by="desktop", answer=answer, mode=mode
        )

        def receive(result: PermissionResult | LocalError) -> None:
            error = str(result) if isinstance(result, LocalError) else result.error.message if result.error else ""
            if error and card.asked.call_id in self.cards:
                card.refused(error)
            elif not error:
                self._remove_approval(card.asked.call_id)

        self._feed.request(request, PermissionResult, receive)

    # The frame

    def _make_bar(self) -> QFrame:
        bar = styled(QFrame(), "bar")
        row = QHBoxLayout(bar)
        row.setContentsMargins(24, 10, 24, 10)
        self.title = label("New conversation", font=prose())
        font = prose()
        font.setWeight(font.Weight.DemiBold)
        self.title.setFont(font)
        self.title.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        row.addWidget(self.title, 1)
        self.context = label("", "faint", font=mono(9))
        self.context.setMinimumWidth(0)
        row.addWidget(self.context)
        self.gauge = named(QProgressBar(), "Context in use")
        self.gauge.setTextVisible(False)
        self.gauge.setFixedSize(96, 6)
        self.gauge.hide()
        row.addWidget(self.gauge)
        return bar

    def _show_gauge(self) -> None:
        for turn in reversed(self.turns.values()):
            response = turn.view.response
            if response is not None and response.usage.context is not None:
                used, limit = response.usage.context.used, max(1, response.usage.context.limit)
                self.gauge.setRange(0, limit)
                self.gauge.setValue(min(used, limit))
                self.gauge.show()
                self.context.setText(f"{used:,} of {limit:,} tokens")
                return
        self.context.setText("")

    def _scrolled(self, value: int) -> None:
        self._is_at_end = value >= self.area.verticalScrollBar().maximum() - 8

    def _keep_at_end(self, least: int, most: int) -> None:
        if self._is_at_end:
            self.area.verticalScrollBar().setValue(most)


# Words


def own_questions(found: list[Envelope] | LocalError) -> list[Envelope] | LocalError:
    """Return the questions that the owner asked in person."""
    if isinstance(found, LocalError):
        return found
    asked = ((envelope, message_of(QueryReceived, envelope)) for envelope in found)
    return [
        envelope
        for envelope, message in asked
        if message is not None and message.origin == "user" and message.task is None and envelope.user_id is None
    ]


def chunks_of(answer: str) -> list[str]:
    """Split an answer between paragraphs into parts of about a thousand characters: only the last part of an answer
    that grows is drawn again.
    """
    parts, at, begun, fenced = list[str](), 0, 0, False
    for paragraph in answer.split("\n\n"):
        at += len(paragraph) + 2
        fenced ^= paragraph.count("```") % 2 == 1
        if at - begun > CHUNK and not fenced and at < len(answer):
            parts.append(answer[begun:at])
            begun = at
    return [*parts, answer[begun:]] if begun < len(answer) else parts


def call_title(call: Json) -> str:
    """Return a tool call in one line."""
    first = next((str(value) for value in (call.get("args") or {}).values()), "")
    mark = "✕" if call.get("error") else "●" if call.get("result") is not None else "…"
    took = f"  {call['duration_ms'] / 1000:.1f} s" if call.get("duration_ms") else ""
    return f"{mark} {call['tool']}  {' '.join(first[:200].split())[:80]}{took}"


def call_text(call: Json) -> str:
    """Return the arguments and the result of a tool call."""
    error, result = call.get("error"), call.get("result")
    told = error["message"] if error else result if result is not None else "no result yet"
    return f"{json.dumps(call.get('args') or {}, ensure_ascii=False, indent=1)}\n\n{told}"


def heading(asked: ApprovalRequest) -> str:
    """Return what a person is asked, in one line."""
    whose = f"The agent {asked.agent}: " if asked.agent else f"{asked.client}: " if asked.client else ""
    if asked.tool == CLARIFICATION:
        told = asked.args.get("question", "The model asks you something.")
    elif asked.tool == PROPOSE_PLAN:
        told = f"A plan: {asked.args.get('title', '')}"
    elif asked.tool == TRUST_FOLDER:
        told = f"Do you trust {asked.args.get('folder', '')}?"
    else:
        told = f"{asked.tool} needs your approval"
    return visible(f"{whose}{told}")


def effect_of(asked: ApprovalRequest) -> str:
    """Return what the call would do: all of its arguments, with invisible characters as codes."""
    if asked.tool == CLARIFICATION:
        options = asked.args.get("options")
        lines = [f"• {each}" for each in options] if isinstance(options, list) else []
    elif asked.tool == PROPOSE_PLAN:
        steps = asked.args.get("steps")
        lines = [f"{number}. {each}" for number, each in enumerate(steps, 1)] if isinstance(steps, list) else []
    else:
        lines = [line for name, value in asked.args.items() for line in f"{name}: {value}".split("\n")]
    return "\n".join(map(visible, lines))


def choices_of(asked: ApprovalRequest) -> list[tuple[str, Decision, PlanMode | None]]:
    """Return the words of the buttons of a request, each with its decision and, for a plan, the mode."""
    if asked.tool == CLARIFICATION:
        return [("Skip", "deny", None), ("Answer", "allow", None)]
    if asked.tool == PROPOSE_PLAN:
        return [
            ("Reject", "deny", None), ("Approve, and change files without asking", "allow", "acceptEdits"),
            ("Approve", "allow", None),
        ]  # fmt: skip
    if asked.tool == TRUST_FOLDER:
        return [("Do not trust it", "deny", None), ("Trust it", "allow", None)]
    return [
        ("Deny", "deny", None),
        ("Allow in this conversation", "allow_session", None),
        ("Allow once", "allow", None),
    ]


def winner_told(winner: str) -> str:
    """Return the result of a comparison."""
    return "a tie with B" if winner == "tie" else f"{winner} won against {'A' if winner == 'B' else 'B'}"
