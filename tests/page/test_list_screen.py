"""The list of conversations: folders, tags, the archive, and several at once."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import expect

from tests.page.conftest import PagedSystem, Visitor

HOSTILE = "<img src=x onerror=pwned()>"


def test_conversations_are_sorted_archived_and_deleted_together(
    visit: Callable[..., Visitor], paged: PagedSystem
) -> None:
    for number in range(3):
        paged.ask(f"What is {number}+1?", f"gulls{number}")
        paged.request("PATCH", f"/sessions/gulls{number}", json={"title": f"Gulls {number}"})
    page = visit().open(paged.sign_in())

    def item(number: int) -> str:
        return f".conv:has-text('Gulls {number}')"

    def choose(number: int, name: str) -> None:
        page.locator(item(number)).locator(".menu > button").click()
        page.get_by_role("menuitem", name=name).click()

    choose(0, "Move to folder")
    page.get_by_role("combobox", name="Folder").fill(HOSTILE)
    page.keyboard.press("Enter")
    folder = page.locator(".folder", has_text=HOSTILE)
    expect(folder.locator(item(0))).to_be_visible()
    page.locator(item(1)).drag_to(folder.locator("summary"))
    expect(folder.locator(item(1))).to_be_visible()
    folder.get_by_role("button", name="Rename or dissolve the folder").click()
    page.get_by_role("textbox", name="Name").fill("Birds")
    page.keyboard.press("Enter")
    expect(folder).to_have_count(0)
    folder = page.locator(".folder", has_text="Birds")
    expect(folder.locator(item(1))).to_be_visible()
    choose(2, "Tags")
    page.get_by_role("textbox", name="Tags").fill("sea, sun")
    page.keyboard.press("Enter")
    expect(page.locator(item(2)).locator(".tag")).to_have_text("#sea +1")
    options = page.get_by_role("button", name="What is listed")
    options.click()
    page.get_by_role("menuitemradio", name="#sea").click()
    expect(page.locator(".conv")).to_have_count(1)
    choose(2, "Archive")
    expect(page.locator(".conv")).to_have_count(0)
    page.get_by_role("button", name="Show all").click()
    options.click()
    page.get_by_role("menuitem", name="Select several").click()
    for number in range(2):
        page.get_by_role("checkbox", name=f"Select “Gulls {number}”").check()
    page.locator(".picked").get_by_role("button", name="Delete").click()
    expect(page.get_by_role("heading", name="Delete 2 conversations?")).to_be_visible()
    page.get_by_role("button", name="Delete 2 conversations").click()
    expect(page.locator(item(0))).to_have_count(0)
    expect(folder).to_have_count(0)
    options.focus()
    page.keyboard.press("Enter")
    page.get_by_role("menuitemradio", name=re.compile("^Archived$")).press("Enter")
    expect(page.locator(item(2))).to_be_visible()
    left = paged.request("GET", "/sessions?archived=any&query=gulls")["sessions"]
    assert [each["session_id"] for each in left if each["session_id"].startswith("gulls")] == ["gulls2"]
    page.get_by_role("button", name="Show all").click()
