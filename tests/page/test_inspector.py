"""What can be seen of an answer besides its words: the inspector with its tabs, by mouse and by keys."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.page.conftest import PagedSystem, Visitor
from tests.page.test_access import violations
from tests.page.test_chat import Visit, answered, ask

SEEN = 150  # rows, which is more than the page makes at a time


def inspected(page: Page, tab: str) -> None:
    """Open a tab of the inspector for the last answer."""
    page.locator(".why-button").last.click()
    page.click(f"[role=tab][data-tab={tab}]")
    expect(page.locator(f".panel[data-tab={tab}]")).to_be_visible()


def test_the_story_tells_what_was_done_for_an_answer_and_leads_to_each_call(visit: Visit, paged: PagedSystem) -> None:
    page = visit().open()
    ask(page, "I take my coffee black.")
    answered(page)
    ask(page, "How do I take my coffee?")
    answered(page)
    inspected(page, "story")
    story = page.locator(".story")
    expect(story).to_contain_text("You asked.")
    expect(story).to_contain_text(re.compile("search_memory “How do I take my coffee.*gave"))
    expect(story).to_contain_text("It answered")
    story.get_by_role("button", name=re.compile("Look at this call: search_memory")).click()
    expect(page.get_by_label("What was sent")).to_contain_text('"query": "How do I take my coffee?"')
    page.click("text=‹ Answer")
    expect(page.locator(".story li").nth(2)).to_be_visible()


def test_the_time_of_an_answer_is_a_waterfall_and_its_messages_lie_open(visit: Visit, paged: PagedSystem) -> None:
    page = visit().open()
    ask(page, "How do I take my tea?")
    answered(page)
    inspected(page, "time")
    rows = page.locator(".fall-rows button")
    expect(page.locator(".inspector .known")).to_contain_text("answered")
    recall = page.get_by_role("button", name=re.compile("^search_memory, after .*, took "))
    recall.focus()
    page.keyboard.press("ArrowUp")
    expect(rows.nth(rows.count() - 1)).not_to_be_focused()
    recall.click()
    expect(page.locator(".span-facts")).to_contain_text("call id")
    page.get_by_role("button", name="Show less time").click()
    page.keyboard.press("0")
    expect(page.get_by_role("button", name="Show more time")).to_be_disabled()
    page.click("text=Look at this call")
    page.click("[role=tab][data-tab=raw]")
    messages = page.locator(".envelopes button")
    expect(messages).to_have_count(2)
    messages.first.click()
    expect(page.locator(".known.header")).to_contain_text("tool.request.search_memory")
    expect(page.get_by_label("Payload", exact=True)).to_contain_text('"query": "How do I take my tea?"')
    page.click("text=‹ Answer")
    page.get_by_label("Filter the messages").fill("response.gen")
    expect(messages).to_have_count(1)


def test_a_thousand_spans_and_five_thousand_messages_are_a_few_rows_in_the_page(
    visit: Visit, paged: PagedSystem
) -> None:
    page = visit().open()
    ask(page, "What is 1+1?")
    answered(page)
    page.route("**/trace", lambda route: route.fulfill(json=long_trace()))
    inspected(page, "time")
    expect(page.locator(".fall")).to_have_attribute("data-rows", "1000")
    expect(page.get_by_text("span 3", exact=True)).to_be_visible()
    assert page.locator(".fall-rows li").count() < SEEN
    page.eval_on_selector("[data-scroll]", "panel => panel.scrollTop = panel.scrollHeight")
    expect(page.get_by_text("span 999", exact=True)).to_be_visible()
    expect(page.locator(".fence-note")).to_contain_text("killed by SIGKILL")
    page.click("[role=tab][data-tab=raw]")
    expect(page.locator(".panel")).to_contain_text("5\u202f000 messages")
    assert page.locator(".envelopes li").count() < SEEN


@pytest.mark.thorough
@pytest.mark.parametrize(("width", "theme"), [(360, "dark"), (1280, "light")])
def test_axe_finds_nothing_in_any_tab_of_the_inspector(
    visit: Visit, paged: PagedSystem, width: int, theme: str
) -> None:
    visitor = visit(viewport={"width": width, "height": 780}, color_scheme=theme)
    page = visitor.open()
    ask(page, "How do I take my tea?")
    answered(page)
    found = {}
    for tab, ready in READY.items():
        inspected(page, tab) if tab == "story" else page.click(f"[role=tab][data-tab={tab}]")
        expect(page.locator(ready).first).to_be_visible()
        found[tab] = violations(page)
    page.locator(".envelopes button").first.click()
    expect(page.get_by_label("Payload", exact=True)).to_be_visible()
    found["message"] = violations(page)
    assert {tab: each for tab, each in found.items() if each} == {}


READY = {
    "story": ".story li", "time": ".fall-rows li", "context": ".messages li", "sources": ".panel .plain-rows",
    "raw": ".envelopes li",
}  # fmt: skip


def test_hostile_words_in_a_trace_stay_words(visit: Visit, paged: PagedSystem) -> None:
    visitor = visit()
    visitor.follow_requests()
    page = visitor.open()
    ask(page, "What is 1+2?")
    answered(page)
    words = "<img src=x onerror=alert(1)>\u202e{{x}}" + "W" * 400
    trace = long_trace()
    trace.update(spans=trace["spans"][:SEEN], envelopes=trace["envelopes"][:SEEN])
    for span in trace["spans"]:
        span.update(name=words, kind=words, detail={words: words})
    for envelope in trace["envelopes"]:
        envelope.update(subject=words, sender=words, summary=words)
    trace.update(self_time={words: 1.0})
    page.route("**/trace", lambda route: route.fulfill(json=trace))
    for tab in ("story", "time", "raw"):
        inspected(page, tab)
        expect(page.locator(".panel")).to_contain_text("1+2" if tab == "story" else "onerror=alert(1)")
        assert page.locator(".inspector img").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.locator(".envelopes button").first.click()
    expect(page.locator(".known.header")).to_contain_text("onerror=alert(1)")
    assert page.locator("[data-scroll]").evaluate("panel => panel.scrollWidth <= panel.clientWidth")


def long_trace() -> dict[str, Any]:
    """A query that took everything that it could."""
    start = 1_795_000_000.0
    spans: list[dict[str, Any]] = [
        {"id": f"s{number}", "parent": None, "kind": "tool", "name": f"span {number}", "started": start + number,
         "ended": start + number + 0.5, "attempt": 1, "detail": {}}
        for number in range(1000)
    ]  # fmt: skip
    envelopes = [
        {"id": f"{number:032x}", "subject": "agent.transition", "sender": "generator", "sent_at": start + number / 5,
         "seq": number + 1, "size": 100, "recorded": True, "redacted": False, "summary": "A → B"}
        for number in range(5000)
    ]  # fmt: skip
    attempts = [
        {"attempt": 1, "started": start, "ended": start + 500, "reason": None},
        {"attempt": 2, "started": start + 500, "ended": None, "reason": "the generator was killed by SIGKILL"},
    ]
    return {"query_id": "q", "complete": True, "spans": spans, "envelopes": envelopes, "attempts": attempts,
            "critical_path": ["s1"], "self_time": {"tool": 500.0}}  # fmt: skip


def test_the_context_shows_the_messages_as_the_model_got_them_and_how_full_its_window_was(
    visit: Visit, paged: PagedSystem
) -> None:
    page = visit().open()
    ask(page, "What is the capital of France?")
    answered(page)
    ask(page, "What is 2+2?")
    answered(page)
    page.locator(".why-button").first.click()
    page.click("[role=tab][data-tab=context]")
    expect(page.locator(".gauge-words")).to_contain_text(re.compile(r"\d+ of \d+"))
    expect(page.locator(".messages [data-role=system]").first).to_be_visible()
    expect(page.locator(".messages details[open] pre")).to_contain_text("What is the capital of France?")
    expect(page.locator(".messages")).not_to_contain_text("2+2")
    page.get_by_role("button", name=re.compile("^Show what was said since")).click()
    expect(page.locator(".messages.later")).to_contain_text("What is 2+2?")


def test_keys_open_the_inspector_move_through_its_tabs_and_give_the_focus_back(
    visit: Visit, paged: PagedSystem
) -> None:
    page = visit().open()
    ask(page, "What is 3+3?")
    answered(page)
    page.locator("article.turn").focus()
    page.keyboard.press("i")
    expect(page.locator("[role=tab][aria-selected=true]")).to_be_focused()
    expect(page.locator("[role=tab][aria-selected=true]")).to_have_text("Time")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("[data-tab=story][role=tab]")).to_be_focused()
    expect(page.locator(".story")).to_contain_text("It answered")
    page.keyboard.press("Escape")
    expect(page.locator(".inspector")).to_have_count(0)
    expect(page.locator("article.turn")).to_be_focused()


def test_an_address_of_a_turn_can_be_opened_again(visit: Visit, paged: PagedSystem) -> None:
    visitor = visit()
    page = visitor.open()
    ask(page, "What is 4+4?")
    answered(page)
    inspected(page, "story")
    address = page.evaluate("location.hash")
    assert re.fullmatch(r"#/c/[^/]+/[^/]+", address)
    page.evaluate("sessionStorage.clear()")  # as it is in another tab
    page.goto(f"{visitor.url}/?debug{address}")
    expect(page.locator(f"[data-query='{address.split('/')[-1]}'] [data-answer]")).to_be_visible()


def test_an_answer_without_a_tool_has_no_sources_and_says_so(visit: Visit, paged: PagedSystem) -> None:
    page = visit().open()
    ask(page, "What is 5+5?")
    answered(page)
    inspected(page, "sources")
    expect(page.locator(".panel")).to_contain_text("No tool was asked")


def test_the_inspector_is_fetched_once_there_is_something_to_inspect(visit: Visit) -> None:
    visitor = visit()
    visitor.follow_requests()
    page = visitor.open()
    while not fetched(visitor, "/views/dialogs.js"):  # which comes with time, the inspector before it
        page.wait_for_event("request", lambda asked: asked.url.endswith("/views/dialogs.js"))
    assert not fetched(visitor, "/views/inspector.js")
    with page.expect_request("**/views/inspector.js"):
        ask(page, "What is the capital of Malta?")
    answered(page)


def fetched(visitor: Visitor, end: str) -> bool:
    return any(asked.url.endswith(end) for asked in visitor.requests)


def test_the_number_of_a_source_leads_to_the_sources_and_many_are_folded(visit: Visit) -> None:
    addresses = [f"https://a.example/{number}" for number in range(9)]
    call = {"call_id": "c", "tool": "web_search", "args": {"query": "a"}, "result": "found", "sources": addresses}
    turn = {
        "query_id": "q", "session_id": "many", "query": "What is it?", "answer": f"It is [this]({addresses[7]}).",
        "thinking": "", "model": "m", "attachments": [], "tool_calls": [call], "status": "answered", "created_at": 1.0,
    }  # fmt: skip
    visitor = visit()
    visitor.expected = lambda trouble: "404" in trouble  # of this query nothing is on record
    visitor.context.route("**/sessions/many/turns*", lambda route: route.fulfill(json={"turns": [turn], "total": 1}))
    visitor.context.route("**/sessions/many", lambda route: route.fulfill(json={"branches": [], "messages": []}))
    page = visitor.open("#/c/many")
    listed = page.locator(".sources li")
    expect(listed).to_have_count(7)
    assert violations(page) == []
    listed.get_by_role("button", name="3 more").click()
    expect(listed).to_have_count(10)
    listed.get_by_role("button", name="Fewer").click()
    page.get_by_role("button", name="Source 8").click()
    expect(page.locator(".panel[data-tab=sources] .numbered li")).to_have_count(9)
    expect(page.locator("article.turn")).to_be_visible()
