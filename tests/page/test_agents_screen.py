"""The agents under their questions, the goals, and what is done while nobody asks anything."""

from __future__ import annotations

import json
from typing import Any

from playwright.sync_api import Page, Route, expect

from tests.page.conftest import PagedSystem
from tests.page.test_access import violations
from tests.page.test_chat import Visit
from tests.page.test_screens import overflow

HOSTILE = '<img src=x onerror="pwned()"> [a](javascript:pwned())'
BUDGET = {"tokens": 20_000, "seconds": 600.0, "calls": 30, "children": 4}
USED = {"tokens": 4_200, "seconds": 12.0, "calls": 3, "children": 1}


def agent(name: str, parent: str | None = None, **more: Any) -> dict[str, Any]:
    """An agent as the API shows it."""
    told = {
        "agent_id": f"id-{name}", "name": name, "parent_id": parent, "depth": 1 if parent is None else 2,
        "state": "WORKING", "root_query_id": "q1", "root_session_id": "trip", "parent_query_id": "q1",
        "question": "Compare the night trains to Oslo", "task": f"Read what {name} is about", "task_query_id": "t1",
        "tasks": 1, "answer": None, "error": None, "tainted": False, "budget": BUDGET, "used": USED,
        "made_at": 1_790_000_000.0, "ended_at": None,
    }  # fmt: skip
    return {**told, **more}


AGENTS = [
    agent("scout"),
    agent("timetable", "id-scout", state="READY"),
    agent("prices", tainted=True),
    agent("old", root_query_id="q0", question=HOSTILE, task=HOSTILE, state="ENDED", ended_at=1_790_000_100.0),
]
TASK = {
    "query_id": "t1", "text": "Read the timetable", "state": "answered", "answer": HOSTILE, "error": None,
    "sources": ["trains.example"], "tokens": 900, "asked_at": 1_790_000_010.0,
}  # fmt: skip
LETTER = {"sender": "scout", "to": "root", "text": HOSTILE, "at": 1_790_000_020.0, "is_read": False, "tainted": True}


def play(page: Page, url: str) -> list[str]:
    """Answer as a swarm with these agents, which the shared system's small model has no tools to make. Returns what was
    stopped.
    """
    stopped: list[str] = []

    def answer(route: Route) -> None:
        path = route.request.url.removeprefix(f"{url}/agents")
        if route.request.method == "POST":
            stopped.append(path)
            AGENTS[0].update(state="STOPPING")
        body = {"agents": AGENTS} if not path else {**AGENTS[0], "given": [TASK], "letters": [LETTER]}
        route.fulfill(body=json.dumps(body), content_type="application/json")

    page.route(f"{url}/agents**", answer)
    return stopped


def test_agents_stand_under_their_question_are_opened_read_and_stopped(visit: Visit, paged: PagedSystem) -> None:
    page = visit().open()
    stopped = play(page, paged.url)
    page.evaluate("location.hash = '#/agents'")
    question = page.locator(".root-question").first
    expect(question.get_by_role("heading")).to_contain_text("Compare the night trains to Oslo")
    assert question.locator(".branches .branches .branch-line").all_inner_texts()[0].startswith("timetable")
    expect(page.locator(".root-question")).to_have_count(2)
    assert violations(page, "main") == []
    page.get_by_role("link", name="scout").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("scout")
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    expect(page.get_by_text(HOSTILE)).to_have_count(2)
    expect(page.locator("main")).to_contain_text("scout to the answering model")
    assert violations(page, "main") == []
    page.get_by_role("button", name="Stop scout").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog", name="Stop scout?")).to_contain_text("the 1 agent below it")
    expect(page.get_by_role("button", name="Cancel")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Stop scout")).to_be_focused()
    assert stopped == []
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Stop it").click()
    expect(page.get_by_text("stopping")).to_be_visible()
    assert stopped == ["/id-scout/stop"]
    page.get_by_role("link", name="All agents").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Agents")
    expect(page.get_by_role("heading", level=1)).to_be_focused()


def test_a_goal_is_set_checked_reached_and_taken_up_again(visit: Visit, paged: PagedSystem) -> None:
    page = visit(viewport={"width": 360, "height": 740}, color_scheme="dark").open("#/agents/goals")
    page.get_by_label("New goal").fill("Hand in the tax return")
    page.get_by_label("Check it").select_option("Every Friday at 18:00")
    page.get_by_role("button", name="Set goal").press("Enter")
    goal = page.locator(".things > li", has_text="Hand in the tax return")
    expect(goal).to_contain_text("Every Friday at 18:00")
    assert overflow(page) == [0, 0, 0]
    assert violations(page, "main") == []
    goal.get_by_role("button", name="Mark Hand in the tax return as reached").click()
    expect(goal).to_contain_text("reached")
    goal.get_by_role("button", name="Take up Hand in the tax return again").click()
    expect(goal).to_contain_text("active")
    goal.get_by_role("button", name="Give up Hand in the tax return").click()
    page.get_by_role("button", name="Give it up").click()
    expect(goal).to_contain_text("given up")
    page.get_by_role("button", name="Switch checking off").click()
    expect(page.get_by_text("Checking is off, also after a restart.")).to_be_visible()
    page.get_by_role("button", name="Switch checking on").click()
    expect(page.get_by_text("Checking is on, also after a restart.")).to_be_visible()


def test_the_routines_say_how_they_are_and_are_run_and_switched(visit: Visit, paged: PagedSystem) -> None:
    page = visit().open("#/agents")
    page.get_by_role("link", name="Reflection").click()
    page.get_by_role("button", name="Switch the monologue on").click()
    expect(page.get_by_text("The monologue is on, also after a restart.")).to_be_visible()
    page.get_by_role("button", name="Think now").click()
    expect(page.get_by_text("The monologue is on, also after a restart.")).to_have_count(0)
    page.get_by_role("button", name="Switch the monologue off").click()
    expect(page.get_by_text("The monologue is off, also after a restart.")).to_be_visible()
    assert violations(page, "main") == []
