"""A conversation with more than the page shows at once, and words longer than any page."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.sync_api import BrowserContext, Page, Route, expect

from tests.page.conftest import Visitor

Visit = Callable[..., Visitor]

SESSION = "long"
TURNS, PAGE = 120, 50
WORD = "W" * 1_000_000
LONGEST_SECONDS = 1.0  # of the page's thread, for a word of 1 MB


def turn(number: int, **more: Any) -> dict[str, Any]:
    """What the record says of a turn."""
    answer = "Some words of it.\n\n" * (1 + number % 7)
    return {
        "query_id": f"q{number}", "session_id": SESSION, "query": f"What of {number}?", "answer": answer,
        "tool_calls": [], "status": "answered", "created_at": 1.0, "attachments": [], **more,
    }  # fmt: skip


def serve(browser: BrowserContext, turns: list[dict[str, Any]]) -> None:
    """Answer as the API, page by page."""

    def page(route: Route) -> None:
        before = parse_qs(urlsplit(route.request.url).query).get("before")
        end = int(before[0]) if before else len(turns)
        begin = max(0, end - PAGE)
        body = {"turns": turns[begin:end], "total": len(turns), "before": str(begin) if begin else None}
        route.fulfill(body=json.dumps(body), content_type="application/json")

    session = json.dumps({"session_id": SESSION, "branches": [], "messages": []})
    browser.route(f"**/sessions/{SESSION}", lambda route: route.fulfill(body=session, content_type="application/json"))
    browser.route(f"**/sessions/{SESSION}/turns*", page)


@pytest.mark.thorough
def test_earlier_turns_come_as_the_reader_scrolls_to_them_and_what_is_read_stays_where_it_stands(visit: Visit) -> None:
    visitor = visit()
    serve(visitor.context, [turn(number) for number in range(TURNS)])
    page = visitor.open(f"#/c/{SESSION}")
    turns = page.locator("article.turn")
    expect(turns).to_have_count(PAGE)
    for number in (2 * PAGE, TURNS):
        top = page.evaluate(
            "(document.querySelector('.scroll').scrollTop = 0,"
            " globalThis.read = document.querySelector('article.turn'), read.getBoundingClientRect().top)"
        )
        expect(turns).to_have_count(number)
        frames = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
        page.evaluate(frames)
        assert abs(page.evaluate("read.getBoundingClientRect().top") - top) <= 1
    expect(page.locator(".earlier")).to_have_count(0)
    assert turns.first.get_attribute("data-query") == "q0"


@pytest.mark.thorough
def test_words_of_a_megabyte_are_shown_within_the_page_and_hold_nothing_up(visit: Visit) -> None:
    visitor = visit(viewport={"width": 360, "height": 780})
    page = visitor.open()
    for place in ("query", "answer", "thinking"):
        serve(visitor.context, [turn(0, **{place: WORD})])
        page.goto(f"{visitor.url}/?debug&{place}#/")
        page.wait_for_selector("#page[data-state=ready] #question")
        before = busy_seconds(page)
        page.evaluate(f"location.hash = '#/c/{SESSION}'")
        expect(page.locator(".line")).to_be_visible()
        if place == "thinking":
            page.locator(".thinking summary").click()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), place
        assert busy_seconds(page) - before <= LONGEST_SECONDS, place


def busy_seconds(page: Page) -> float:
    """What the page's thread has worked, in CPU time."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    told = session.send("Performance.getMetrics")["metrics"]
    session.detach()
    return next(float(each["value"]) for each in told if each["name"] == "TaskDuration")
