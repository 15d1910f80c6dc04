"""The story S8 through the window, on the real system, with the keyboard alone; and the same window while processes of
that system are killed.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication, QWidget
from pytestqt.qtbot import QtBot

from local.cli.temporary_system import write_settings
from local.desktop.bus_feed import BusFeed
from local.desktop.commands import ApiSettings
from local.desktop.critic import CriticPanel
from local.desktop.panels import Person
from local.desktop.style import LIGHT, apply_style
from local.desktop.window import ParticipantLogWidget
from local.journal.store import JournalView
from tests.warm.warm_system import WarmSystem

SECONDS = 90.0
QUESTION = "What is 6 times 7?"
PARTICIPANTS = ["generator", "memory", "critic", "reward"]
FLAGS = ["--backend", "stand_in", "--respondent-b", "--temperature-b", "0.9"]


class Typist:
    """A person in front of the window who has no mouse."""

    def __init__(self, bot: QtBot, system: WarmSystem, window: ParticipantLogWidget) -> None:
        self.bot, self.system, self.window = bot, system, window

    def until(self, holds: Callable[[], object]) -> None:
        self.bot.waitUntil(lambda: bool(holds()), timeout=int(SECONDS * 1000))

    def press(self, key: Qt.Key, modifier: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> None:
        self.bot.keyClick(self.focused(), key, modifier)

    def focused(self) -> QWidget:
        widget = QApplication.focusWidget()
        assert widget is not None
        return widget

    def ask(self, question: str) -> str:
        """Returns the query's id."""
        self.press(Qt.Key.Key_K, Qt.KeyboardModifier.ControlModifier)
        self.bot.keyClicks(self.focused(), question)
        self.press(Qt.Key.Key_Return)
        return list(self.window.conversation.turns)[-1]

    def go_to(self, name: str) -> None:
        """Press Tab until the widget of that name has the focus."""
        for _ in range(200):
            if self.focused().accessibleName() == name:
                return
            self.press(Qt.Key.Key_Tab)
        raise AssertionError(f"Tab does not come to {name}")

    def open_panel(self, name: str) -> None:
        self.press(Qt.Key.Key_P, Qt.KeyboardModifier.ControlModifier)
        people = self.window.list
        assert self.focused() is people
        people.setCurrentRow(0)
        while people.currentItem().data(Qt.ItemDataRole.UserRole) != name:
            assert people.currentRow() < people.count() - 1
            self.press(Qt.Key.Key_Down)
        self.press(Qt.Key.Key_Return)

    def answers(self, query_id: str) -> int:
        """How often the first respondent has answered, on record."""
        with JournalView(self.system.data_dir / "journal.db") as journal:
            found = journal.read(limit=10, subjects=["response.generation"], correlation_id=query_id)
            return sum('"respondent_id":"B"' not in str(each) for each in found)


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WarmSystem]:
    folder = tmp_path_factory.mktemp("desktop")
    config_dir = write_settings(folder / "config", {"system": {"participants": PARTICIPANTS}})
    with WarmSystem(folder / "data", config_dir=config_dir, flags=FLAGS) as system:
        yield system


@pytest.fixture
def person(system: WarmSystem, qtbot: QtBot, qapp: QApplication) -> Iterator[Typist]:
    apply_style(qapp, LIGHT)
    feed = BusFeed(system.data_dir)
    window = ParticipantLogWidget(feed, ApiSettings(system.data_dir))
    feed.start()
    window.show()
    window.activateWindow()
    person = Typist(qtbot, system, window)
    person.until(lambda: feed.link.is_live and window.memory_button.isEnabled() and "critic" in window.people.all)
    yield person
    window.close()
    window.deleteLater()


@pytest.mark.system
@pytest.mark.long
def test_the_story_s8_comes_true_with_the_keyboard_alone(person: Typist) -> None:
    window = person.window
    query_id = person.ask(QUESTION)
    turn = window.conversation.turns[query_id]
    person.until(lambda: turn.view.answers and "42" in turn.view.answer)
    person.until(lambda: turn.view.judgements.as_json()["critique"] and turn.view.judgements.as_json()["pairwise"])
    person.go_to("Good answer")
    person.press(Qt.Key.Key_Space)
    person.open_panel("critic")
    panel = window.docks["critic"].widget()
    assert isinstance(panel, CriticPanel)
    table = panel.grades.table
    person.until(lambda: table.rowCount() and table.item(0, 1).text() == QUESTION and table.item(0, 4).text() != "–")
    assert table.item(0, 2).text() in [f"★ {score}" for score in range(1, 6)]
    assert table.item(0, 4).text() in ("A", "B", "tie")
    person.press(Qt.Key.Key_M, Qt.KeyboardModifier.ControlModifier)
    tree = window.memory.tree

    def row() -> list[str]:
        rows = [tree.topLevelItem(number) for number in range(tree.topLevelItemCount())]
        found = [row for row in rows if row is not None and row.text(1) == "A" and row.text(5) == QUESTION]
        return [found[0].text(column) for column in range(6)] if found else []

    person.until(lambda: row() and "–" not in row()[2:5])
    _, respondent, score, sentiment, winner, _ = row()
    assert (respondent, sentiment) == ("A", "▲ good")
    assert score == table.item(0, 2).text() and winner == table.item(0, 4).text()


@pytest.mark.system
@pytest.mark.long
def test_killed_processes_are_named_and_what_was_asked_meanwhile_is_answered_once(person: Typist) -> None:
    window = person.window
    for name, notice in (
        ("api", "api "),
        ("generator", "generator "),
        ("journal", "journal "),
        ("proxy", "proxy was restarted"),
    ):
        killed = window.people.all[name]
        person.until(lambda killed=killed: killed.is_well and killed.pid)
        pid, told = killed.pid, set[str]()
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        query_id = person.ask(f"What is 6 times 7? After {name}.")

        def is_named_and_back(
            killed: Person = killed, pid: int = pid, notice: str = notice, told: set[str] = told
        ) -> bool:
            told.add(window.conversation.notice.text())
            return any(notice in text for text in told) and killed.is_well and killed.pid != pid

        person.until(is_named_and_back)
        turn = window.conversation.turns[query_id]
        person.until(lambda turn=turn: turn.view.ended)
        assert turn.view.status == "answered", turn.view.failure
        person.until(lambda query_id=query_id: person.answers(query_id) == 1)
    assert window.isVisible() and window.feed.link.is_live
