"""Each participant's panel: what it did, stop and start, the critic's judgements, and two answers compared blind."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from local.cli.temporary_system import write_settings
from local.core.self_test_file import SelfTestFile
from local.critic import self_test
from tests.page.conftest import PagedSystem
from tests.page.test_access import violations
from tests.page.test_activity_screen import searches
from tests.page.test_chat import Visit, answered, ask, session_of
from tests.page.test_screens import overflow, shown
from tests.warm.warm_system import WarmSystem

HOSTILE = '<img src=x onerror=pwned()>"><script>pwned()</script>'


def fits(page: Page) -> None:
    """At two widths and in both themes axe finds nothing, and nothing overflows."""
    for width, theme in ((360, "dark"), (1280, "dark"), (1280, "light"), (360, "light")):
        page.set_viewport_size({"width": width, "height": 780})
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        assert violations(page) == []
        assert overflow(page) == [0, 0, 0]


def test_s8_the_critics_panel_shows_a_grade_and_the_memory_shows_it_with_the_exchange(
    visit: Visit, paged: PagedSystem
) -> None:
    page = visit().open("#/participants/critic/judgements")
    shown(page, "critic")
    expect(page.locator(".known")).to_contain_text("self-test")
    page.evaluate("location.hash = '#/'")
    ask(page, "I keep my bicycle in the blue shed.")
    answered(page)
    expect(page.locator(".line .grade")).to_be_visible()
    page.get_by_role("button", name="Good answer").click()
    session = session_of(page)
    page.evaluate("location.hash = '#/participants/critic/judgements'")
    row = (
        page.get_by_role("table", name="Judgements")
        .get_by_role("row")
        .filter(has=page.locator(f"a[href*='{session}']"))
    )
    expect(row).to_contain_text("of 5")
    expect(row).to_contain_text("good")
    expect(page.locator(".known")).to_contain_text("rated answers")
    fits(page)
    page.get_by_role("navigation", name="Screens").get_by_role("link", name="Memory").click()
    shown(page, "Memory")
    question = page.get_by_role("button", name="I keep my bicycle")
    exchange = page.get_by_role("table", name="Exchanges").get_by_role("row").filter(has=question)
    for title, words in (("Respondent", "A"), ("Grade", re.compile("^[1-5]$")), ("Your rating", "good")):
        expect(exchange.locator(f"[data-title='{title}']")).to_have_text(words)
    question.click()
    expect(page.locator(".exchange")).to_contain_text(re.compile("The critic graded it [1-5] of 5"))
    expect(page.locator(".exchange")).to_contain_text("You rated it good.")


def test_a_panel_shows_what_a_participant_did_and_stops_and_starts_it(visit: Visit, paged: PagedSystem) -> None:
    page = visit().open(paged.sign_in())
    expect(page.locator("#question")).to_be_visible()
    page.keyboard.press("Escape")
    page.evaluate("location.hash = '#/participants'")
    shown(page, "Participants")
    fits(page)
    page.get_by_role("table", name="Participants").get_by_role("link", name="memory_tools").click()
    shown(page, "memory_tools")
    searches(paged)
    paged.ask("Look up the tide tables", "panel")
    rows = page.get_by_role("region", name="What memory_tools did").locator("li[data-subject]")
    expect(rows.filter(has_text="tool.result.search_memory").first).to_be_visible()
    fits(page)
    page.get_by_role("button", name="Stop…").press("Enter")
    expect(page.get_by_role("button", name="Keep it running")).to_be_focused()
    page.get_by_role("button", name="Stop memory_tools").click()
    expect(page.locator(".screen-head")).to_contain_text("stopped")
    page.get_by_role("button", name="Start").click()
    expect(page.locator(".screen-head")).to_contain_text("ready")
    page.get_by_role("link", name="Status").click()
    expect(page.locator(".status-story").get_by_text("tool.request.search_memory")).to_be_visible()
    page.get_by_label("Parts of this panel").get_by_role("link", name="Settings").click()
    expect(page.locator(".section form, .screen .empty").first).to_be_visible()
    page.evaluate("location.hash = '#/participants/critic/settings'")
    expect(page.get_by_role("heading", name="Settings of critic")).to_be_visible()
    expect(page.get_by_role("button", name="Save")).to_be_visible()


def compared(query_id: str) -> dict[str, Any]:
    verdict = {
        "query_id": query_id, "winner": "A", "order_consistent": True, "status": "graded", "feedback": HOSTILE,
        "judge": "m", "self_judged": False,
    }  # fmt: skip
    header = {"id": "e", "subject": "pairwise.result", "sender": "critic", "sent_at": 1.0, "seq": 9, "session_id": "s"}
    asked = {"query_id": query_id, "query": "What is 2+2?"}
    received = {**header, "id": "a", "subject": "query.received", "payload": asked}
    return {"entries": [{**header, "payload": verdict}, received], "before": None, "after": 9}


def test_two_answers_are_compared_blind_until_the_vote(visit: Visit, paged: PagedSystem) -> None:
    page = visit().open()
    answers = [{"respondent_id": "A", "model": "amber", "answer": f"Four. {HOSTILE}"}]
    answers.append({"respondent_id": "B", "model": "birch", "answer": "Five."})
    page.route("**/journal?*", lambda route: route.fulfill(json=compared("q")))
    page.route("**/query/q/respondents", lambda route: route.fulfill(json={"query_id": "q", "respondents": answers}))
    page.evaluate("location.hash = '#/participants/critic/compare'")
    page.get_by_role("link", name="What is 2+2?").click()
    pair = page.locator(".pair")
    expect(page.locator(".asked-of")).to_have_text("What is 2+2?")
    expect(pair).to_contain_text("Four.")
    expect(pair).not_to_contain_text("amber")
    expect(page.locator(".screen")).not_to_contain_text("is better.")
    fits(page)
    page.get_by_role("button", name="Equally good").press("Enter")
    expect(pair).to_contain_text("amber")
    expect(page.locator(".verdict")).to_have_text("The critic: A is better. You: equally good.")
    expect(page.locator(".compare-head")).to_contain_text("0 of 1 blind comparison")
    assert violations(page) == []


@pytest.fixture
def unfit(model_server: str, tmp_path: Path) -> Iterator[WarmSystem]:
    """A new system, whose judge has failed its self-test."""
    settings = {
        "system": {"backend": "ollama", "ollama_url": model_server},
        "arbiter": {"quiet_seconds": 0},
    }
    failed = self_test.SelfTestResult(passed=0, asked=5, items=20, mean_difference=0.0)
    key = ("gemma4:12b", "GenericJson", self_test.DIGEST)
    SelfTestFile(tmp_path / "data", "judge", key).write(asdict(failed))
    with WarmSystem(tmp_path / "data", config_dir=write_settings(tmp_path / "config", settings)) as system:
        yield system


@pytest.mark.thorough  # it needs a system of its own; the test of S8 has the panel
def test_grading_that_is_off_is_one_note_and_no_row_of_judgements(unfit: WarmSystem, visit: Visit) -> None:
    page = visit(unfit.api_url).open()
    ask(page, "What is 2+2?")
    page.get_by_role("button", name="Choose a search engine").click()
    form = page.get_by_role("form", name="Set up web search")
    expect(form.get_by_label("Search engine")).to_have_value("auto")
    expect(form.get_by_role("button", name="Try a search")).to_be_disabled()
    form.get_by_label("Search engine").select_option("searxng")
    expect(form.get_by_label("Address of SearXNG")).to_have_value("http://localhost:8888")
    page.get_by_role("button", name="Close this note").click()
    page.go_back()
    note = page.locator("[data-state=grading]")
    expect(note).to_contain_text("Grading is off, because gemma4:12b failed")
    page.get_by_role("button", name="Why").click()
    page.get_by_role("tab", name="Story").click()
    expect(page.locator(".story")).to_contain_text("The answer was complete")
    expect(page.locator(".story")).not_to_contain_text("critic")
    page.evaluate("location.hash = '#/participants/critic/judgements'")
    expect(page.locator(".empty")).to_contain_text("Grading is off.")
    expect(page.get_by_role("table", name="Judgements")).to_have_count(0)
    fits(page)
    note.get_by_role("button", name="Choose another judge").click()
    expect(page.locator("#setting-model")).to_be_focused()
    note.get_by_role("button", name="Close this note").click()
    expect(note).to_have_count(0)
