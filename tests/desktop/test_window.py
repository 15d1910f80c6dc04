"""The panels of the desktop window, from messages on the bus and on record."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QWidget

from local.bus.envelope import Envelope
from local.bus.messages import (
    ContextGauge,
    GenerationThinking,
    GenerationToken,
    ParticipantRequest,
    ParticipantResult,
    ParticipantStatus,
    QueryAccepted,
    QueryCancel,
    QueryReceived,
    ResponseGeneration,
    ToolCallRecord,
    ToolRequest,
    ToolResult,
    ToolSchema,
    UsageInfo,
)
from local.core.errors import LocalError
from local.critic.messages import CritiqueResult, PairwiseResult, UserFeedback
from local.desktop.conversation import Turn, chunks_of
from local.desktop.critic import CriticPanel
from local.desktop.settings_form import SettingsForm
from local.desktop.style import DARK, LIGHT, apply_style
from local.memory.messages import EngramRecord, MemoryAnnotated, MemoryRequest, MemoryResult
from local.permissions.messages import ApprovalDecision, ApprovalRequest, PermissionRequest, PermissionResult

Texts = Callable[[QWidget], str]
QUESTION = "How many legs does a spider have?"


def response(query_id: str = "q1", answer: str = "Eight.", **more: Any) -> ResponseGeneration:
    context = ContextGauge(used=1_200, limit=32_000, parts={})
    usage = UsageInfo(prompt_tokens=100, completion_tokens=5, context=context)
    given = {"thinking": "a spider", "model": "gemma", "usage": usage, "query": QUESTION, "status": "answered", **more}
    return ResponseGeneration(query_id=query_id, answer=answer, **given)


def grade(score: int | None = 4, respondent_id: str = "A", query_id: str = "q1") -> CritiqueResult:
    status = "graded" if score else "unparsed"
    return CritiqueResult(
        query_id=query_id, respondent_id=respondent_id, score=score, status=status, feedback="Right.", judge="judge"
    )


def compared(winner: Any = "A") -> PairwiseResult:
    return PairwiseResult(query_id="q1", winner=winner, status="graded", feedback="A is shorter.", judge="judge")


def engram(number: int, **more: Any) -> EngramRecord:
    return EngramRecord(
        engram_id=f"e{number}", query_id=f"q{number}", respondent_id="A", session_id="s1", query=f"Question {number}",
        answer=f"Answer {number}", origin="assistant", asked_at=time.time() - 7_200 * number, **more,
    )  # fmt: skip


def approval(**more: Any) -> ApprovalRequest:
    now = time.time()
    given = {"tool": "shell_exec", "args": {"command": "rm -r build"}, "session_id": "s1", **more}
    return ApprovalRequest(query_id="q1", call_id="c1", level="L2", asked_at=now, expires_at=now + 300, **given)


@pytest.fixture
def asked(stage: Any) -> Turn:
    """A question that was asked in the window."""
    window = stage.open()
    stage.until(lambda: not window.conversation._unread)
    window.conversation.session_id = "s1"
    stage.bot.keyClicks(window.conversation.composer.text, QUESTION)
    stage.bot.keyClick(window.conversation.composer.text, Qt.Key.Key_Return)
    stage.until(lambda: stage.published(QueryReceived))
    (turn,) = window.conversation.turns.values()
    stage.until(lambda: turn.status.text())
    return turn


def test_an_answer_is_shown_as_it_comes_with_its_thinking_tools_and_judgements(
    stage: Any, asked: Turn, texts: Texts
) -> None:
    query_id = asked.view.query_id
    (question,) = stage.published(QueryReceived)
    assert (question.query, question.session_id) == (QUESTION, "s1")
    stage.until(lambda: "waits for its turn" in texts(asked))
    call = {"query_id": query_id, "call_id": "c1", "tool": "web_search"}
    stage.say(
        "generator",
        QueryAccepted(query_id=query_id),
        GenerationThinking(query_id=query_id, index=0, text="A spider is an arachnid."),
        GenerationToken(query_id=query_id, index=1, text="It has **ei"),
        query=query_id,
    )
    stage.until(lambda: "It has **ei" in texts(asked) or "It has ei" in texts(asked))
    assert "◈ thinking" in texts(asked) and "arachnid" not in texts(asked), "thinking is folded"
    stage.bot.mouseClick(asked.thinking.button, Qt.MouseButton.LeftButton)
    assert "A spider is an arachnid." in texts(asked)
    stage.say("generator", ToolRequest(**call, args={"query": "spiders"}), query=query_id)
    stage.until(lambda: "… web_search  spiders" in texts(asked))
    stage.say("web_search", ToolResult(**call, result="8 legs", duration_ms=1_500), query=query_id)
    stage.until(lambda: "● web_search  spiders  1.5 s" in texts(asked))
    record = ToolCallRecord(call_id="c1", tool="web_search", args={"query": "spiders"}, result="8 legs")
    stage.say("generator", response(query_id, "It has **eight** legs.", tool_calls=(record,)), query=query_id)
    stage.say("generator_b", response(query_id, "No.", respondent_id="B"), query=query_id)
    stage.say("critic", grade(query_id=query_id), compared().model_copy(update={"query_id": query_id}), query=query_id)
    stage.until(lambda: "★★★★☆ 4" in texts(asked) and "A won against B" in texts(asked))
    assert "It has eight legs." in texts(asked) and "No." not in texts(asked), "B is not shown"
    assert "100 + 5 tokens" in texts(asked)
    stage.until(lambda: stage.window.conversation.gauge.value() == 1_200)
    assert not stage.window.conversation.cards and asked.grade.toolTip() == "Right."


def test_a_rating_is_published_and_can_be_withdrawn(stage: Any, asked: Turn) -> None:
    query_id = asked.view.query_id
    stage.say("generator", response(query_id), query=query_id)
    stage.until(lambda: asked.good.isVisible())
    for button, rating in ((asked.good, 1), (asked.poor, -1), (asked.poor, None)):
        stage.bot.mouseClick(button, Qt.MouseButton.LeftButton)
        stage.until(lambda rating=rating: [each.rating for each in stage.published(UserFeedback)][-1:] == [rating])
        assert (asked.good.isChecked(), asked.poor.isChecked()) == (rating == 1, rating == -1)


def test_a_running_answer_can_be_stopped(stage: Any, asked: Turn) -> None:
    stage.until(lambda: asked.stop.isVisible())
    stage.bot.mouseClick(asked.stop, Qt.MouseButton.LeftButton)
    stage.until(lambda: [each.query_id for each in stage.published(QueryCancel)] == [asked.view.query_id])


def test_an_answer_runs_and_loads_nothing(stage: Any, asked: Turn, texts: Texts) -> None:
    hostile = "<script>alert(1)</script> <img src='file:///etc/passwd'> ![x](http://192.0.2.1/a.png) [y](file:///etc)"
    stage.say("generator", response(asked.view.query_id, hostile), query=asked.view.query_id)
    stage.until(lambda: "<script>" in texts(asked))
    (shown,) = asked.chunks
    assert shown.loadResource(2, "file:///etc/passwd") is None
    shown.anchorClicked.emit("file:///etc")  # neither asks nor opens
    assert QApplication.activeModalWidget() is None


def test_an_answer_is_cut_between_paragraphs_and_never_inside_code() -> None:
    code = "```\n" + "x = 1\n\n" * 2_000 + "```"
    parts = chunks_of(f"{'word ' * 1_000}\n\n{code}\n\nend")
    assert len(parts) == 3 and "".join(parts).count("x = 1") == 2_000
    assert parts[1].startswith("```") and parts[1].strip().endswith("```") and "".join(parts).endswith("end")


@pytest.mark.parametrize("key", ["Allow once", "Deny"])
def test_a_call_that_needs_approval_is_decided_here(stage: Any, asked: Turn, texts: Texts, key: str) -> None:
    decisions: list[PermissionRequest] = []

    def decide(envelope: Envelope) -> PermissionResult:
        request = PermissionRequest.decode(envelope.payload)
        decisions.extend([request] if request.verb == "decide" else [])
        return PermissionResult(verb=request.verb)

    stage.answers("gatekeeper", PermissionRequest, decide)
    conversation = stage.window.conversation
    conversation.composer.text.setFocus()
    stage.say("gatekeeper", approval(args={"command": "rm -r build\u202e", "why": "x" * 5_000}))
    stage.until(lambda: conversation.cards)
    card = conversation.cards["c1"]
    assert "shell_exec needs your approval" in texts(card) and "rm -r build\\u202e" in texts(card)
    assert "x" * 5_000 in texts(card), "every argument is shown whole"
    assert not card.isAncestorOf(stage.window.focusWidget()), "a key typed for the question never answers it"
    (button,) = [each for each in card.buttons if each.text() == key]
    stage.bot.mouseClick(button, Qt.MouseButton.LeftButton)
    stage.until(lambda: not conversation.cards)
    assert [(each.decision, each.by) for each in decisions] == [("allow" if key == "Allow once" else "deny", "desktop")]


def test_an_approval_that_was_decided_elsewhere_goes(stage: Any, asked: Turn) -> None:
    stage.say("gatekeeper", approval(session_id="s2"))
    stage.until(lambda: stage.window.conversation.cards)
    decided = ApprovalDecision(
        query_id="q1", call_id="c1", session_id="s2", tool="shell_exec", decision="deny", by="page", decided_at=1.0
    )
    stage.say("gatekeeper", decided)
    stage.until(lambda: not stage.window.conversation.cards)


def test_the_last_conversation_is_read_when_the_window_opens(stage: Any, texts: Texts) -> None:
    stage.say("api", QueryReceived(query_id="q0", query="An old one"), query="q0", session="s0")
    stage.say("api", QueryReceived(query_id="q1", query=QUESTION))
    stage.say("generator", response(answer="Eight, of course."))
    stage.say("critic", grade(2))
    window = stage.open()
    stage.until(lambda: "Eight, of course." in texts(window.conversation) and "★★☆☆☆ 2" in texts(window.conversation))
    assert "An old one" not in texts(window.conversation)
    stage.take_part("journal")
    stage.until(lambda: window.episodes_button.isEnabled() and window.list.count() >= 2)
    stage.bot.mouseClick(window.episodes_button, Qt.MouseButton.LeftButton)
    tree = window.episodes.tree
    stage.until(lambda: tree.topLevelItemCount() == 2)
    assert [tree.topLevelItem(row).text(2) for row in range(2)] == [QUESTION, "An old one"]
    tree.itemActivated.emit(tree.topLevelItem(1), 0)
    stage.until(lambda: "An old one" in texts(window.conversation))
    assert window.conversation.session_id == "s0"


def test_the_critics_panel_shows_grades_and_comparisons_on_record_and_live(stage: Any, texts: Texts) -> None:
    stage.say("api", QueryReceived(query_id="q1", query=QUESTION))
    stage.say("critic", grade(4), grade(None, "B"))
    window = stage.open()
    stage.take_part("critic")
    stage.until(lambda: "critic" in window.people.all)
    panel = window.open_panel("critic")
    assert isinstance(panel, CriticPanel)
    table = panel.grades.table

    def row() -> list[str]:
        return [table.item(0, column).text() if table.item(0, column) else "" for column in range(1, 6)]

    stage.until(lambda: row() == [QUESTION, "★ 4", "unparsed", "–", "Right."])
    stage.say("critic", compared("tie"))
    stage.until(lambda: row()[3] == "tie")
    table.setCurrentCell(0, 0)
    stage.until(lambda: "A is shorter." in texts(panel))


def test_the_memory_inspector_shows_what_is_thought_of_each_exchange(stage: Any, texts: Texts) -> None:
    engrams = [engram(1), engram(2, score=2.0, sentiment=-1, winner="B")]

    def answer(envelope: Envelope) -> MemoryResult:
        request = MemoryRequest.decode(envelope.payload)
        return MemoryResult(verb=request.verb, engrams=tuple(engrams))

    stage.answers("memory", MemoryRequest, answer)
    window = stage.open()
    stage.take_part("memory", state="starting")
    stage.until(lambda: not window.memory_button.isEnabled())
    stage.take_part("memory")
    stage.until(lambda: window.memory_button.isEnabled())
    stage.bot.mouseClick(window.memory_button, Qt.MouseButton.LeftButton)
    tree = window.memory.tree

    def row(number: int) -> list[str]:
        item = tree.topLevelItem(number)
        return [item.text(column) for column in range(6)] if item else []

    stage.until(lambda: row(0) == ["2 h", "A", "–", "–", "–", "Question 1"])
    assert row(1) == ["4 h", "A", "★ 2", "▼ poor", "B", "Question 2"]
    tree.expandItem(tree.topLevelItem(0))
    assert tree.topLevelItem(0).child(0).text(0) == "Answer 1"
    engrams[0] = engram(1, score=5.0, sentiment=1)
    stage.say("memory", MemoryAnnotated(engram_id="e1", query_id="q1", what="score", value=5.0))
    stage.until(lambda: row(0)[2:4] == ["★ 5", "▲ good"])
    assert tree.topLevelItem(0).isExpanded(), "what was open stays so"


def test_a_participant_has_its_activity_its_state_and_a_restart(stage: Any, texts: Texts) -> None:
    asked: list[ParticipantRequest] = []

    def restart(envelope: Envelope) -> ParticipantResult:
        asked.append(ParticipantRequest.decode(envelope.payload))
        return ParticipantResult(verb="restart")

    stage.answers("supervisor", ParticipantRequest, restart)
    window = stage.open()
    status = ParticipantStatus(
        name="web_search", kind="tool", pid=77, instance="i", state="ready", details={"provider": "ddgs"}
    )
    stage.say("web_search", status)
    stage.take_part("web_search")
    stage.say("web_search", ToolSchema(tool="web_search", description="Search", parameters={}))
    stage.until(lambda: window.people.all.get("web_search") and window.people.all["web_search"].is_child)
    panel = window.open_panel("web_search")
    stage.say("generator", ToolRequest(query_id="q1", call_id="c1", tool="web_search", args={"query": "tides"}))
    stage.say("web_search", ToolResult(query_id="q1", call_id="c1", tool="web_search", result="low at six"))
    stage.until(lambda: "low at six" in texts(panel) and "tides" in texts(panel))
    panel.setCurrentIndex(1)
    table = panel.state
    stage.until(lambda: table.rowCount() > 3)
    facts = {table.item(row, 0).text(): table.item(row, 1).text() for row in range(table.rowCount())}
    assert facts["state"] == "ready" and facts["provider"] == "ddgs" and "since" in facts
    (button,) = [button for button, verb in panel._buttons if verb == "restart"]
    stage.until(lambda: button.isEnabled())
    stage.bot.mouseClick(button, Qt.MouseButton.LeftButton)
    stage.until(lambda: [(each.verb, each.name) for each in asked] == [("restart", "web_search")])


def test_a_tool_of_a_participant_has_a_panel_of_its_own(stage: Any, texts: Texts) -> None:
    stage.say("memory_tools", ToolSchema(tool="search_memory", description="Search the memory", parameters={}))
    window = stage.open()
    stage.until(lambda: "search_memory" in window.people.all)
    assert window.people.all["search_memory"].code == "Sm"
    panel = window.open_panel("search_memory")
    stage.say("generator", ToolRequest(query_id="q1", call_id="c1", tool="search_memory", args={"query": "coffee"}))
    stage.until(lambda: "coffee" in texts(panel))


def test_settings_are_changed_one_by_one_and_nothing_else_is_written(stage: Any) -> None:
    window = stage.open()
    stage.take_part("critic")
    stage.until(lambda: "critic" in window.people.all)
    panel = window.open_panel("critic")
    form: SettingsForm = panel.settings
    panel.setCurrentIndex(2)
    stage.until(lambda: form.fields)
    assert not form.save.isEnabled()
    form.fields["max_results"].put(7)
    form.fields["model"].put("judge")
    form.fields["grade"].put(False)  # the default
    stage.bot.mouseClick(form.save, Qt.MouseButton.LeftButton)
    stage.until(lambda: stage.settings.changes)
    assert stage.settings.changes == [("critic", {"max_results": 7, "model": "judge"}, ["grade"])]
    stage.until(lambda: "takes effect" in form.note.text() and form.restart.isVisible())
    form.fields["rubrics"].editor.setText("{a: [")
    assert "not valid YAML" in form.note.text() and not form.save.isEnabled()


def test_without_the_api_the_settings_say_that_they_need_it(stage: Any) -> None:
    window = stage.open()
    stage.settings.trouble = LocalError("no connection")
    stage.take_part("critic")
    stage.until(lambda: "critic" in window.people.all)
    panel = window.open_panel("critic")
    panel.setCurrentIndex(2)
    stage.until(lambda: "the API does not answer: no connection" in panel.settings.note.text())


def test_a_participant_that_is_away_is_named_with_the_time(stage: Any, texts: Texts) -> None:
    window = stage.open()
    stage.take_part("generator")
    stage.until(lambda: "generator" in window.people.all)
    stage.take_part("generator", state="failed", detail="killed by SIGKILL")
    stage.until(lambda: window.conversation.notice.isVisible())
    assert "generator is failed since " in window.conversation.notice.text()
    assert "SIGKILL" in window.conversation.notice.text()
    stage.take_part("generator")
    stage.until(lambda: not window.conversation.notice.isVisible())


def test_the_keyboard_reaches_everything_and_everything_has_a_name(
    stage: Any, asked: Turn, unnamed: Callable[[QWidget], list[str]], unreached: Callable[[QWidget], set[str]]
) -> None:
    window = stage.window
    stage.say("generator", response(asked.view.query_id), query=asked.view.query_id)
    stage.say("gatekeeper", approval())
    stage.take_part("critic", "memory", "journal")
    stage.until(lambda: window.conversation.cards and asked.good.isVisible() and window.list.count() > 3)
    window.activateWindow()
    panel = window.open_panel("critic")
    for index in range(panel.count()):
        panel.setCurrentIndex(index)
        if index == 2:
            stage.until(lambda: panel.settings.fields)
        assert not unnamed(window) and not unreached(window)
    for button in (window.memory_button, window.episodes_button):
        button.click()
        assert not unnamed(window) and not unreached(window)


def test_the_window_follows_a_change_to_dark(stage: Any, asked: Turn, qapp: QApplication) -> None:
    apply_style(qapp, DARK)
    dark = stage.window.grab().toImage().pixelColor(5, 5).lightness()
    apply_style(qapp, LIGHT)
    assert dark < 60 < 200 < stage.window.grab().toImage().pixelColor(5, 5).lightness()
