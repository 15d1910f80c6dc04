"""Everything by its name: the palette, the first run, and cards that ask."""

from __future__ import annotations

import json
import re
import time
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.page.conftest import PagedSystem
from tests.page.test_access import violations
from tests.page.test_chat import Visit, answered, ask, session_of

# What the stream would have brought.
HEAR = """async ([file, name, event]) => {
  const { src } = document.querySelector("script[type=module]");
  (await import(new URL(file, src).href))[name](event);
}"""


def open_palette(page: Page) -> None:
    page.keyboard.press("Control+k")
    expect(page.get_by_role("combobox", name="Search and commands")).to_be_focused()


def chosen(page: Page) -> Locator:
    return page.get_by_role("listbox", name="Results").get_by_role("option", selected=True)


def test_the_palette_finds_commands_conversations_and_participants_and_does_what_is_chosen(
    visit: Visit, paged: PagedSystem
) -> None:
    page = visit().open()
    ask(page, "What is the capital of Norway?")
    answered(page)
    session = session_of(page)
    open_palette(page)
    page.keyboard.type("new conv")
    expect(chosen(page)).to_contain_text("New conversation")
    page.keyboard.press("Enter")
    expect(page.locator("#question")).to_be_focused()
    assert session_of(page) is None
    open_palette(page)
    page.keyboard.type("norway")
    expect(chosen(page)).to_contain_text("capital of Norway")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"#/c/{session}"))
    open_palette(page)
    page.keyboard.type("participant gen")
    expect(chosen(page)).to_contain_text("generator")
    page.keyboard.press("Enter")
    expect(page.locator(".inspector .known")).to_contain_text("ready")
    expect(page.locator(".subjects")).to_contain_text("query.received")
    open_palette(page)
    page.keyboard.type("ask as code")
    expect(chosen(page)).to_contain_text("changes nothing")
    page.keyboard.press("Enter")
    with page.expect_request("**/query") as asked:
        ask(page, "What is the capital of France?")
    assert asked.value.post_data_json["profile"] == "code"
    answered(page)
    page.get_by_role("button", name="as code ×").click()
    expect(page.get_by_role("button", name="as code ×")).to_have_count(0)
    open_palette(page)
    assert violations(page, "dialog") == []
    page.keyboard.type("qqqq")
    expect(page.locator("dialog")).to_contain_text("Nothing was found.")
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)


def test_screens_their_parts_and_settings_are_found_by_everyday_words(visit: Visit, paged: PagedSystem) -> None:
    page = visit().open()
    for words, title, address in (
        ("dark", "This page: theme and text size", "#/settings"),
        ("language", "SOUL.md", "#/memory/soul"),
        ("backup", "Backups", "#/system/backups"),
        ("invite", "Users", "#/system/users"),
        ("temperature", "temperature", "#/settings/generator/temperature"),
    ):
        open_palette(page)
        page.keyboard.type(words)
        option = page.get_by_role("option").filter(has_text=re.compile(f"^{title}")).first
        expect(option).to_be_visible()
        option.click()
        expect(page).to_have_url(re.compile(f"{address}$"))


def test_an_address_without_a_conversation_says_so(visit: Visit, paged: PagedSystem) -> None:
    visitor = visit()
    visitor.expected = lambda trouble: "404" in trouble
    page = visitor.open("#/c/nosuch")
    expect(page.get_by_role("alert")).to_contain_text("This conversation does not exist")
    page.get_by_role("button", name="New conversation").last.click()
    expect(page.locator("#question")).to_be_focused()
    assert session_of(page) is None


def test_a_first_run_says_that_the_stand_in_answers_and_opens_the_way_to_a_model(
    visit: Visit, paged: PagedSystem
) -> None:
    visitor = visit()
    visitor.expected = lambda trouble: "401" in trouble
    page = visitor.open()
    expect(page.locator("[data-state=stand-in]")).to_contain_text("The stand-in answers")
    page.click("text=Get a model")
    page.get_by_role("button", name="Get gemma4:12b").click()  # by somebody who is not signed in
    expect(page.locator(".pulling[data-state=failed]")).to_contain_text("enter the code that `local2 code` prints")
    open_palette(page)
    page.locator("dialog input").hover()  # a press that ends beside a dialog leaves it open
    page.mouse.down()
    page.mouse.move(2, 2)
    page.mouse.up()
    expect(page.locator("dialog")).to_be_visible()
    page.mouse.click(2, 2)
    expect(page.locator("dialog")).to_have_count(0)
    page.keyboard.press("g")
    page.keyboard.press("c")
    held: list[Route] = []
    page.route("**/models", lambda route: held.append(route))
    page.route("**/models/pull", lambda route: route.fulfill(status=202, json={"name": "gemma4:e4b"}))
    page.click("text=Get a model")
    expect(page.get_by_role("link", name="Models")).to_have_attribute("aria-current", "page")
    here = {"models": [{"name": "gemma4:12b", "current": True}], "current": "gemma4:12b", "pulls": [], "note": None}
    for route in held:
        route.fulfill(json=here)
    expect(page.locator(".models").first).to_contain_text("gemma4:12b")
    page.get_by_role("button", name="Get gemma4:e4b").click()
    expect(page.get_by_role("button", name="Get gemma4:12b")).to_have_count(0)
    pull = {"name": "gemma4:e4b", "state": "running", "status": "pulling", "completed": 2 * 10**9, "total": 8 * 10**9}
    page.evaluate(HEAR, ["state/system.js", "hearPull", pull])
    expect(page.get_by_role("progressbar")).to_have_attribute("value", "0.25")
    expect(page.locator(".pulling").last).to_contain_text("2.0 GB of 8.0 GB")
    failed = {**pull, "state": "failed", "error": {"kind": "disk_full", "message": "the disk is full"}}
    page.evaluate(HEAR, ["state/system.js", "hearPull", failed])
    expect(page.locator(".pulling .trouble").last).to_have_text("the disk is full")
    page.click("text=Later")
    expect(page.locator("[data-state=stand-in]")).to_have_count(0)


SCHEMA = {
    "properties": {
        "max_tokens": {"type": "integer", "minimum": 1, "description": "After so many it ends."},
        "mode": {"enum": ["auto", "off"], "type": "string"},
        "is_strict": {"type": "boolean"},
    }
}


def test_settings_are_a_form_that_says_what_is_wrong_and_saves_what_was_changed_alone(
    visit: Visit, paged: PagedSystem
) -> None:
    saved: list[Any] = []
    shown = {
        "name": "generator", "schema": SCHEMA, "file": "/x/generator.yaml", "restart_needed": ["generator"],
        "values": {"max_tokens": 100, "mode": "auto", "is_strict": True}, "defaults": {"max_tokens": 200},
    }  # fmt: skip

    def answer(route: Route) -> None:
        if route.request.method == "PUT":
            saved.append(route.request.post_data_json)
        route.fulfill(json=shown)

    page = visit().open()
    page.route("**/settings/generator", answer)
    for name in ("critic", "generator"):  # as they are, and as a form with one field of each kind
        open_palette(page)
        page.keyboard.type(f"settings of {name}")
        expect(chosen(page)).to_contain_text(f"Settings of {name}")
        page.keyboard.press("Enter")
        expect(page.locator(".section .help")).to_contain_text(f"{name}.yaml")
        expect(page.locator(".setting").first).to_be_visible()
    expect(page.locator(".section")).to_contain_text("default: 200")
    page.get_by_label("max tokens").fill("none")
    expect(page.locator(".section")).to_contain_text("A number is needed.")
    expect(page.get_by_role("button", name="Save")).to_be_disabled()
    page.get_by_label("max tokens").fill("300")
    page.get_by_label("is strict").uncheck()
    assert violations(page, ".section") == []
    page.click(".section >> text=Save")
    expect(page.get_by_role("button", name="Restart generator")).to_be_visible()
    assert saved == [{"values": {"max_tokens": 300, "is_strict": False}}]


def approval(page: Page, **more: Any) -> dict[str, Any]:
    """A tool asks in the conversation that is shown; returns what it asks."""
    asked = {
        "call_id": "call-1",
        "query_id": "q",
        "session_id": session_of(page),
        "tool": "shell_exec",
        "level": "L2",
        "args": {"argv": ["rm", "-r", "old notes"]},
        "sources": ["example.org"],
        "asked_at": time.time(),
        "expires_at": time.time() + 300,
        **more,
    }
    page.evaluate(HEAR, ["state/approvals.js", "hearApproval", asked])
    return asked


def answer_approvals(page: Page, decisions: list[Any]) -> None:
    """Take what the page decides."""

    def take(route: Route) -> None:
        decisions.append(route.request.post_data_json)
        route.fulfill(json={})

    page.route("**/approvals/*", take)


def test_a_card_takes_no_focus_and_is_answered_by_its_own_keys_an_option_or_words(
    visit: Visit, paged: PagedSystem
) -> None:
    visitor = visit()
    visitor.expected = lambda trouble: "503" in trouble
    page = visitor.open()
    ask(page, "What is 6+6?")
    answered(page)
    page.focus("#question")
    failure = json.dumps({"error": {"kind": "unavailable", "message": "the gatekeeper is not there"}})
    page.route("**/approvals/*", lambda route: route.fulfill(status=503, body=failure))
    approval(page)
    card = page.get_by_role("group", name="shell_exec wants to run a command, which cannot be undone")
    expect(card).to_contain_text("rm -r 'old notes'")
    expect(card).to_contain_text("example.org")
    assert violations(page, ".ask") == []
    expect(page.locator("#question")).to_be_focused()
    page.keyboard.type("yn")
    expect(page.locator("#question")).to_have_value("yn")
    card.get_by_role("button", name="Allow once").click()
    expect(card).to_contain_text("Your answer did not arrive: the gatekeeper is not there")
    decisions: list[Any] = []
    answer_approvals(page, decisions)
    page.locator("article.turn").last.focus()
    page.keyboard.press("y")
    expect(card).to_be_visible()
    card.get_by_role("button", name="Deny").focus()
    page.keyboard.press("n")
    expect(card).to_have_count(0)
    question = {"question": "Which roast?", "options": ["The washed one", "The natural one"]}
    approval(page, tool="request_clarification", args=question, call_id="call-2")
    expect(page.locator(".ask")).to_contain_text("This conversation contains untrusted content from example.org")
    page.get_by_role("button", name="The natural one").click()
    expect(page.locator(".ask")).to_have_count(0)
    approval(page, tool="request_clarification", args={"question": "Why?"}, call_id="call-3")
    page.get_by_label("Your answer").fill("Because.")
    page.keyboard.press("Enter")
    expect(page.locator(".ask")).to_have_count(0)
    assert decisions == [
        {"decision": "deny", "by": "page"},
        {"decision": "allow", "answer": "The natural one", "by": "page"},
        {"decision": "allow", "answer": "Because.", "by": "page"},
    ]


@pytest.mark.thorough
def test_what_waits_is_asked_again_after_a_reload_and_ends_when_another_frontend_has_answered(
    visit: Visit, paged: PagedSystem
) -> None:
    page = visit().open()
    ask(page, "What is 7+7?")
    answered(page)
    asked = approval(page)
    expect(page.locator(".ask")).to_be_visible()
    page.reload()
    answered(page)
    for _ in range(2):  # the stream tells it again, as often as it connects
        page.evaluate(HEAR, ["state/approvals.js", "hearApproval", asked])
    expect(page.locator(".ask")).to_have_count(1)
    expect(page.locator(".asks")).not_to_contain_text("behind it")
    decided = {"call_id": "call-1", "decision": "allow", "by": "terminal"}
    page.evaluate(HEAR, ["state/approvals.js", "hearApproval", decided])
    expect(page.locator(".ask")).to_have_count(0)


@pytest.mark.thorough
def test_what_opens_over_the_page_says_so_where_it_cannot_be_fetched_and_is_tried_again(visit: Visit) -> None:
    visitor = visit()
    visitor.expected = lambda trouble: "ERR_FAILED" in trouble or "dialogs.js" in trouble
    visitor.context.route("**/views/dialogs.js", lambda route: route.abort())
    page = visitor.open()
    page.keyboard.press("Control+k")
    expect(page.get_by_text("This part of the page could not be loaded")).to_be_visible()
    visitor.context.unroute("**/views/dialogs.js")
    open_palette(page)
