"""The bus in words: a line for each message, what the model thinks, and what happens to the system."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

from pydantic_core import from_json
from PySide6.QtWidgets import QPlainTextEdit

from local.bus.envelope import Envelope
from local.bus.filter import Filter
from local.bus.message import GENERATION_THINKING, GENERATION_TOKEN, MAIN_RESPONDENT
from local.desktop.style import mono, named, prose
from local.queries.view import message_summary

ANSWER = 80  # characters of an answer in a line
PARSED = 64 * 1024  # bytes; a larger payload is not summed up
THINKING_BLOCKS, WAITING_PIECES, AT_A_TICK = 5_000, 20_000, 200
_MARKS = (  # before the line of a message
    ("bus.gap", "△ "), ("bus.dead", "△ "), ("bus.rejected", "△ "), ("query.failed", "△ "),
    ("tool.request.", "→ "), ("tool.result.", "← "), ("approval.request", "? "), ("generation.thinking", "◈ "),
    ("critique.result", "★ "), ("pairwise.result", "★ "),
)  # fmt: skip
EVENTS = Filter(
    "subject:agent.transition,agent.changed,query.received,query.accepted,query.failed,query.cancel,bus.gap,bus.dead"
    ",bus.rejected,approval.,question.,settings.changed,config.changed,model.progress,cron.,participant.command"
)


def bus_line(envelope: Envelope) -> str:
    """Return a message in one line (BusLogger): of an answer its beginning, whether the model has thought, and how many
    tools it has called; of every other message what its payload says.
    """
    subject, payload = envelope.subject, envelope.payload
    if len(payload) > PARSED:
        return f"{len(payload):,} bytes"
    mark = next((mark for known, mark in _MARKS if subject.startswith(known)), "")
    if subject == "response.generation":
        return _answer_line(payload)
    if subject in (GENERATION_THINKING, GENERATION_TOKEN):
        return mark + _fragment(payload)
    return mark + (message_summary(subject, payload) or "")


def _fragment(payload: bytes) -> str:
    try:
        return " ".join(str(from_json(payload).get("text", "")).split())
    except (ValueError, AttributeError):
        return ""


def _answer_line(payload: bytes) -> str:
    try:
        value = from_json(payload)
        answer, calls = str(value.get("answer") or ""), value.get("tool_calls") or []
    except (ValueError, AttributeError):
        return ""
    shown = answer[:ANSWER].replace("\n", " ") + ("…" if len(answer) > ANSWER else "")
    thought = "◈ thinking" if value.get("thinking") else ""
    called = f"⚙ {len(calls)} tool call(s)" if calls else ""
    status = "" if value.get("status") in (None, "answered") else str(value["status"])
    return "  ".join(each for each in (status, shown, thought, called) if each)


class _Thought(NamedTuple):
    speaker: tuple[str, str]  # query and attempt
    at: float
    text: str


class ThinkingLogger(QPlainTextEdit):
    """The log of the model's thinking, as it arrives. Only the main respondent's is shown: the answers of the others
    appear only in comparisons.
    """

    def __init__(self) -> None:
        super().__init__()
        named(self, "What the model thinks")
        self.setReadOnly(True)
        self.setTabChangesFocus(True)
        self.setMaximumBlockCount(THINKING_BLOCKS)
        self.setFont(prose(10.5))
        self.setPlaceholderText("What the model thinks appears here.")
        self._new = deque[_Thought](maxlen=WAITING_PIECES)
        self._speaker = ("", "")

    def receive(self, batch: Sequence[Envelope]) -> None:
        """See `FeedView`."""
        for envelope in batch:
            if envelope.subject == GENERATION_THINKING and (thought := _thought(envelope)):
                self._new.append(thought)

    def refresh(self) -> None:
        """Draw some of what is new."""
        if not self._new or not self.isVisible():
            return
        pieces: list[str] = []
        for _ in range(min(AT_A_TICK, len(self._new))):
            thought = self._new.popleft()
            if thought.speaker != self._speaker:
                query, attempt = self._speaker = thought.speaker
                head = time.strftime("%H:%M:%S", time.localtime(thought.at))
                again = "" if attempt == "1" else f", attempt {attempt}"
                gap = "\n\n" if pieces or not self.document().isEmpty() else ""
                pieces.append(f"{gap}{head}  ◈ query {query[:8]}{again}\n")
            pieces.append(thought.text)
        bar = self.verticalScrollBar()
        before, was_at_end = bar.value(), bar.value() >= bar.maximum() - 2
        cursor = self.textCursor()
        cursor.movePosition(cursor.MoveOperation.End)
        cursor.insertText("".join(pieces))
        bar.setValue(bar.maximum() if was_at_end else before)


def _thought(envelope: Envelope) -> _Thought | None:
    try:
        value = from_json(envelope.payload)
        if value.get("respondent_id", MAIN_RESPONDENT) != MAIN_RESPONDENT:
            return None
        speaker = (envelope.correlation_id, str(value.get("attempt", 1)))
        return _Thought(speaker, envelope.sent_at, str(value.get("text", "")))
    except (ValueError, AttributeError):
        return None


class EventLogger(QPlainTextEdit):
    """The log of events, a line each: changes of state, approvals, lost messages, settings. What
    arrives while it is hidden is drawn when it is shown; events without room are counted.
    """

    def __init__(self) -> None:
        super().__init__()
        named(self, "Events")
        self.setReadOnly(True)
        self.setTabChangesFocus(True)
        self.setMaximumBlockCount(THINKING_BLOCKS)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.setFont(mono())
        self.setPlaceholderText("Changes of state, approvals, losses and settings appear here.")
        self._new = deque[Envelope]()
        self._left_out = 0

    def receive(self, batch: Sequence[Envelope]) -> None:
        """See `FeedView`."""
        self._new.extend(filter(EVENTS.matches, batch))
        while len(self._new) > WAITING_PIECES:
            self._new.popleft()
            self._left_out += 1

    def refresh(self) -> None:
        """Draw some of what is new."""
        if not self._new or not self.isVisible():
            return
        lines = [f"… {self._left_out:,} events left out"] if self._left_out else []
        self._left_out = 0
        lines += [event_line(self._new.popleft()) for _ in range(min(AT_A_TICK // 5, len(self._new)))]
        bar = self.verticalScrollBar()
        before, was_at_end = bar.value(), bar.value() >= bar.maximum() - 2
        self.appendPlainText("\n".join(lines))
        bar.setValue(bar.maximum() if was_at_end else before)


def event_line(envelope: Envelope) -> str:
    """Return an event in one line (EventLogger)."""
    at = time.strftime("%H:%M:%S", time.localtime(envelope.sent_at))
    query = envelope.correlation_id[:8]
    return f"{at}  {query:<8}  {envelope.sender:<12}  {envelope.subject:<20}  {bus_line(envelope)}".rstrip()
