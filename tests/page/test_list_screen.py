"""The list of conversations: folders, tags, the archive, and several at once."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

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
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(page.locator(item(0))).to_have_count(0)
    expect(folder).to_have_count(0)
    options.focus()
    page.keyboard.press("Enter")
    page.get_by_role("menuitemradio", name=re.compile("^Archived$")).press("Enter")
    expect(page.locator(item(2))).to_be_visible()
    left = paged.request("GET", "/sessions?archived=any&query=gulls")["sessions"]
    assert [each["session_id"] for each in left if each["session_id"].startswith("gulls")] == ["gulls2"]
    page.get_by_role("button", name="Show all").click()


def test_a_file_of_another_program_is_imported_and_a_title_of_the_model_appears_in_the_list(
    visit: Callable[..., Visitor], paged: PagedSystem, tmp_path: Path
) -> None:
    messages = [
        {"messageId": "1", "isCreatedByUser": True, "text": f"Which terns? {HOSTILE}"},
        {"messageId": "2", "parentMessageId": "1", "isCreatedByUser": False, "text": "Arctic ones."},
    ]
    file, wrong = tmp_path / "chat.json", tmp_path / "notes.json"
    file.write_text(json.dumps({"conversationId": "terns", "title": "Terns", "messages": messages}))
    wrong.write_text('{"notes": []}')
    visitor = visit()
    visitor.expected = lambda trouble: "422" in trouble
    page = visitor.open(paged.sign_in())
    paged.ask("Where do ospreys that breed in Scotland spend the winter, and how do they get there?", "ospreys")
    page.get_by_role("button", name="What is listed").click()
    page.get_by_role("menuitem", name="Import conversations").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("File").set_input_files(wrong)
    expect(dialog.get_by_role("alert")).to_contain_text("an object with the fields 'notes'")
    dialog.get_by_label("File").set_input_files(file)
    expect(dialog).to_contain_text("1 conversation with 1 question from LibreChat.")
    dialog.get_by_role("button", name="Import 1 conversation").click()
    expect(dialog).to_have_count(0)
    page.locator(".conv", has_text="Terns").locator("a").click()
    expect(page.locator(".bar .tag")).to_have_text("from LibreChat")
    expect(page.get_by_text("Arctic ones.")).to_be_visible()
    titled = "Where do ospreys that breed in Scotland spend the winter…"  # by the stand-in, in sixty characters
    expect(page.locator(".conv .title", has_text="ospreys")).to_have_text(titled)
