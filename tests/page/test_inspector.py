"""What can be seen of an answer besides its words: the inspector with its tabs, by mouse and by keys."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.page.conftest import PagedSystem
from tests.page.test_access import violations
from tests.page.test_chat import Visit, answered, ask

SEEN = 150  # rows, which is more than the page makes at a time


def inspected(page: Page, tab: str) -> None:
    """Open a tab of the inspector for the last answer."""
    page.locator(".why-button").last.click()
    page.click(f"[role=tab][data-tab={tab}]")
    expect(page.locator(f".panel[data-tab={tab}]")).to_be_visible()


def test_each_tab_tells_of_the_answer_what_its_name_says(visit: Visit, paged: PagedSystem) -> None:
    page = visit().open()
    ask(page, "What is the capital of France?")
    answered(page)
    ask(page, "How do I take my tea?")
    answered(page, 1)
    inspected(page, "story")
    story = page.locator(".story")
    expect(story).to_contain_text("You asked.")
    expect(story).to_contain_text(re.compile("search_memory “How do I take my tea.*returned"))
    story.get_by_role("button", name=re.compile("Inspect this call: search_memory")).click()
    expect(page.get_by_label("Arguments")).to_contain_text('"query": "How do I take my tea?"')
    page.click("[role=tab][data-tab=raw]")
    messages = page.locator(".envelopes button")
    expect(messages).to_have_count(2)
    messages.first.click()
    expect(page.locator(".known.header")).to_contain_text("tool.request.search_memory")
    page.click("text=‹ Answer")
    page.get_by_label("Filter the messages").fill("response.gen")
    expect(messages).to_have_count(1)
    page.click("[role=tab][data-tab=time]")
    rows = page.locator(".fall-rows button")
    recall = page.get_by_role("button", name=re.compile("^search_memory, after .*, took "))
    recall.focus()
    page.keyboard.press("ArrowUp")
    expect(rows.nth(rows.count() - 1)).not_to_be_focused()
    recall.click()
    expect(page.locator(".span-facts")).to_contain_text("call id")
    page.locator(".why-button").first.click()
    page.click("[role=tab][data-tab=sources]")
    expect(page.locator(".panel")).to_contain_text("No tool was called")
    page.click("[role=tab][data-tab=context]")
    expect(page.locator(".gauge-words")).to_contain_text(re.compile(r"\d+ of \d+"))
    expect(page.locator(".messages details[open] pre")).to_contain_text("What is the capital of France?")
    expect(page.locator(".messages")).not_to_contain_text("my tea")
    page.get_by_role("button", name=re.compile("^Show later messages")).click()
    expect(page.locator(".messages.later")).to_contain_text("How do I take my tea?")


def test_keys_open_the_inspector_and_its_address_can_be_opened_again(visit: Visit, paged: PagedSystem) -> None:
    visitor = visit()
    page = visitor.open()
    ask(page, "What is 3+3?")
    answered(page)
    page.locator("article.turn").focus()
    page.keyboard.press("i")
    tab = page.locator("[role=tab][aria-selected=true]")
    expect(tab).to_be_focused()
    expect(tab).to_have_text("Time")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("[data-tab=story][role=tab]")).to_be_focused()
    expect(page.locator(".story")).to_contain_text("The answer was complete")
    page.keyboard.press("ArrowRight")
    page.get_by_role("button", name="Next message").click()
    moment = page.locator("[data-moment]").inner_text()
    address = page.evaluate("location.hash")
    page.keyboard.press("Escape")
    expect(page.locator(".inspector")).to_have_count(0)
    expect(page.locator("article.turn")).to_be_focused()
    assert re.fullmatch(r"#/c/[^/]+/[^/]+@[\d.]+", address)
    page.evaluate("sessionStorage.clear()")  # as it is in another tab
    page.goto(f"{visitor.url}/?debug{address}")
    expect(page.locator(f"[data-query='{address.split('/')[-1].split('@')[0]}'] [data-answer]")).to_be_visible()
    expect(page.locator("[data-moment]")).to_have_text(moment)


def test_a_long_and_hostile_trace_is_a_few_rows_of_words(visit: Visit, paged: PagedSystem) -> None:
    visitor = visit()
    visitor.follow_requests()
    page = visitor.open()
    ask(page, "What is 1+2?")
    answered(page)
    words = "<img src=x onerror=alert(1)>\u202e{{x}}" + "W" * 200
    trace = long_trace()
    for span in trace["spans"][:SEEN]:
        span.update(name=words, kind=words, detail={words: words})
    for envelope in trace["envelopes"][:SEEN]:
        envelope.update(subject=words, sender=words, summary=words)
    trace.update(self_time={words: 1.0})
    page.route("**/trace", lambda route: route.fulfill(json=trace))
    inspected(page, "time")
    expect(page.locator(".fall")).to_have_attribute("data-rows", "1000")
    assert page.locator(".fall-rows li").count() < SEEN
    page.eval_on_selector("[data-scroll]", "panel => panel.scrollTop = panel.scrollHeight")
    expect(page.get_by_text("span 999", exact=True)).to_be_visible()
    expect(page.locator(".fence-note")).to_contain_text("killed by SIGKILL")
    for tab in ("time", "raw"):
        page.click(f"[role=tab][data-tab={tab}]")
        expect(page.locator(".panel")).to_contain_text("onerror=alert(1)")
        assert page.locator(".inspector img").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    expect(page.locator(".panel")).to_contain_text("5\u202f000 messages")
    assert page.locator(".envelopes li").count() < SEEN
    page.locator(".envelopes button").first.click()
    expect(page.locator(".known.header")).to_contain_text("onerror=alert(1)")
    assert page.locator("[data-scroll]").evaluate("panel => panel.scrollWidth <= panel.clientWidth")


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
    assert violations(page, ".sources") == []
    listed.get_by_role("button", name="3 more").click()
    expect(listed).to_have_count(10)
    listed.get_by_role("button", name="Fewer").click()
    page.get_by_role("button", name="Source 8").click()
    expect(page.locator(".panel[data-tab=sources] .numbered li")).to_have_count(9)
    expect(page.locator("article.turn")).to_be_visible()
