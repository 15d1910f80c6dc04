"""What people come for, from the first key to the last, with the keyboard alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.page.conftest import PagedSystem, Visitor
from tests.page.typist import Typist

Visit = Callable[..., Visitor]
pytestmark = pytest.mark.thorough

LONG = {"user": "^long story", "replies": [{"content": "word " * 400}]}


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
    person.press("]")
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
    expect(page.locator(".story")).to_contain_text("The answer was complete")
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
    person.press("g", "f")
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
    expect(page.locator("dialog")).to_contain_text("are deleted permanently")
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
    expect(page.locator(".section")).to_contain_text("A number is needed.")
    person.command("incognito", "New incognito conversation")
    person.ask("What is 7+7?", "7+7 = 14")
    expect(page.locator(".bar .tag")).to_have_text("incognito")


def test_questions_that_wait_are_edited_and_removed_and_the_answer_before_them_is_stopped(
    visit: Visit, paged: PagedSystem
) -> None:
    paged.script(LONG, chunk_chars=5, chunk_delay_seconds=0.05)
    person = Typist(page := visit().open())
    person.ask("long story")
    expect(page.locator("[data-phase=answering] [data-answer]")).to_contain_text("word word")
    for question in ("What is 2+2?", "What is 3+3?"):
        person.ask(question)
        person.is_at(person.question)
    queued = page.locator(".queued")
    expect(queued).to_have_count(2)
    person.do(queued.first.get_by_role("button", name="Edit"), "Shift+Tab")
    expect(person.question).to_have_value("What is 2+2?")
    person.press("Control+a")
    person.ask("What is 4+4?")
    expect(queued).to_have_count(2)
    person.do(page.locator(".queued", has_text="3+3").get_by_role("button", name="Remove"), "Shift+Tab")
    expect(queued).to_have_count(1)
    person.is_at(page.locator("article.turn", has_text="3+3"))
    person.do(page.get_by_role("button", name="Stop"))
    expect(page.locator("article.turn").first).to_have_attribute("data-state", "cancelled")
    expect(page.locator("article.turn", has_text="4+4").locator("[data-answer]")).to_have_text("4+4 = 8")
    person.is_at(person.question)


def test_what_is_said_in_incognito_is_gone_from_the_list_when_it_is_deleted_and_its_draft_after_a_reload(
    visit: Visit, paged: PagedSystem
) -> None:
    person = Typist(page := visit().open())
    person.do(page.get_by_role("button", name="Incognito"), "Shift+Tab")
    person.is_at(person.question)
    person.write("a secret")
    page.reload()
    expect(person.question).to_be_focused()
    expect(person.question).to_have_value("")
    person.command("incognito", "New incognito conversation")
    person.ask("What is 81+81?", "81+81 = 162")
    listed = page.locator(".conv", has_text="81+81")
    expect(listed).to_contain_text("incognito")
    person.command("delete this", "Delete this conversation")
    person.is_at(page.get_by_role("button", name="Cancel"))
    person.do(page.get_by_role("button", name="Delete", exact=True))
    expect(listed).to_have_count(0)
    person.is_at(person.question)
    page.reload()
    page.wait_for_selector(".sessions[data-state=ready]")
    expect(listed).to_have_count(0)
    assert not [one for one in paged.request("GET", "/sessions")["sessions"] if "81+81" in (one["title"] or "")]


MODELS = {"models": [{"name": "small:4b"}, {"name": "large:12b"}], "current": "small:4b"}


def test_a_newcomer_chooses_a_model_reads_the_keys_and_begins_and_begins_anew(visit: Visit, paged: PagedSystem) -> None:
    person = Typist(page := visit().open())
    page.route("**/models", lambda route: route.fulfill(json=MODELS))
    page.route("**/models/current", lambda route: route.fulfill(json={"current": "large:12b", "restart_needed": []}))
    way = page.get_by_role("button", name="Get a model")
    person.do(way, "Shift+Tab")
    person.is_at(page.get_by_role("heading", name="System"))
    person.do(page.get_by_role("button", name="Use large:12b"))
    expect(page.locator(".screen")).to_contain_text("large:12b answers now.")
    expect(page.locator(".screen :focus")).to_have_count(1)
    person.press("g", "c")
    person.do(page.get_by_role("button", name="Close this note"), "Shift+Tab")
    expect(way).to_have_count(0)
    dialog = page.get_by_role("dialog")
    person.is_at(person.question)
    person.leave_field()
    person.press("?")
    expect(dialog).to_contain_text("Single letters")
    person.do(dialog.get_by_role("button", name="Close"))
    expect(dialog).to_have_count(0)
    expect(page.locator(":focus")).to_have_count(1)
    person.reach(person.question)
    person.ask("What is 91+91?", "91+91 = 182")
    person.do(page.get_by_role("button", name="New conversation"), "Shift+Tab")
    expect(page.locator("h1")).to_have_text("New conversation")
    person.is_at(person.question)
    person.ask("What is 92+92?", "92+92 = 184")
