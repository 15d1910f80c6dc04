"""What people come for, from the first key to the last, with the keyboard alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.page.conftest import PagedSystem, Visitor

Visit = Callable[..., Visitor]
pytestmark = pytest.mark.thorough

MOST_TABS = 60
LONG = {"user": "^long story", "replies": [{"content": "word " * 400}]}


class Typist:
    """Somebody at a page who has no mouse."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.question = page.locator("#question")

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def write(self, text: str) -> None:
        self.page.keyboard.type(text)

    def reach(self, wanted: Locator, key: str = "Tab") -> None:
        """Go on with a key until something has the focus. Fails where it never gets it."""
        expect(wanted).to_be_visible()
        for _ in range(MOST_TABS):
            if wanted.evaluate("node => node === document.activeElement"):
                return
            self.press(key)
        raise AssertionError(f"{wanted} is not reached by {key}")

    def leave_field(self) -> None:
        """Where letters are commands."""
        expect(self.question).to_be_focused()
        self.press("Tab")
        expect(self.question).not_to_be_focused()

    def ask(self, question: str, answer: str | None = None) -> None:
        expect(self.question).to_be_focused()
        self.write(question)
        self.press("Enter")
        if answer:
            expect(self.page.locator("[data-answer]").last).to_have_text(answer)

    def command(self, name: str, title: str) -> None:
        """Do something by its name."""
        self.press("Control+k")
        expect(self.page.get_by_role("combobox")).to_be_focused()
        self.write(name)
        expect(self.page.get_by_role("option", selected=True)).to_contain_text(title)
        self.press("Enter")


def test_a_question_is_asked_stopped_changed_and_asked_again_and_its_versions_are_gone_through(
    visit: Visit, paged: PagedSystem
) -> None:
    paged.script(LONG, chunk_chars=5, chunk_delay_seconds=0.05)
    person = Typist(page := visit().open())
    person.ask("What is 2+2?", "2+2 = 4")
    person.ask("long story")
    expect(page.locator("[data-phase=answering] [data-answer]")).to_contain_text("word word")
    person.press("Escape")
    expect(page.locator("article.turn").last).to_have_attribute("data-state", "cancelled")
    expect(person.question).to_be_focused()
    person.press("ArrowUp")
    expect(person.question).to_have_value("long story")
    person.press("Control+a")
    person.ask("What is 3+3?", "3+3 = 6")
    expect(page.locator(".versions")).to_have_text("‹2/2›")
    person.leave_field()
    person.press("k", "[")
    expect(page.locator(".versions")).to_have_text("‹1/2›")
    expect(page.locator("article.turn").last).to_have_attribute("data-state", "cancelled")
    person.leave_field()
    person.press("k", "]")
    expect(page.locator("[data-answer]").last).to_have_text("3+3 = 6")


def test_an_answer_is_gone_to_rated_looked_into_and_words_are_found_in_it(visit: Visit, paged: PagedSystem) -> None:
    person = Typist(page := visit().open())
    person.ask("What is 4+4?", "4+4 = 8")
    person.ask("What is 5+5?", "5+5 = 10")
    person.leave_field()
    person.press("j")
    expect(page.locator("article.turn").first).to_be_focused()
    person.reach(page.get_by_role("button", name="Good answer").first)
    with page.expect_response("**/feedback"):
        person.press("Enter")
    expect(page.locator(".rate[aria-pressed=true]")).to_have_text("Good")
    person.press("i")
    expect(page.locator("[role=tab][aria-selected=true]")).to_be_focused()
    person.press("ArrowLeft")
    expect(page.locator(".story")).to_contain_text("It answered")
    person.press("Escape")
    expect(page.locator(".inspector")).to_have_count(0)
    person.press("/")
    expect(page.get_by_role("searchbox", name="Find in this conversation")).to_be_focused()
    person.write("5+5")
    expect(page.locator(".hits button").first).to_contain_text("5+5")
    person.press("Tab", "Enter")
    expect(page.locator("article.turn").last).to_be_focused()


def test_a_conversation_is_searched_renamed_pinned_and_deleted(visit: Visit, paged: PagedSystem) -> None:
    person = Typist(page := visit().open())
    person.ask("What is 61+61?", "61+61 = 122")
    person.command("rename this", "Rename this conversation")
    expect(page.get_by_role("textbox", name="Title")).to_be_focused()
    person.press("Control+a")
    person.write("Sums of a typist")
    person.press("Enter")
    expect(page.locator("h1")).to_have_text("Sums of a typist")
    person.command("new conv", "New conversation")
    person.leave_field()
    person.press("g", "s")
    expect(page.get_by_role("searchbox", name="Search conversations")).to_be_focused()
    person.write("of a typist")
    found = page.get_by_role("region", name="Found").get_by_role("link")
    expect(found).to_have_count(1)
    person.reach(found)
    person.press("Enter")
    expect(page.locator("[data-answer]")).to_have_text("61+61 = 122")
    more = page.get_by_role("button", name="More for “Sums of a typist”")
    person.reach(more)
    person.press("Enter", "ArrowDown")
    expect(page.get_by_role("menuitem", name="Pin")).to_be_focused()
    person.press("Enter")
    expect(more).to_be_focused()
    person.reach(page.get_by_role("searchbox", name="Search conversations"), "Shift+Tab")
    person.press("Escape")
    expect(page.get_by_role("region", name="Pinned")).to_contain_text("Sums of a typist")
    person.command("delete this", "Delete this conversation")
    expect(page.locator("dialog")).to_contain_text("go for good")
    person.reach(page.get_by_role("button", name="Delete", exact=True))
    person.press("Enter")
    expect(page.locator(".title", has_text="Sums of a typist")).to_have_count(0)
    expect(person.question).to_be_focused()


def test_a_file_is_attached_settings_are_changed_and_nothing_is_left_behind(
    visit: Visit, paged: PagedSystem, tmp_path: Path
) -> None:
    (tmp_path / "roasts.csv").write_text("Monte Verde,Brazil\n")
    person = Typist(page := visit().open())
    for files in (1, 2):
        expect(person.question).to_be_focused()
        page.once("filechooser", lambda asked: asked.set_files(tmp_path / "roasts.csv"))
        person.reach(page.get_by_role("button", name="Attach", exact=True))
        person.press("Enter")
        expect(page.locator(".chip[data-state=ready]")).to_have_count(files)
        person.reach(person.question, "Shift+Tab")
    person.reach(page.get_by_role("button", name="Remove roasts.csv").first, "Shift+Tab")
    person.press("Enter")
    expect(page.locator(".chip")).to_have_count(1)
    person.reach(person.question)
    person.ask("What is in the file?")
    expect(page.locator("article.turn")).to_have_attribute("data-state", "answered")
    expect(page.locator(".files .file")).to_contain_text("roasts.csv")
    person.command("settings of critic", "Settings of critic")
    person.reach(page.get_by_label("timeout seconds"))
    person.press("Control+a")
    person.write("none")
    expect(page.locator("dialog")).to_contain_text("A number is needed.")
    person.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)
    person.command("incognito", "New incognito conversation")
    person.ask("What is 7+7?", "7+7 = 14")
    expect(page.locator(".bar .tag")).to_have_text("incognito")
