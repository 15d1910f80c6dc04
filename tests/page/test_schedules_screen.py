"""Jobs made, run, paused and removed on their screen; a schedule is explained before it is made."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.page.conftest import PagedSystem
from tests.page.test_access import violations
from tests.page.test_chat import Visit
from tests.page.test_screens import overflow

HOSTILE = '<img src=x onerror="pwned()">'


def test_a_schedule_is_explained_made_run_and_removed_by_keyboard_alone(visit: Visit, paged: PagedSystem) -> None:
    paged.script({"user": "^What is new", "replies": [{"content": f"Nothing is new. {HOSTILE}"}]})
    page = visit().open("#/schedules")
    page.get_by_role("link", name="New schedule").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    expect(page.get_by_text("Every day at 8:00.")).to_be_visible()
    page.get_by_label("When").fill("61 * * * *")
    expect(page.get_by_role("alert")).to_contain_text("minute is invalid; expected a cron expression")
    page.get_by_role("button", name="Monday to Friday at 9:00").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("Monday to Friday at 9:00.")).to_be_visible()
    expect(page.get_by_text("Next:")).to_be_visible()
    page.get_by_role("button", name="Save schedule").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_have_text("Write what is to be asked.")
    assert violations(page, "main") == []
    page.get_by_label("Question", exact=True).fill("What is new?")
    page.get_by_label("Name", exact=True).fill(f"News {HOSTILE}")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text(f"News {HOSTILE}")
    expect(page.locator(".facts")).to_contain_text("Monday to Friday at 9:00")
    expect(page.locator(".facts")).to_contain_text("Only read")
    page.get_by_role("button", name="Run News").focus()
    page.keyboard.press("Enter")
    expect(page.locator(".words").last).to_contain_text("Nothing is new.")
    expect(page.get_by_text("started by hand")).to_be_visible()
    assert violations(page, "main") == []
    page.get_by_role("button", name="Pause News").press("Enter")
    expect(page.locator(".facts")).to_contain_text("paused")
    page.get_by_role("button", name="Remove News").press("Enter")
    expect(page.get_by_role("dialog")).to_contain_text("The conversations of its runs stay.")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Schedules")
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    expect(page.get_by_text("There is no job yet")).to_be_visible()


def test_on_a_phone_jobs_are_cards_and_a_looser_mode_needs_the_token(visit: Visit, paged: PagedSystem) -> None:
    order = {"prompt": "Summarise my day", "schedule": "every 30m", "name": "Evening"}
    job = paged.request("POST", "/cron", json=order)
    visitor = visit(viewport={"width": 360, "height": 740}, color_scheme="dark")
    visitor.expected = lambda trouble: "401" in trouble
    page = visitor.open("#/schedules")
    expect(page.get_by_role("row", name="Evening")).to_contain_text("Every 30 minutes")
    assert overflow(page) == [0, 0, 0]
    assert violations(page, "main") == []
    page.get_by_role("button", name="Pause Evening").click()
    expect(page.get_by_role("row", name="Evening")).to_contain_text("paused")
    page.get_by_role("link", name="Evening").click()
    page.get_by_role("link", name="Change").click()
    expect(page.get_by_label("Question", exact=True)).to_have_value("Summarise my day")
    page.get_by_label("Name").fill("Late evening")
    page.get_by_role("button", name="Save changes").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Late evening")
    page.get_by_role("link", name="All schedules").click()
    page.get_by_role("link", name="New schedule").click()
    page.get_by_label("Question", exact=True).fill("Tidy up")
    page.get_by_text("Change files without asking").click()
    page.get_by_role("button", name="Save schedule").click()
    expect(page.get_by_role("alert").last).to_contain_text("sign in first")
    assert overflow(page) == [0, 0, 0]
    paged.request("DELETE", f"/cron/{job['job_id']}")
