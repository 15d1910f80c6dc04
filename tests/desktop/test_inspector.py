"""The inspector of the desktop window: filter, table, message, sources, colours, publishing; and the loggers."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QDialog, QWidget

from local.bus.envelope import Envelope
from local.bus.filter import Filter
from local.bus.message import ErrorInfo, Message, message_classes
from local.bus.messages import (
    AgentTransition,
    BusDead,
    BusGap,
    GenerationThinking,
    ParticipantStatus,
    QueryCancel,
    QueryFailed,
    QueryReceived,
    ResponseGeneration,
    ToolCallRecord,
    ToolRequest,
    ToolResult,
)
from local.bus.security import Declaration, Declarations
from local.core.data_dir import SENDERS
from local.critic.messages import CritiqueResult, PairwiseResult, UserFeedback
from local.desktop import message_table
from local.desktop.bus_feed import BY_HAND
from local.desktop.inspector import FILE, JOURNAL, Inspector, Node, PublishDialog, RulesDialog, laid_out, term_of
from local.desktop.loggers import bus_line, event_line
from local.desktop.message_table import SPARE, MessageModel, MessageTable, Source
from local.desktop.style import DARK, LIGHT, apply_style
from local.memory.messages import MemoryIngested
from local.permissions.messages import ApprovalDecision
from tests.bus.test_filter import MESSAGES
from tests.queries.otlp_receiver import collector

Texts = Callable[[QWidget], str]
CALL: dict[str, Any] = {"query_id": "q1", "call_id": "q1:0:0", "tool": "web_search"}
TALK: tuple[Message, ...] = (
    QueryReceived(query_id="q1", query="What is the tallest tree?"),
    AgentTransition(agent="generator", query_id="q1", from_state="IDLE", action="RECEIVE_QUERY", to_state="RECEIVING"),
    GenerationThinking(query_id="q1", index=0, text="I should "),
    GenerationThinking(query_id="q1", index=1, text="look it up."),
    ToolRequest(**CALL, args={"query": "tallest tree", "filters": [{"since": 2020}]}),
    ToolResult(**CALL, error=ErrorInfo(kind="timeout", message="the search engine did not answer")),
    ResponseGeneration(
        query_id="q1", status="answered", query="What is the tallest tree?", answer="Hyperion, a redwood of 116 m.",
        thinking="I should look it up.", tool_calls=(ToolCallRecord(call_id="q1:0:0", tool="web_search", args={}),),
    ),
    UserFeedback(query_id="q1", rating=1, rated_at=1.0),
)  # fmt: skip


def header(subject: str, payload: bytes = b"{}", number: int = 1, **more: Any) -> Envelope:
    return Envelope(subject, f"id{number}", "generator", "i", number, "72ec0a", payload, **{"sent_at": 1e9, **more})


def of(message: Message) -> Envelope:
    return header(message.routing_key, message.encode())


GOLDEN = [
    (TALK[0], "What is the tallest tree?"),
    (TALK[1], "IDLE → RECEIVING"),
    (TALK[2], "◈ I should"),
    (TALK[4], '→ {"query":"tallest tree","filters":[{"since":2020}]}'),
    (TALK[5], "← the search engine did not answer"),
    (TALK[6], "Hyperion, a redwood of 116 m.  ◈ thinking  ⚙ 1 tool call(s)"),
    (ResponseGeneration(query_id="q", status="answered", query="?", answer="x" * 79 + "\nyz"), "x" * 79 + " …"),
    (ResponseGeneration(query_id="q", status="cancelled", query="?", answer="So far"), "cancelled  So far"),
    (QueryFailed(query_id="q", error=ErrorInfo(kind="busy", message="too many wait")), "△ too many wait"),
    (QueryCancel(query_id="q"), ""),
    (
        BusGap(observer="a", sender="b", instance="c", missed_subject="d.e", missed=4),
        "△ observer=a sender=b instance=c missed_subject=d.e missed=4",
    ),
    (CritiqueResult(query_id="q", score=4, status="graded", feedback="Brief."), "★ 4: Brief."),
    (PairwiseResult(query_id="q", winner="A", status="graded"), "★ A"),
    (UserFeedback(query_id="q", rating=-1, rated_at=1.0), "rating=-1 rated_at=1.0"),
    (MemoryIngested(engram_id="e", query_id="q"), "engram_id=e"),
    (
        ApprovalDecision(
            query_id="q", call_id="c", session_id="s", tool="shell", decision="allow", by="owner", decided_at=1.0
        ),
        "decision=allow by=owner decided_at=1.0",
    ),
    (
        BusDead(
            participant="memory", envelope_id="e", dead_subject="a.b", error=ErrorInfo(kind="x", message="it failed")
        ),
        "△ it failed",
    ),
]


@pytest.mark.parametrize(("message", "line"), GOLDEN)
def test_a_message_is_one_line(message: Message, line: str) -> None:
    assert bus_line(of(message)) == line


def test_every_subject_has_a_line_and_a_large_or_broken_payload_too() -> None:
    for kind in message_classes():
        assert bus_line(header(f"{kind.subject}x" if kind.subject.endswith(".") else kind.subject)).isprintable()
    assert bus_line(header("response.generation", b"no JSON")) == ""
    assert bus_line(header("tool.result.x", b'"' + b"x" * 70_000 + b'"')) == "70,002 bytes"
    line = event_line(of(TALK[1]))
    assert line.split()[1:] == ["72ec0a", "generator", "agent.transition", "IDLE", "→", "RECEIVING"]


def shown(model: MessageModel) -> list[str]:
    rows = (model.at(row) for row in range(model.rowCount()))
    return [each.id for each in rows if each is not None]


def test_a_full_table_keeps_the_latest_in_order_and_a_hold_loses_nothing(
    qapp: QApplication, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_table, "SHOW_SECONDS", 0.0)
    source = Source(most=10_000)
    model = MessageModel(source, most=100)
    moved = list[int]()
    model.moved.connect(moved.append)
    numbers = iter(range(1_000_000))

    def pass_by(count: int) -> None:
        for at in range(0, count, 500):
            some = [next(numbers) for _ in range(min(500, count - at))]
            source.add([header("a.b" if n % 2 else "c.d", number=n) for n in some])
            go_on()

    def go_on() -> None:
        while model.waiting and not model.is_held:
            model.refresh()

    pass_by(300)
    assert shown(model) == [f"id{n}" for n in range(200, 300)] and sum(moved) == 200
    model.is_held = True
    pass_by(5_000)
    assert shown(model)[-1] == "id299" and model.waiting == 5_000
    model.is_held = False
    go_on()
    assert (shown(model)[-1], model.left_out) == ("id5299", 0)
    model.show(source, Filter("subject:a.b"))
    pass_by(3 * SPARE + 10_000)
    assert shown(model) == [f"id{n}" for n in range(21_299 - 198, 21_300, 2)]
    model.is_held = True
    pass_by(20_000)
    kept = model.waiting
    model.is_held = False
    go_on()
    assert shown(model)[-1] == "id41299" and model.left_out == 20_000 - kept > 0


def test_the_view_keeps_the_selected_message_and_its_place(qtbot: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_table, "SHOW_SECONDS", 0.0)
    source = Source()
    table = MessageTable(MessageModel(source, most=200), "Messages")
    qtbot.addWidget(table)
    table.resize(600, 300)
    table.show()
    source.add([header("a.b", number=n) for n in range(200)])
    table.refresh()
    assert table.indexAt(table.viewport().rect().center()).row() > 180, "it follows the latest"
    table.setCurrentIndex(table.messages.index(150, 1))
    table.verticalScrollBar().setValue(100)
    source.add([header("a.b", number=n) for n in range(200, 230)])
    table.refresh()
    current = table.current()
    assert current is not None and current.id == "id150"
    assert table.rowAt(2) == 70 and table.messages.at(70).id == "id100"  # type: ignore[union-attr]


def test_each_value_has_its_place_in_the_text_and_its_term() -> None:
    document = {**MESSAGES[4].header(), "payload": json.loads(MESSAGES[4].payload)}
    text, nodes = laid_out(document)
    assert json.loads(text) == document
    assert all(json.loads(text[node.start : node.end]) == node.value for node in nodes)
    terms = {term for node in nodes if (term := term_of(node))}
    assert {"subject=response.generation", "query=q1", "payload.tool_calls.0.tool=web_search"} <= terms
    for term in terms:
        assert Filter(term).matches(MESSAGES[4]), term
    assert term_of(Node(2, ("payload", "a b"), 1, 0, 0)) is None


@pytest.fixture
def inspector(stage: Any) -> Iterator[Inspector]:
    """The inspector of a window before which a talk has passed."""
    window = stage.open()
    window.show_dock("bus")
    stage.say("generator", *TALK)
    stage.until(lambda: "user.feedback" in subjects(window.inspector))
    yield window.inspector


def subjects(inspector: Inspector) -> list[str]:
    rows = (inspector.model.at(row) for row in range(inspector.model.rowCount()))
    return [each.subject for each in rows if each is not None]


def select(inspector: Inspector, subject: str, column: int = 1) -> None:
    row = subjects(inspector).index(subject)
    inspector.table.setCurrentIndex(inspector.model.index(row, column))


def test_what_passes_is_filtered_by_a_cell_a_value_or_a_query(stage: Any, inspector: Inspector) -> None:
    assert "participant.status" not in subjects(inspector), "the upkeep is hidden"
    inspector.filter.apply("sendr:x")
    assert "use sender" in inspector.filter.note.text() and not inspector.filter.note.isHidden()
    select(inspector, "tool.result.web_search")
    inspector.filter_by_cell()
    stage.until(lambda: subjects(inspector) == ["tool.result.web_search"])
    assert inspector.filter.note.isHidden()
    inspector.filter.apply("")
    stage.until(lambda: "query.received" in subjects(inspector))
    select(inspector, "generation.thinking")
    inspector.filter_by_cell(leave_out=True)
    stage.until(lambda: "query.received" in subjects(inspector))
    assert "generation.thinking" not in subjects(inspector)
    inspector.filter.apply("subject:tool.* or size<0")
    stage.until(lambda: set(subjects(inspector)) == {"tool.request.web_search", "tool.result.web_search"})
    select(inspector, "tool.result.web_search")
    tree = inspector.message.tree
    [kind] = tree.findItems("kind", Qt.MatchFlag.MatchRecursive)
    tree.setCurrentItem(kind)
    assert inspector.message.raw.textCursor().selectedText() == '"timeout"'
    inspector.filter.narrow(inspector.message.term() or "")
    assert inspector.filter.text() == "(subject:tool.* or size<0) payload.error.kind=timeout"
    stage.until(lambda: subjects(inspector) == ["tool.result.web_search"])
    stage.say("api", QueryReceived(query_id="q2", query="And the oldest?"), query="q2")
    select(inspector, "tool.result.web_search")
    inspector.follow_query()
    stage.until(lambda: len(subjects(inspector)) == len(TALK))
    inspector.filter.setText("")
    stage.bot.keyClicks(inspector.filter, "sender:gen")
    stage.until(lambda: "sender:generator" in inspector.filter._offered.stringList())


def test_a_pause_holds_the_table_and_nothing_is_lost(stage: Any, inspector: Inspector) -> None:
    before = subjects(inspector)
    inspector.pause.click()
    stage.say("api", QueryReceived(query_id="q2", query="And the oldest?"), query="q2")
    stage.until(lambda: "came since" in inspector.count.text())
    assert subjects(inspector) == before
    inspector.pause.click()
    stage.until(lambda: len(subjects(inspector)) > len(before))
    assert subjects(inspector)[-1] == "query.received"
    inspector.slider.setValue(2)
    assert inspector.pause.isChecked() and inspector.table.currentIndex().row() == 2, "going back is a pause"


def test_the_same_table_shows_the_journal_up_to_a_moment_and_a_file(
    stage: Any, inspector: Inspector, tmp_path: Path
) -> None:
    recorded = [each.routing_key for each in TALK if not isinstance(each, GenerationThinking)]
    inspector.filter.apply("query=q1")
    inspector.source.setCurrentText(JOURNAL)
    stage.until(lambda: subjects(inspector) == recorded)
    assert "on record, up to number" in inspector.where.text()
    inspector.slider.setValue(inspector.slider.maximum() - 1)
    stage.until(lambda: subjects(inspector) == recorded[:-1])
    inspector.filter.apply("payload.error.kind:*")
    stage.until(lambda: subjects(inspector) == ["tool.result.web_search"])
    lines = [
        {"number": number, "committed_at": 1.0, "redacted": False, "subject": each.subject, "header": each.header(),
         "payload": each.payload.decode(errors="replace")}
        for number, each in enumerate(MESSAGES)
    ]  # fmt: skip
    export = tmp_path / "messages.jsonl"
    export.write_text("\n".join(map(json.dumps, lines)))
    inspector.filter.apply("subject:tool.*")
    inspector.open_file(export)
    stage.until(lambda: len(subjects(inspector)) == 3)
    assert inspector.source.currentText() == FILE and f"{len(MESSAGES)} messages" in inspector.where.text()
    inspector.source.setCurrentText("Live")
    stage.until(lambda: len(subjects(inspector)) == 2)


def test_rows_are_coloured_by_rules(stage: Any, inspector: Inspector) -> None:
    def colour(subject: str) -> str:
        index = inspector.model.index(subjects(inspector).index(subject), 4)
        return str(index.data(Qt.ItemDataRole.ForegroundRole).name())

    assert colour("tool.result.web_search") == LIGHT.bad and colour("tool.request.web_search") == LIGHT.tool
    inspector.ask_for_rules()
    [dialog] = inspector.findChildren(RulesDialog)
    dialog.text.setPlainText("blue: subject:tool.*")
    dialog.use()
    assert "line 1: expected one of bad" in dialog.note.text()
    dialog.text.setPlainText("good: subject:tool.*\n\nbad: sender:x")
    dialog.use()
    assert colour("tool.result.web_search") == LIGHT.good


def test_an_edited_message_is_published_after_it_was_asked_for(stage: Any, inspector: Inspector) -> None:
    select(inspector, "query.received")
    inspector.publish()
    [dialog] = inspector.findChildren(PublishDialog)
    assert BY_HAND in "".join(label.text() for label in dialog.findChildren(QWidget) if hasattr(label, "text"))
    assert dialog.query.text() == "q1" and "tallest tree" in dialog.payload.toPlainText()
    dialog.subject.setText("query.cancel")
    dialog.payload.setPlainText("{}")
    dialog.publish()
    assert "query_id: Field required" in dialog.note.text()
    dialog.payload.setPlainText('{"query_id": "q1"}')
    dialog.publish()
    stage.until(lambda: [each.sender for each in stage.heard if each.subject == "query.cancel"] == [BY_HAND])
    stage.until(lambda: not inspector.findChildren(PublishDialog))
    [sent] = [each for each in stage.heard if each.subject == "query.cancel"]
    assert (sent.correlation_id, json.loads(sent.payload)) == ("q1", {"query_id": "q1"})


def beat(name: str, **more: Any) -> ParticipantStatus:
    return ParticipantStatus(name=name, kind="agent", pid=1, instance="i", state="ready", **more)


def test_the_trace_of_a_query_is_sent_to_the_collector_in_the_settings(
    stage: Any, inspector: Inspector, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOCAL2_CONFIG_DIR", str(tmp_path))
    select(inspector, "query.received")
    with collector() as received:
        (tmp_path / "otel.yaml").write_text(f"endpoint: {received.url}\n")
        inspector.send_trace()
        stage.until(lambda: "spans were sent" in inspector.where.text())
    assert {"invoke_agent generator", "execute_tool web_search"} <= {span.name for span in received.spans}
    inspector.send_trace()
    stage.until(lambda: "is a collector running there" in inspector.where.text())


def test_the_graph_has_everybody_with_rate_and_delay(stage: Any, inspector: Inspector) -> None:
    inspector.tabs.setCurrentIndex(1)
    graph = inspector.graph
    stage.until(lambda: graph.findItems("desktop", Qt.MatchFlag.MatchExactly))
    Declarations(stage.feed.data_dir / SENDERS).write("critic", Declaration(frozenset({"critique.result"})))
    stage.say("critic", beat("critic"))
    stage.say("memory", beat("memory", subscriptions={"critique.result": "memory"}))
    stage.until(lambda: graph.findItems("memory", Qt.MatchFlag.MatchExactly))
    [item] = graph.findItems("critic", Qt.MatchFlag.MatchExactly)
    assert float(item.text(1)) > 0 and item.text(2).endswith(" ms")
    stage.until(lambda: "→ memory" in [item.child(row).text(0) for row in range(item.childCount())])
    assert "critique.result" in item.child(item.childCount() - 1).text(4)


def test_the_keyboard_reaches_every_part_and_everything_has_a_name(
    stage: Any, inspector: Inspector, unnamed: Any
) -> None:
    inspector.filter.setFocus()
    walked = []
    for _ in range(4):
        stage.bot.keyClick(QApplication.focusWidget(), Qt.Key.Key_F6)
        walked.append(QApplication.focusWidget())
    assert walked == [inspector.table, inspector.message.tree, inspector.message.raw, inspector.filter]
    select(inspector, "tool.result.web_search")
    inspector.table.setFocus()
    stage.bot.keyClick(inspector.table, Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert inspector.filter.text() == "query=q1"
    assert unnamed(stage.window) == []
    inspector.publish()
    inspector.ask_for_rules()
    for dialog in inspector.findChildren(QDialog):
        assert unnamed(dialog) == []


def test_thinking_and_events_are_read_beside_the_conversation(stage: Any, texts: Texts) -> None:
    window = stage.open()
    window.show_dock("thinking")
    window.show_dock("events")
    shadow = GenerationThinking(query_id="q1", index=0, text="Not for you.", respondent_id="B")
    stage.say("generator", *TALK, shadow)
    stage.until(lambda: "look it up." in texts(window.docks["thinking"]))
    stage.until(lambda: "agent.transition" in texts(window.docks["events"]))
    thought = texts(window.docks["thinking"])
    assert "◈ query q1\nI should look it up." in thought and "Not for you" not in thought
    assert "generation.thinking" not in texts(window.docks["events"])


@pytest.mark.skipif("LOCAL2_PICTURES" not in os.environ, reason="makes pictures for the documentation")
def test_pictures(stage: Any, inspector: Inspector, qapp: QApplication) -> None:
    folder = Path(os.environ["LOCAL2_PICTURES"])
    window = stage.window
    select(inspector, "tool.result.web_search")
    [kind] = inspector.message.tree.findItems("kind", Qt.MatchFlag.MatchRecursive)
    inspector.message.tree.setCurrentItem(kind)
    dock = window.docks["bus"]
    dock.setFloating(True)
    dock.resize(1180, 560)
    for theme, name in ((LIGHT, "light"), (DARK, "dark")):
        apply_style(qapp, theme)
        inspector.tabs.setCurrentIndex(0)
        qapp.processEvents()
        assert dock.grab().save(str(folder / f"desktop-inspector-{name}.png"))
        inspector.tabs.setCurrentIndex(1)
        qapp.processEvents()
        assert dock.grab().save(str(folder / f"desktop-graph-{name}.png"))
        inspector.publish()
        [dialog] = inspector.findChildren(PublishDialog)
        assert dialog.grab().save(str(folder / f"desktop-publish-{name}.png"))
        dialog.close()
        stage.until(lambda: not inspector.findChildren(PublishDialog))
