"""Who takes part, and a panel for each: what it does, its state, and its settings."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QHBoxLayout,
    QHeaderView,
    QPlainTextEdit,
    QTableWidget,
    QTableWidgetItem,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from local.bus.envelope import Envelope
from local.bus.message import PARTICIPANT_STATUS, TOOL_REQUEST, TOOL_RESULT
from local.bus.messages import (
    SUPERVISOR,
    ControlVerb,
    ParticipantRequest,
    ParticipantResult,
    ParticipantStatus,
    ToolSchema,
)
from local.core.errors import LocalError
from local.desktop.bus_feed import BusFeed, message_of
from local.desktop.settings_form import SettingsForm, SettingsSource
from local.desktop.style import label, mono, named, push_button
from local.journal.messages import JournalRead
from local.queries.view import message_summary

KEPT_LINES = 2_000
KEPT_MESSAGES = 300  # of each participant, for a panel that is opened later
AT_ONCE = 40  # lines
DRAW_SECONDS = 0.25  # between two drawings of lines
READ_AGAIN = 100  # messages on record, for a panel that is opened
LATEST = 2**62
SILENT_SECONDS = 15.0  # without a status
UPKEEP = (PARTICIPANT_STATUS, "journal.", "model.lease.", "blob.")  # most of the traffic, and tells nothing of the work


@dataclass(slots=True)
class Person:
    """One participant, or one tool, as the window knows it. `since` is when its state began, as far as it was seen."""

    name: str
    is_tool: bool = False
    of: str = ""  # of a tool: the participant that serves it
    state: str = "unknown"
    since: float = 0.0
    pid: int | None = None
    restarts: int = 0
    restarted_at: float = 0.0
    detail: str = ""
    is_child: bool = False  # of the supervisor, which can restart it
    inflight: int = 0
    heard_at: float = 0.0
    facts: dict[str, str] = field(default_factory=dict)
    said: frozenset[str] = frozenset()  # subjects
    latest: deque[Envelope] = field(default_factory=lambda: deque(maxlen=KEPT_MESSAGES))
    count: int = 0  # messages so far

    def note(self, envelope: Envelope) -> None:
        """Keep a message of it, or for it."""
        self.latest.append(envelope)
        self.count += 1

    def since_count(self, count: int) -> list[Envelope]:
        """Return the messages after so many, as far as they are kept."""
        new = min(self.count - count, len(self.latest))
        return list(islice(self.latest, len(self.latest) - new, None)) if new else []

    @property
    def code(self) -> str:
        """Return two letters: of two words their first ones, else the first two."""
        first, *more = self.name.split("_")
        return (first[:1].upper() + more[0][:1]) if more else self.name[:2].capitalize()

    @property
    def is_well(self) -> bool:
        """Whether it works."""
        return self.state == "ready"

    def change(self, state: str, now: float) -> None:
        """Note its state."""
        if state != self.state:
            self.state, self.since = state, now


class People:
    """Everybody who takes part, from their statuses and the supervisor's, and the tools, from their schemas. `changed`
    are the names whose state is new since it was last emptied."""

    def __init__(self) -> None:
        self.all: OrderedDict[str, Person] = OrderedDict()
        self.changed: set[str] = set()
        self.problem = ""

    def get(self, name: str) -> Person:
        """Return one of them, who need not be known yet."""
        if name not in self.all:
            self.all[name] = Person(name)
            self.changed.add(name)
        return self.all[name]

    def receive(self, batch: Sequence[Envelope]) -> None:
        """See `FeedView`."""
        for envelope in batch:
            subject = envelope.subject
            if subject == PARTICIPANT_STATUS:
                status = message_of(ParticipantStatus, envelope)
                if status is not None:
                    self._heard(status)
            elif subject == ToolSchema.subject:
                self._learn(envelope)
            elif not subject.startswith(UPKEEP):
                self._note(envelope)

    def learn(self, found: list[Envelope] | LocalError) -> None:
        """Take the schemas of tools that are on record."""
        for envelope in found if isinstance(found, list) else ():
            self._learn(envelope)

    def silence(self, now: float) -> None:
        """Note who has said nothing for long, and whose state nobody else reports."""
        for person in self.all.values():
            if person.heard_at and not person.is_child and now - person.heard_at > SILENT_SECONDS:
                if person.state != "silent":
                    self.changed.add(person.name)
                person.change("silent", person.heard_at)

    def _note(self, envelope: Envelope) -> None:
        sender = self.all.get(envelope.sender)
        if sender is not None:
            sender.note(envelope)
        for family in (TOOL_REQUEST, TOOL_RESULT):
            if envelope.subject.startswith(family):
                tool = self.all.get(envelope.subject.removeprefix(family))
                if tool is not None and tool is not sender:
                    tool.note(envelope)

    def _learn(self, envelope: Envelope) -> None:
        schema = message_of(ToolSchema, envelope)
        if schema is not None and schema.tool not in self.all:
            person = self.get(schema.tool)
            person.is_tool, person.of = True, envelope.sender
            person.facts = {"description": schema.description, "served by": envelope.sender, "safety": schema.safety}

    def _heard(self, status: ParticipantStatus) -> None:
        now = time.time()
        person = self.get(status.name)
        before = (person.state, person.inflight)
        person.is_tool, person.pid, person.inflight, person.heard_at = False, status.pid, status.inflight, now
        person.facts = {"kind": status.kind, **status.details, **{k: f"{v:,}" for k, v in status.counters.items() if v}}
        person.said = frozenset(status.last_seq)
        if not person.is_child or status.state == "ready":
            person.change(status.state, now)
        if before != (person.state, person.inflight):
            self.changed.add(person.name)
        if status.name == SUPERVISOR:
            self.problem = status.details.get("problem", "")
            for child in status.children:
                known = self.get(child.name)
                if known.is_child and child.restarts > known.restarts:
                    known.restarted_at = now
                seen = (known.state, known.restarts, known.detail)
                known.is_child, known.restarts, known.detail = True, child.restarts, child.detail
                known.pid = child.pid
                known.change(child.state, now)
                if seen != (known.state, known.restarts, known.detail):
                    self.changed.add(child.name)


class ActivityLog(QPlainTextEdit):
    """The latest messages of one participant, a line each. What arrives while it is hidden is drawn when it is shown;
    messages without room are counted."""

    def __init__(self, name: str) -> None:
        super().__init__()
        named(self, f"Activity of {name}")
        self.setReadOnly(True)
        self.setMaximumBlockCount(KEPT_LINES)
        self.setFont(mono())
        self.setTabChangesFocus(True)
        self.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self._new = deque[Envelope](maxlen=KEPT_MESSAGES)
        self._left_out, self._next_drawing = 0, 0.0

    def add(self, envelopes: Sequence[Envelope]) -> None:
        """Take messages, in their order."""
        self._left_out += max(0, len(self._new) + len(envelopes) - KEPT_MESSAGES)
        self._new.extend(envelopes)

    def replace(self, envelopes: Sequence[Envelope]) -> None:
        """Show these messages instead of all earlier ones."""
        self.clear()
        self._new.clear()
        self.add(envelopes)

    def refresh(self) -> None:
        """Draw some of what is new."""
        now = time.monotonic()
        if not self._new or now < self._next_drawing or not self.isVisible():
            return
        self._next_drawing = now + DRAW_SECONDS
        lines = []
        if self._left_out:
            lines.append(f"          … {self._left_out:,} messages left out")
            self._left_out = 0
        lines += [line_of(self._new.popleft()) for _ in range(min(AT_ONCE, len(self._new)))]
        bar = self.verticalScrollBar()
        was_at_end = bar.value() >= bar.maximum() - 2
        before = bar.value()
        self.appendPlainText("\n".join(lines))
        bar.setValue(bar.maximum() if was_at_end else before)


class StateTable(QTableWidget):
    """The facts of one participant."""

    def __init__(self, name: str) -> None:
        super().__init__(0, 2)
        named(self, f"State of {name}")
        self.setHorizontalHeaderLabels(["Fact", "Value"])
        self.horizontalHeader().setStretchLastSection(True)
        self.horizontalHeader().setDefaultAlignment(Qt.AlignmentFlag.AlignLeft)
        self.horizontalHeader().setSectionResizeMode(0, QHeaderView.ResizeMode.ResizeToContents)
        self.verticalHeader().hide()
        self.verticalHeader().setDefaultSectionSize(24)
        self.setShowGrid(False)
        self.setTabKeyNavigation(False)
        self.setEditTriggers(QTableWidget.EditTrigger.NoEditTriggers)
        self._shown: dict[str, str] = {}

    def show_facts(self, facts: dict[str, str]) -> None:
        """Show these facts."""
        if list(facts) != list(self._shown):
            self.setRowCount(len(facts))
            self._shown = {}
        for row, (name, value) in enumerate(facts.items()):
            if self._shown.get(name) != value:
                self.setItem(row, 0, QTableWidgetItem(name))
                told = QTableWidgetItem(value)
                told.setToolTip(value)
                self.setItem(row, 1, told)
        self._shown = dict(facts)


class ParticipantPanel(QTabWidget):
    """The panel of one participant: *Activity*, *State* and *Settings*."""

    def __init__(self, person: Person, feed: BusFeed, source: SettingsSource | None) -> None:
        super().__init__()
        self.person, self._feed = person, feed
        self.setDocumentMode(True)
        named(self, f"Panel of {person.name}")
        named(self.tabBar(), f"Parts of the panel of {person.name}")
        self.activity = self.make_activity()
        self.addTab(self.activity, "Activity")
        self.state = StateTable(person.name)
        self.addTab(self._with_acts(), "State")
        if source is not None:
            owner = person.of or person.name
            self.settings = SettingsForm(owner, feed, source, lambda: self._control("restart"))
            self.addTab(self.settings, "Settings")
            self.currentChanged.connect(self._turned)
        self._drawn: object = None
        self.read_again()

    def make_activity(self) -> QWidget:
        """Return the first tab."""
        self.log = ActivityLog(self.person.name)
        self._taken = 0
        return self.log

    def read_again(self) -> None:
        """Read what is on record: the panel shows not only what passes from now on."""
        person = self.person
        said = [each for each in sorted(person.said) if not each.startswith(UPKEEP)]
        subjects = (TOOL_REQUEST + person.name, TOOL_RESULT + person.name, *said)[:100]
        request = JournalRead(subjects=subjects, before=LATEST, limit=READ_AGAIN)
        self._feed.read(request, self._read, most=READ_AGAIN)

    def refresh(self) -> None:
        """Draw what is new, if it is visible."""
        if self.person.count != self._taken:
            self.log.add(self.person.since_count(self._taken))
            self._taken = self.person.count
        self.log.refresh()
        self.refresh_state()

    def refresh_state(self) -> None:
        """Draw the participant's state, if it is visible and new."""
        person = self.person
        now = (person.state, person.heard_at, person.restarts, person.detail)
        if now != self._drawn and self.state.isVisible():
            self._drawn = now
            self.state.show_facts(facts_of(person))
        for button, verb in self._buttons:
            button.setEnabled(person.is_child and (verb != "stop" or person.is_well))

    def _read(self, found: list[Envelope] | LocalError) -> None:
        if isinstance(found, list):
            name = self.person.name
            own = [each for each in found if each.sender == name or each.subject.endswith(f".{name}")]
            known = {each.id for each in self.person.latest}
            own = [each for each in own if each.id not in known]
            self.log.replace(sorted([*own, *self.person.latest], key=lambda each: each.sent_at))
            self._taken = self.person.count

    def _turned(self, index: int) -> None:
        if self.widget(index) is self.settings and not self.settings.fields:
            self.settings.load()

    def _with_acts(self) -> QWidget:
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(self.state, 1)
        row = QHBoxLayout()
        row.setContentsMargins(12, 4, 12, 10)
        self.note = named(label("", "soft", wraps=True), f"About {self.person.name}")
        row.addWidget(self.note, 1)
        verbs: tuple[ControlVerb, ...] = ("restart", "stop")
        self._buttons = []
        for verb in verbs:
            name = f"{verb.capitalize()} {self.person.of or self.person.name}"
            button = push_button(verb.capitalize(), "", name, partial(self._control, verb))
            self._buttons.append((button, verb))
            row.addWidget(button)
        column.addLayout(row)
        return page

    def _control(self, verb: ControlVerb) -> None:
        def receive(result: ParticipantResult | LocalError) -> None:
            error = result if isinstance(result, LocalError) else result.error
            self.note.setText(f"It could not {verb}: {getattr(error, 'message', error)}" if error else "")

        self.note.setText(f"{verb} …")
        request = ParticipantRequest(verb=verb, name=self.person.of or self.person.name)
        self._feed.request(request, ParticipantResult, receive, seconds=30.0)


def facts_of(person: Person) -> dict[str, str]:
    """Return what is known of a participant, by name, for a table."""
    known = {
        "state": person.state,
        "since": clock(person.since) if person.since else "",
        "process": str(person.pid or ""),
        "in hand": str(person.inflight),
        "restarts": str(person.restarts) if person.is_child else "",
        "last end": person.detail,
    }
    if person.is_tool:
        known = {}
    return {**{name: value for name, value in known.items() if value}, **person.facts}


def line_of(envelope: Envelope) -> str:
    """Return a message in one line."""
    return f"{clock(envelope.sent_at)}  {envelope.subject}  {message_summary(envelope.subject, envelope.payload) or ''}"


def clock(at: float) -> str:
    """Return the time of day."""
    return time.strftime("%H:%M:%S", time.localtime(at))
