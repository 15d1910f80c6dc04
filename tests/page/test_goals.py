"""What the heartbeat has said of a goal: shown on every page, until it is seen on one of them."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.page.conftest import PagedSystem
from tests.page.test_access import violations
from tests.page.test_chat import Visit


@pytest.mark.thorough
def test_the_words_of_a_goal_stand_on_the_page_until_they_are_seen(visit: Visit, paged: PagedSystem) -> None:
    page = visit().open()
    goal = paged.request("POST", "/goals", json={"text": "Remind me to water the ficus"})
    paged.request("POST", "/goals/now")
    note = page.locator(".bar-note", has_text="You wanted to water the ficus")
    expect(note).to_contain_text("Remind me to water the ficus:")
    assert violations(page, ".bar-note") == []
    note.get_by_role("button", name="Close this notice").click()
    expect(note).to_have_count(0)
    page.reload()
    expect(note).to_have_count(1)
    with page.expect_response(f"**/goals/{goal['goal_id']}"):
        note.get_by_role("button", name="Got it").click()
    expect(note).to_have_count(0)
    paged.request("PATCH", f"/goals/{goal['goal_id']}", json={"state": "dropped"})
    [seen] = [each for each in paged.request("GET", "/goals")["goals"] if each["goal_id"] == goal["goal_id"]]
    assert (seen["is_seen"], seen["state"]) == (True, "dropped")
