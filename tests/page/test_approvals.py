"""A call that wants leave, on its card: allowed, denied, answered at another frontend, or before signing in."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.page.conftest import PagedSystem
from tests.page.test_access import violations
from tests.page.test_changes import write
from tests.page.test_chat import Visit, answered, ask


def card_of(page: Page) -> Locator:
    return page.get_by_role("group", name="write_file wants to change a file, which can be undone")


def calls_of(page: Page, paged: PagedSystem) -> list[dict[str, Any]]:
    """What has become of the calls of the latest turn, on record."""
    query_id = page.locator("article.turn").last.get_attribute("data-query")
    return paged.request("GET", f"/query/{query_id}")["tool_calls"]  # type: ignore[no-any-return]


def test_a_call_is_made_when_its_card_is_allowed_and_not_when_it_is_denied(visit: Visit, paged: PagedSystem) -> None:
    paged.script({"user": "^first list", "replies": [write("list.txt", "milk\n"), {"content": "It is there."}]})
    paged.script({"user": "^second list", "replies": [write("list.txt", "tea\n")]})
    file = paged.system.data_dir / "workspace" / "list.txt"
    page = visit().open(paged.sign_in())
    ask(page, "first list")
    expect(card_of(page)).to_contain_text("list.txt")
    expect(card_of(page)).to_contain_text("added: milk")
    expect(card_of(page)).not_to_contain_text("What it changes can be undone.")  # as its heading says
    expect(page.locator(".pending")).to_contain_text("waiting for you")
    assert violations(page, "article.turn") == []
    assert not file.exists()
    card_of(page).get_by_role("button", name="Allow once").click()
    expect(card_of(page)).to_have_count(0)
    answered(page)
    assert [(call["tool"], call["error"]) for call in calls_of(page, paged)] == [("write_file", None)]
    assert file.read_text() == "milk\n"
    ask(page, "second list")
    card_of(page).get_by_role("button", name="Deny").click()
    answered(page)
    expect(page.locator("[data-answer]").last).to_contain_text("the user said no")
    assert [call["error"]["kind"] for call in calls_of(page, paged)] == ["denied"]
    assert file.read_text() == "milk\n"


def test_a_card_says_how_to_sign_in_and_is_answered_then(visit: Visit, paged: PagedSystem) -> None:
    paged.script({"user": "^third list", "replies": [write("third.txt", "milk\n"), {"content": "It is there."}]})
    paged.script({"user": "^fourth list", "replies": [write("fourth.txt", "tea\n"), {"content": "It is not there."}]})
    visitor = visit()
    visitor.expected = lambda trouble: "401" in trouble
    page = visitor.open()
    ask(page, "third list")
    card_of(page).get_by_role("button", name="Allow once").click()
    expect(card_of(page).get_by_role("alert")).to_contain_text("enter the code that local2 code prints")
    assert violations(page, "article.turn") == []
    card_of(page).get_by_role("button", name="Sign in").click()
    page.keyboard.type("0000-1111")
    page.keyboard.press("Enter")
    bar = page.get_by_role("region", name="Sign in")
    expect(bar.get_by_role("alert")).to_contain_text("run `local2 code` for a new code")
    bar.get_by_label("Code").fill(paged.code().lower())
    page.keyboard.press("Enter")
    expect(bar).to_have_count(0)
    card_of(page).get_by_role("button", name="Allow once").click()
    answered(page)
    assert (paged.system.data_dir / "workspace" / "third.txt").read_text() == "milk\n"
    ask(page, "fourth list")
    expect(card_of(page)).to_be_visible()
    call_id = card_of(page).get_attribute("data-call")
    paged.request("POST", f"/approvals/{call_id}", json={"decision": "deny", "by": "terminal"})
    expect(card_of(page)).to_have_count(0)
    answered(page)
    paged.request("POST", "/sign-out", json={"everywhere": True}, headers=paged.authorization)
    page.reload()
    expect(bar).to_be_visible()
    expect(page.locator("article.turn").first).to_be_visible()  # which the owner's Unix user may read all the same


def test_the_permissions_that_are_chosen_for_a_conversation_are_those_of_its_questions(
    visit: Visit, paged: PagedSystem
) -> None:
    paged.script({"user": "^sixth list", "replies": [write("sixth.txt", "milk\n"), {"content": "It is there."}]})
    page = visit().open(paged.sign_in())
    page.get_by_role("button", name="How it is answered").click()
    chosen = page.get_by_role("dialog").get_by_label("Permissions")
    chosen.select_option("Change files without asking")
    page.get_by_role("dialog").get_by_role("button", name="Save").click()
    ask(page, "sixth list")
    answered(page)
    assert [(call["tool"], call["error"]) for call in calls_of(page, paged)] == [("write_file", None)]
    page.reload()
    page.get_by_role("button", name="Change files without asking ×").click()
    ask(page, "sixth list, once more")
    card_of(page).get_by_role("button", name="Deny").click()
    answered(page)


def said(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"tool_calls": [{"name": tool, "arguments": arguments}]}


def test_a_plan_is_read_and_approved_on_its_card_and_followed_with_ticks(visit: Visit, paged: PagedSystem) -> None:
    plan = said("propose_plan", title="A fifth list", steps=["write it", "praise it"])
    steps = (said("plan_step", step=1, state="done"), said("todo", items=[{"text": "rest", "state": "doing"}]))
    replies = [plan, write("fifth.txt", "milk\n"), *steps, {"content": "It is there."}]
    paged.script({"user": "^fifth list", "replies": replies})
    page = visit().open(paged.sign_in())
    ask(page, "fifth list")
    card = page.get_by_role("group", name="A plan for you to approve: A fifth list")
    expect(card.get_by_role("listitem")).to_have_text(["write it", "praise it"])
    assert violations(page, "article.turn") == []
    card.get_by_role("button", name="Approve, with edits").click()
    answered(page)
    assert (paged.system.data_dir / "workspace" / "fifth.txt").read_text() == "milk\n"
    assert [call["tool"] for call in calls_of(page, paged)] == ["propose_plan", "write_file", "plan_step", "todo"]
    kept = page.locator("article.turn").last.locator("details.todo")
    expect(kept.locator("summary")).to_have_text(["Plan: A fifth list 1 of 2 done", "To do 0 of 1 done"])
    kept.first.locator("summary").click()
    expect(kept.first.get_by_role("listitem")).to_have_text(["✓done: write it", "○open: praise it"])
    assert violations(page, "article.turn") == []


@pytest.mark.thorough
def test_a_folder_is_asked_about_once_and_its_files_are_trusted_from_then_on(visit: Visit, paged: PagedSystem) -> None:
    replies = [said("read_file", path="theirs.txt"), {"content": "It is about tea."}]
    paged.script({"user": "^(read|and again)", "replies": replies})
    file = paged.system.data_dir / "workspace" / "theirs.txt"
    file.write_text("tea\n")
    page = visit().open(paged.sign_in())
    ask(page, "read it")
    card = page.get_by_role("group", name="Do you trust this folder?")
    expect(card.get_by_label("Effect of the call")).to_have_text(f"folder: {file.parent}")
    expect(card).to_contain_text("Trust it only if you would follow what its files say")
    expect(card.get_by_role("button")).to_have_text(["Trust the folder Y", "Do not trust it N"])
    assert violations(page, "article.turn") == []
    card.get_by_role("button", name="Trust the folder").click()
    answered(page)
    expect(card).to_have_count(0)
    expect(page.locator("article.turn [data-call]").get_by_text("untrusted")).to_have_count(0)
    ask(page, "and again")
    answered(page)
    assert [call["tainted"] for call in calls_of(page, paged)] == [False]
    file.unlink()
