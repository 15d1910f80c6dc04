"""What people come for once tools have worked for them: looked into, allowed, undone, forgotten, with the keyboard
alone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.page.conftest import PagedSystem, Visitor
from tests.page.test_approvals import calls_of, card_of
from tests.page.test_changes import write
from tests.page.typist import Typist

Visit = Callable[..., Visitor]
pytestmark = pytest.mark.thorough

VIEWS = {
    "Time": ".fall-rows li",
    "Context": ".messages li",
    "Sources": ".panel",
    "Raw": ".envelopes li",
    "Story": ".story",
}


def test_the_five_views_of_the_inspector_are_opened_gone_through_and_closed(visit: Visit, paged: PagedSystem) -> None:
    person = Typist(page := visit().open())
    person.ask("How do I take my tea?")
    expect(page.locator("article.turn")).to_have_attribute("data-state", "answered")
    person.leave_field()
    person.press("k", "w")
    tab = page.locator("[role=tab][aria-selected=true]")
    for words, ready in VIEWS.items():
        expect(tab).to_have_text(words)
        person.is_at(tab)
        expect(page.locator(ready).first).to_be_visible()
        person.press("ArrowRight")
    person.press("ArrowLeft")
    person.do(page.get_by_role("button", name=re.compile("Inspect this call: search_memory")))
    expect(page.get_by_label("Arguments")).to_contain_text('"query": "How do I take my tea?"')
    person.is_at(tab)
    person.press("ArrowLeft")
    person.reach(page.locator(".envelopes button").first)
    person.press("ArrowDown")
    person.is_at(page.locator(".envelopes button").nth(1))
    person.press("Enter")
    expect(page.get_by_label("Payload", exact=True)).to_contain_text("call_id")
    person.is_at(tab)
    person.do(page.get_by_role("button", name="Back to the whole answer"), "Shift+Tab")
    person.is_at(tab)
    person.do(page.get_by_role("complementary").get_by_role("button", name="Close"), "Shift+Tab")
    expect(page.locator(".inspector")).to_have_count(0)
    person.is_at(page.locator("article.turn"))
    person.command("participant critic", "Participant critic")
    expect(page.locator(".subjects")).to_be_visible()
    person.is_at(tab)
    person.press("Escape")
    expect(page.locator(".inspector")).to_have_count(0)
    person.is_at(page.locator("article.turn"))


def test_a_call_is_allowed_from_its_card_and_another_one_is_denied(visit: Visit, paged: PagedSystem) -> None:
    paged.script({"user": "^a note", "replies": [write("note.txt", "milk\n"), {"content": "Noted."}]})
    paged.script({"user": "^a second note", "replies": [write("note.txt", "tea\n")]})
    file = paged.system.data_dir / "workspace" / "note.txt"
    person = Typist(page := visit().open(paged.sign_in()))
    person.ask("a note")
    card = card_of(page)
    expect(card).to_contain_text("added: milk")
    person.is_at(person.question)
    person.do(card.get_by_role("button", name="Allow once"), "Shift+Tab")
    expect(page.locator("[data-answer]")).to_have_text("Noted.")
    expect(card).to_have_count(0)
    person.is_at(person.question)
    assert file.read_text() == "milk\n"
    person.ask("a second note")
    person.reach(card.get_by_label("Effect of the call"), "Shift+Tab")
    person.press("n")
    expect(page.locator("[data-answer]").last).to_contain_text("the user said no")
    person.is_at(person.question)
    assert [call["error"]["kind"] for call in calls_of(page, paged)] == ["denied"]
    assert file.read_text() == "milk\n"


def test_a_change_is_looked_at_and_undone_from_its_card(visit: Visit, paged: PagedSystem) -> None:
    paged.script({"user": "^a plan", "replies": [write("plan.txt", "sleep\n"), {"content": "Planned."}]})
    file = paged.system.data_dir / "workspace" / "plan.txt"
    person = Typist(page := visit().open(paged.sign_in()))
    person.ask("a plan")
    person.do(page.get_by_role("button", name="Allow once"), "Shift+Tab")
    expect(page.locator("[data-answer]")).to_have_text("Planned.")
    assert file.read_text() == "sleep\n"
    changes = page.get_by_label("Changes of this call")
    person.do(changes.get_by_role("button", name="Changes"), "Shift+Tab")
    person.reach(changes.get_by_label("plan.txt"))
    expect(changes.locator(".diff")).to_contain_text("+sleep")
    person.do(changes.get_by_role("button", name="Undo"), "Shift+Tab")
    expect(changes.get_by_role("status")).to_have_text("Undone: the file was restored.")
    person.is_at(changes.get_by_role("button", name="Changes"))
    assert not file.exists()


def test_a_memory_that_was_recalled_is_looked_at_and_forgotten(visit: Visit, paged: PagedSystem) -> None:
    paged.tell("I take my chicory with honey.", "told-by-a-typist")
    person = Typist(page := visit().open())
    person.ask("How do I take my chicory?")
    expect(page.locator("article.turn")).to_have_attribute("data-state", "answered")
    recall = page.locator(".recalls li", has_text="I take my chicory with honey").first
    person.do(page.locator("[data-call] .call-head").first, "Shift+Tab")
    expect(page.locator(".insides pre").last).to_contain_text("honey")
    forget = recall.get_by_role("button", name="Forget")
    person.do(forget)
    dialog = page.get_by_role("dialog", name="Forget this?")
    person.is_at(dialog.get_by_role("button", name="Cancel"))
    person.press("Enter")
    expect(dialog).to_have_count(0)
    person.is_at(forget)
    person.press("Enter")
    with page.expect_response(lambda answer: answer.request.method == "DELETE" and "/memory/" in answer.url):
        person.do(dialog.get_by_role("button", name="Forget"))
    close = page.get_by_role("dialog").get_by_role("button", name="Close")
    expect(page.get_by_role("heading", name="Forgotten")).to_be_visible()
    person.is_at(close)
    person.press("Enter")
    expect(page.locator("dialog")).to_have_count(0)
    person.is_at(forget)
    found = paged.request("GET", "/memory", params={"query": "I take my chicory with honey."})
    assert not [one for one in found["hits"] if one["query"] == "I take my chicory with honey."]


def test_a_conversation_is_exported_as_everything_that_is_on_record(visit: Visit, paged: PagedSystem) -> None:
    person = Typist(page := visit().open())
    person.ask("What is 71+71?", "71+71 = 142")
    menu = page.locator(".conv.on .menu > button")
    person.reach(menu, "Shift+Tab")
    person.press("Enter")
    person.do(page.get_by_role("menuitem", name="Export"), "ArrowDown")
    dialog = page.get_by_role("dialog", name="Export")
    person.reach(dialog.get_by_role("radio", name="Markdown"))
    person.press("ArrowDown")
    person.is_at(dialog.get_by_role("radio", name="JSON"))
    with page.expect_download() as download:
        person.do(dialog.get_by_role("button", name="Save file"))
    assert "71+71 = 142" in json.dumps(json.loads(Path(download.value.path()).read_text()))
    expect(dialog).to_have_count(0)
    person.is_at(menu)
