"""A call that wants leave, on its card: allowed, denied, answered at another door, or by somebody without the token."""

from __future__ import annotations

from typing import Any

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
    page = visit().open(f"#token={paged.owner_token}")
    ask(page, "first list")
    expect(card_of(page)).to_contain_text("list.txt")
    expect(card_of(page)).to_contain_text("added: milk")
    expect(card_of(page)).to_contain_text("What it changes can be undone.")
    expect(page.locator(".pending")).to_contain_text("waiting for you")
    assert violations(page) == []
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


def test_without_the_token_a_card_says_where_it_is_and_takes_it(visit: Visit, paged: PagedSystem) -> None:
    paged.script({"user": "^third list", "replies": [write("third.txt", "milk\n"), {"content": "It is there."}]})
    paged.script({"user": "^fourth list", "replies": [write("fourth.txt", "tea\n"), {"content": "It is not there."}]})
    visitor = visit()
    visitor.expected = lambda trouble: "401" in trouble
    page = visitor.open()
    ask(page, "third list")
    card_of(page).get_by_role("button", name="Allow once").click()
    expect(card_of(page).get_by_role("alert")).to_contain_text("in the file api_token of its data directory")
    assert violations(page) == []
    card_of(page).get_by_role("button", name="Give the token").click()
    page.get_by_label("Token").fill(paged.owner_token)
    page.keyboard.press("Enter")
    card_of(page).get_by_role("button", name="Allow once").click()
    answered(page)
    assert (paged.system.data_dir / "workspace" / "third.txt").read_text() == "milk\n"
    ask(page, "fourth list")
    expect(card_of(page)).to_be_visible()
    call_id = card_of(page).get_attribute("data-call")
    paged.request("POST", f"/approvals/{call_id}", json={"decision": "deny", "by": "terminal"})
    expect(card_of(page)).to_have_count(0)
    answered(page)
