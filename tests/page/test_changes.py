"""What a call has changed in the workspace, on its card: shown, taken back, refused where that would lose something."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import expect

from tests.page.conftest import PagedSystem
from tests.page.test_access import violations
from tests.page.test_chat import Visit, answered, ask
from tests.page.test_screens import overflow, shown


def write(path: str, content: str) -> dict[str, Any]:
    """What the model says to have a file written."""
    return {"tool_calls": [{"name": "write_file", "arguments": {"path": path, "content": content}}]}


def test_a_file_that_was_written_is_shown_and_taken_back_by_a_click(visit: Visit, paged: PagedSystem) -> None:
    paged.script({"user": "^write it", "replies": [write("todo.txt", "milk\n<b>bread</b>\n"), {"content": "Done."}]})
    paged.script({"user": "^again", "replies": [write("todo.txt", "tea\n"), {"content": "Done, too."}]})
    file = paged.system.data_dir / "workspace" / "todo.txt"
    visitor = visit()
    visitor.expected = lambda trouble: "409" in trouble
    page = visitor.open(paged.sign_in())
    ask(page, "write it")
    page.get_by_role("button", name="Allow once").click()
    answered(page)
    changes = page.get_by_label("Changes of this call").first
    changes.get_by_role("button", name="Changes").click()
    expect(changes.locator(".diff")).to_contain_text("+<b>bread</b>")
    assert violations(page, "article.turn") == []
    assert file.read_text() == "milk\n<b>bread</b>\n"
    ask(page, "again")
    page.get_by_role("button", name="Allow once").click()
    answered(page)
    changes.get_by_role("button", name="Undo").click()
    expect(changes.get_by_role("alert")).to_contain_text("was changed since; undo later changes first")
    latest = page.get_by_label("Changes of this call").last
    latest.get_by_role("button", name="Changes").click()
    latest.get_by_role("button", name="Undo").click()
    expect(latest.get_by_role("status")).to_have_text("Undone: the file was restored.")
    page.evaluate("location.hash = '#/activity/changes'")
    shown(page, "Activity")
    made = page.locator(".change").filter(has=page.get_by_role("button", name="Undo the changes of todo.txt"))
    made.get_by_text("What changed").click()
    expect(made.locator(".diff")).to_contain_text("+<b>bread</b>")
    page.set_viewport_size({"width": 360, "height": 740})
    assert (violations(page, "main"), overflow(page)) == ([], [0, 0, 0])
    made.get_by_role("button", name="Undo the changes of todo.txt").click()
    expect(page.locator(".screen [role=status]")).to_have_text("1 change undone: todo.txt")
    expect(made).to_have_count(0)
    assert not file.exists()
