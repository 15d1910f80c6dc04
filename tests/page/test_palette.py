"""Everything by its name: the palette, the first run, and cards that ask."""

from __future__ import annotations

import json
import re
import time
from typing import Any

from playwright.sync_api import Page, Route, expect

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
    expect(page.get_by_role("combobox")).to_be_focused()


def test_the_palette_finds_commands_conversations_and_participants_and_does_what_is_chosen(
    visit: Visit, paged: PagedSystem
) -> None:
    page = visit().open()
    ask(page, "What is the capital of Norway?")
    answered(page)
    session = session_of(page)
    open_palette(page)
    page.keyboard.type("new conv")
    expect(page.get_by_role("option", selected=True)).to_contain_text("New conversation")
    page.keyboard.press("Enter")
    expect(page.locator("#question")).to_be_focused()
    assert session_of(page) is None
    open_palette(page)
    page.keyboard.type("norway")
    expect(page.get_by_role("option", selected=True)).to_contain_text("capital of Norway")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"#/c/{session}"))
    open_palette(page)
    page.keyboard.type("participant gen")
    expect(page.get_by_role("option", selected=True)).to_contain_text("generator")
    page.keyboard.press("Enter")
    expect(page.locator(".inspector .known")).to_contain_text("ready")
    expect(page.locator(".subjects")).to_contain_text("query.received")
    open_palette(page)
    page.keyboard.type("ask as code")
    expect(page.get_by_role("option", selected=True)).to_contain_text("changes nothing")
    page.keyboard.press("Enter")
    with page.expect_request("**/query") as asked:
        ask(page, "What is the capital of France?")
    assert asked.value.post_data_json["profile"] == "code"
    answered(page)
    page.get_by_role("button", name="as code").click()
    expect(page.get_by_role("button", name="as code")).to_have_count(0)
    open_palette(page)
    assert violations(page) == []
    page.keyboard.type("qqqq")
    expect(page.locator("dialog")).to_contain_text("Nothing is called that.")
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)


GO = """async () => {
  const { src } = document.querySelector("script[type=module]");
  const { go } = await import(new URL("state/actions.js", src).href);
  const { currentId } = await import(new URL("state/store.js", src).href);
  go(null);
  return currentId.peek();
}"""


def test_a_key_that_comes_at_once_is_for_what_was_gone_to(visit: Visit, paged: PagedSystem) -> None:
    page = visit().open()
    ask(page, "What is 12+12?")
    answered(page)
    assert page.evaluate(GO) is None
    page.go_back()
    expect(page.locator("[data-answer]")).to_have_text("12+12 = 24")


def test_a_first_run_says_that_the_stand_in_answers_and_opens_the_way_to_a_model(
    visit: Visit, paged: PagedSystem
) -> None:
    page = visit().open()
    expect(page.locator("[data-state=stand-in]")).to_contain_text("The stand-in answers")
    page.route("**/models", lambda route: route.fulfill(json={"models": [], "current": "stand-in"}))
    page.route("**/models/pull", lambda route: route.fulfill(status=202, json={"name": "gemma4:12b"}))
    page.click("text=Get a model")
    page.get_by_role("button", name="Get gemma4:12b").click()
    pull = {
        "name": "gemma4:12b",
        "state": "running",
        "status": "pulling",
        "completed": 2_000_000_000,
        "total": 8_000_000_000,
    }
    page.evaluate(HEAR, ["state/system.js", "hearPull", pull])
    expect(page.get_by_role("progressbar")).to_have_attribute("value", "0.25")
    expect(page.locator(".pulling")).to_contain_text("2.0 GB of 8.0 GB")
    failed = {**pull, "state": "failed", "error": {"kind": "disk_full", "message": "the disk is full"}}
    page.evaluate(HEAR, ["state/system.js", "hearPull", failed])
    expect(page.locator(".pulling .trouble")).to_have_text("the disk is full")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator(".pulling[data-state=running]")).to_be_visible()
    page.click("dialog >> text=Close")
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
    open_palette(page)
    page.keyboard.type("settings of generator")
    expect(page.get_by_role("option", selected=True)).to_contain_text("Settings of generator")
    page.keyboard.press("Enter")
    expect(page.locator("dialog")).to_contain_text("standard: 200")
    page.get_by_label("max tokens").fill("none")
    expect(page.locator("dialog")).to_contain_text("A number is needed.")
    expect(page.get_by_role("button", name="Save")).to_be_disabled()
    page.get_by_label("max tokens").fill("300")
    page.get_by_label("is strict").uncheck()
    assert violations(page) == []
    page.click("dialog >> text=Save")
    expect(page.get_by_role("button", name="Restart generator")).to_be_visible()
    assert saved == [{"values": {"max_tokens": 300, "is_strict": False}}]


def test_who_has_not_brought_the_token_is_told_how_to(visit: Visit, paged: PagedSystem) -> None:
    visitor = visit()
    visitor.expected = lambda trouble: "401" in trouble
    page = visitor.open()
    page.click("text=Get a model")
    page.get_by_role("button", name="Get gemma4:12b").click()
    expect(page.locator(".pulling[data-state=failed]")).to_contain_text("open the link that LoCAL2 prints")


def test_a_model_is_offered_once_it_is_known_which_are_here(visit: Visit, paged: PagedSystem) -> None:
    page = visit().open()
    held: list[Route] = []
    page.route("**/models", lambda route: held.append(route))
    page.click("text=Get a model")
    expect(page.locator("dialog")).to_be_visible()
    expect(page.get_by_role("button", name="Get gemma4:12b")).to_have_count(0)
    here = {"models": [{"name": "gemma4:12b", "current": True}], "current": "gemma4:12b", "pulls": [], "note": None}
    for route in held:
        route.fulfill(json=here)
    expect(page.locator(".models").first).to_contain_text("gemma4:12b")
    expect(page.get_by_role("button", name="Get gemma4:e4b")).to_be_visible()
    expect(page.get_by_role("button", name="Get gemma4:12b")).to_have_count(0)


def test_a_press_that_ends_beside_a_dialog_leaves_it_open_and_one_that_begins_there_closes_it(
    visit: Visit, paged: PagedSystem
) -> None:
    page = visit().open()
    page.click("text=Get a model")
    page.locator("dialog h2").hover()
    page.mouse.down()
    page.mouse.move(2, 2)
    page.mouse.up()
    expect(page.locator("dialog")).to_be_visible()
    page.mouse.click(2, 2)
    expect(page.locator("dialog")).to_have_count(0)


def test_the_settings_that_there_are_can_be_looked_at(visit: Visit, paged: PagedSystem) -> None:
    page = visit().open()
    expect(page.locator(".rail")).to_be_visible()
    open_palette(page)
    page.keyboard.type("settings of critic")
    expect(page.get_by_role("option", selected=True)).to_contain_text("Settings of critic")
    page.keyboard.press("Enter")
    expect(page.locator(".setting").first).to_be_visible()
    expect(page.locator("dialog .help")).to_contain_text("critic.yaml")
    assert violations(page) == []


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


def test_a_card_that_asks_takes_no_focus_and_is_answered_by_its_own_keys_alone(
    visit: Visit, paged: PagedSystem
) -> None:
    page = visit().open()
    decisions: list[Any] = []
    answer_approvals(page, decisions)
    ask(page, "What is 6+6?")
    answered(page)
    page.focus("#question")
    approval(page)
    card = page.get_by_role("group", name="shell_exec wants to run a command, which cannot be undone")
    expect(card).to_contain_text("rm -r 'old notes'")
    expect(card).to_contain_text("example.org")
    expect(page.locator("[data-spoken]")).to_have_text("shell_exec asks for leave")
    assert violations(page) == []
    expect(page.locator("#question")).to_be_focused()
    page.keyboard.type("yn")
    expect(page.locator("#question")).to_have_value("yn")
    page.locator("article.turn").last.focus()
    page.keyboard.press("y")
    expect(card).to_be_visible()
    card.get_by_role("button", name="Deny").focus()
    page.keyboard.press("n")
    expect(card).to_have_count(0)
    assert decisions == [{"decision": "deny", "by": "page"}]


def test_what_waits_is_asked_again_after_a_reload_and_ends_when_another_door_has_answered(
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


def test_an_answer_that_does_not_arrive_leaves_the_card_and_says_so(visit: Visit, paged: PagedSystem) -> None:
    visitor = visit()
    visitor.expected = lambda trouble: "503" in trouble
    page = visitor.open()
    ask(page, "What is 8+8?")
    answered(page)
    approval(page)
    failure = json.dumps({"error": {"kind": "unavailable", "message": "the gatekeeper is not there"}})
    page.route("**/approvals/*", lambda route: route.fulfill(status=503, body=failure))
    page.get_by_role("button", name="Allow once").click()
    expect(page.locator(".ask")).to_contain_text("Your answer did not arrive: the gatekeeper is not there")


def test_a_question_of_the_model_is_answered_with_one_of_its_options_or_with_words(
    visit: Visit, paged: PagedSystem
) -> None:
    page = visit().open()
    answers: list[Any] = []
    answer_approvals(page, answers)
    ask(page, "What is 9+9?")
    answered(page)
    question = {"question": "Which roast?", "options": ["The washed one", "The natural one"]}
    approval(page, tool="request_clarification", args=question)
    expect(page.locator(".ask")).to_contain_text(
        "This conversation has words from example.org: they may be why it asks."
    )
    page.get_by_role("button", name="The natural one").click()
    expect(page.locator(".ask")).to_have_count(0)
    approval(page, tool="request_clarification", args={"question": "Why?"}, call_id="call-2")
    page.get_by_label("Your answer").fill("Because.")
    page.keyboard.press("Enter")
    expect(page.locator(".ask")).to_have_count(0)
    assert answers == [
        {"decision": "allow", "answer": "The natural one", "by": "page"},
        {"decision": "allow", "answer": "Because.", "by": "page"},
    ]


def test_what_opens_over_the_page_says_so_where_it_cannot_be_fetched_and_is_tried_again(visit: Visit) -> None:
    visitor = visit()
    visitor.expected = lambda trouble: "ERR_FAILED" in trouble or "dialogs.js" in trouble
    visitor.context.route("**/views/dialogs.js", lambda route: route.abort())
    page = visitor.open()
    page.keyboard.press("Control+k")
    expect(page.get_by_text("This part of the page could not be fetched")).to_be_visible()
    visitor.context.unroute("**/views/dialogs.js")
    open_palette(page)
