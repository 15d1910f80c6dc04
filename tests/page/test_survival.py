"""What the page does while things break: reloads, a killed API, a server that is away, many tabs, hostile words."""

from __future__ import annotations

import re
from collections.abc import Callable

import psutil
import pytest
from playwright.sync_api import APIResponse, Page, Route, expect

from tests.page.conftest import PagedSystem, Visitor

Visit = Callable[..., Visitor]

STORY = "\n\n".join(f"Paragraph {number} of the *story*, with `code`." for number in range(16))
SLOW = {"chunk_chars": 18, "chunk_delay_seconds": 0.06}
BROKEN_CONNECTION = ("net::", "Failed to load resource", "ERR_")


def begin(page: Page, question: str) -> str:
    page.fill("#question", question)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("#/c/."))
    return page.evaluate("location.hash.split('/')[2]")  # type: ignore[no-any-return]


def shown(page: Page) -> str:
    """The text of the one answer, as soon as it has ended."""
    expect(page.locator("article.turn")).to_have_count(1)
    expect(page.locator("article.turn")).to_have_attribute("data-state", "answered", timeout=90_000)
    return page.locator("[data-answer]").inner_text()


def as_text(page: Page, paged: PagedSystem, session: str) -> str:
    """What a page shows of it that has heard nothing of its becoming."""
    (turn,) = paged.request("GET", f"/sessions/{session}/turns")["turns"]
    assert turn["answer"] == STORY
    page.reload()
    return shown(page)


@pytest.mark.thorough
def test_a_page_that_is_loaded_again_at_any_point_of_an_answer_shows_it_once_and_whole(
    visit: Visit, paged: PagedSystem
) -> None:
    paged.script({"user": "^tell me", "replies": [{"thinking": "A story. " * 9, "content": STORY}]}, **SLOW)
    page = visit().open()
    session = begin(page, "tell me")
    for paragraph in ("", "Paragraph 3 of the story"):
        expect(page.locator("article.turn")).to_contain_text(paragraph)
        page.reload()
    assert shown(page) == as_text(page, paged, session)


def test_a_page_that_was_visited_opens_without_a_connection(visit: Visit, paged: PagedSystem) -> None:
    browser = visit().context.browser
    assert browser is not None
    with browser.new_context() as context:
        page = context.new_page()
        page.goto(f"{paged.url}/")
        page.evaluate("navigator.serviceWorker.ready.then(() => null)")
        for _ in range(2):
            expect(page.locator(".sessions[data-state=ready]")).to_be_attached()
            page.reload()
        kept = page.evaluate(
            "caches.open('local2.page').then((all) => all.keys()).then((all) => all.map(({url}) => url))"
        )
        assert all("/app/" in url or url == f"{paged.url}/" for url in kept), "nothing of a user's is kept"
        context.set_offline(True)
        page.reload()
        expect(page.locator("[data-state=offline]")).to_be_visible()


def test_a_question_that_was_sent_while_nobody_answered_is_asked_once_when_somebody_does(
    visit: Visit, paged: PagedSystem
) -> None:
    visitor = visit()
    visitor.expected = lambda trouble: any(one in trouble for one in BROKEN_CONNECTION)
    page = visitor.open()
    visitor.context.set_offline(True)
    session = begin(page, "What is 11+11?")
    expect(page.locator("[data-state=offline]")).to_be_visible()
    expect(page.locator("[data-state=unsent]")).to_contain_text("Waiting for the connection.")
    visitor.context.set_offline(False)
    expect(page.locator("[data-answer]")).to_have_text("11+11 = 22")
    expect(page.locator("[data-state=offline]")).to_have_count(0)
    assert len(paged.request("GET", f"/sessions/{session}/turns")["turns"]) == 1


def test_tabs_share_one_stream_and_all_of_them_advance_also_when_the_one_that_reads_it_is_closed(
    visit: Visit, paged: PagedSystem
) -> None:
    paged.script({"user": "^tabbed", "replies": [{"content": STORY}]}, **SLOW)
    visitor = visit()
    visitor.follow_requests()

    def streams() -> int:
        return sum("/stream?" in asked.url for asked in visitor.requests)

    tabs = [visitor.open()]
    session = begin(tabs[0], "tabbed")
    tabs.append(visitor.open(f"#/c/{session}"))
    for tab in tabs:
        expect(tab.locator("article.turn")).to_contain_text("Paragraph 1 of the story")
    tabs[1].evaluate("location.hash = '#/activity/bus'")
    expect(tabs[1].locator(".bus-head")).not_to_have_attribute("data-passed", "0")
    tabs[1].go_back()
    assert streams() == 1
    with tabs[1].context.expect_event("request", lambda asked: "/stream?" in asked.url):  # another tab reads it then
        tabs[0].close()
    texts = [shown(tab) for tab in tabs[1:]]
    assert streams() == 2
    assert set(texts) == {as_text(tabs[1], paged, session)}


BOTH = ["the tab with the stream", pytest.param("the other tab", marks=pytest.mark.thorough)]


@pytest.mark.parametrize("asking", BOTH)
def test_a_tab_that_reads_the_record_while_another_one_s_answer_ends_shows_it(
    visit: Visit, paged: PagedSystem, asking: str
) -> None:
    paged.script({"user": "^ending", "replies": [{"content": STORY}]}, **{**SLOW, "chunk_delay_seconds": 0.15})
    visitor, held = visit(), list[tuple[Route, APIResponse]]()
    tabs = [visitor.open(), visitor.open()]
    if asking == "the other tab":
        tabs.reverse()
    session = begin(tabs[0], "ending")
    expect(tabs[0].locator("article.turn")).to_contain_text("Paragraph 1 of the story")
    of_turns = f"**/sessions/{session}/turns?*"
    tabs[1].route(of_turns, lambda route: held.append((route, route.fetch())), times=1)
    with tabs[1].expect_request(of_turns):
        tabs[1].evaluate(f"location.hash = '#/c/{session}'")
    text = shown(tabs[0])
    ((route, read),) = held
    assert [one["status"] for one in read.json()["turns"]] == ["open"]
    route.fulfill(response=read)
    assert shown(tabs[1]) == text


@pytest.mark.thorough
def test_what_comes_is_shown_also_where_a_browser_that_says_it_is_seen_paints_nothing(
    visit: Visit, paged: PagedSystem
) -> None:
    """As it is with tabs in the background of this one, and on Wayland with windows of another workspace."""
    page = visit().open()
    page.evaluate("() => { globalThis.requestAnimationFrame = () => 0; }")
    begin(page, "What is 13+31?")
    expect(page.locator("[data-answer]")).to_have_text("13+31 = 44")


def test_an_api_that_is_killed_costs_the_reader_nothing(visit: Visit, paged: PagedSystem) -> None:
    paged.script({"user": "^tell me", "replies": [{"thinking": "A story. " * 9, "content": STORY}]}, **SLOW)
    visitor = visit()
    visitor.expected = lambda trouble: any(one in trouble for one in BROKEN_CONNECTION)
    page = visitor.open()
    session = begin(page, "tell me")
    expect(page.locator("article.turn")).to_contain_text("Paragraph 2 of the story", timeout=90_000)
    kill_api(paged)
    assert shown(page) == as_text(page, paged, session)


@pytest.mark.thorough
def test_while_the_journal_is_held_up_the_page_says_what_it_waits_for(visit: Visit, paged: PagedSystem) -> None:
    page = visit().open()
    (journal,) = (one for one in paged.request("GET", "/participants")["participants"] if one["name"] == "journal")
    process = psutil.Process(journal["pid"])
    process.suspend()
    try:
        begin(page, "What is 14+11?")
        expect(page.locator(".pending")).to_contain_text("waiting for the journal to store the question")
    finally:
        process.resume()
    expect(page.locator("[data-answer]")).to_have_text("14+11 = 25")


def kill_api(paged: PagedSystem) -> None:
    """kill -9."""
    (api,) = [one for one in paged.request("GET", "/participants")["participants"] if one["name"] == "api"]
    process = psutil.Process(api["pid"])
    process.kill()
    psutil.wait_procs([process], 30)


@pytest.mark.thorough
def test_a_page_that_meets_an_api_which_does_not_know_the_model_yet_asks_again(
    visit: Visit, paged: PagedSystem
) -> None:
    visitor = visit()
    early = [{"status": "starting", "model": None, "stand_in": True}, {"status": "ok", "model": None, "stand_in": True}]
    visitor.context.route(
        "**/health?report=true",
        lambda route: route.fulfill(json=early.pop(0)) if early else route.continue_(),
    )
    expect(visitor.open().locator(".model")).to_have_text("stand-in")
    assert early == []
