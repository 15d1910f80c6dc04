"""Activity: what happened, the messages on record with their time, the bus as it is, and dead letters."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import time
from pathlib import Path

import pytest
from playwright.sync_api import Page, Route, expect

from tests.page.conftest import PagedSystem
from tests.page.test_access import violations
from tests.page.test_chat import Visit
from tests.page.test_screens import overflow, shown

HOSTILE = '<img src=x onerror=pwned()>"><script>pwned()</script>'


@pytest.fixture
def asked(paged: PagedSystem) -> str:
    """A conversation with a tool call; its id."""
    searches(paged)
    paged.ask("Look up the tide tables", "activity")
    return "activity"


def searches(paged: PagedSystem) -> None:
    """Let the stand-in call a tool for what begins with these words."""
    call = {"name": "search_memory", "arguments": {"query": "tide tables"}}
    paged.script({"user": "^Look up", "replies": [{"tool_calls": [call]}, {"content": "There are none."}]})


def choose(page: Page, label: str, title: str) -> None:
    page.get_by_label(label, exact=True).select_option(title)


def filter_by(page: Page, text: str) -> None:
    field = page.get_by_role("combobox", name="Filter", exact=True)
    field.fill(text)
    field.press("Enter")


def test_what_happened_is_chosen_by_kind_and_the_record_by_time_and_participant(
    visit: Visit, paged: PagedSystem, asked: str
) -> None:
    page = visit().open("#/activity")
    shown(page, "Activity")
    choose(page, "Kind", "tool calls")
    table = page.get_by_role("table", name="Activity")
    expect(table.get_by_role("cell", name="tool call", exact=True).first).to_be_visible()
    expect(table.get_by_role("cell", name="question", exact=True)).to_have_count(0)
    choose(page, "Kind", "everything")
    choose(page, "Participant", "api")
    expect(table.get_by_role("cell", name="question", exact=True).first).to_be_visible()
    expect(table.get_by_role("cell", name="tool call", exact=True)).to_have_count(0)
    page.get_by_role("link", name="Messages").click()
    rows = page.get_by_role("region", name="Messages").locator("li[data-subject]")
    filter_by(page, "subject:query.,response.generation")
    expect(rows.filter(has_text="response.generation").first).to_be_visible()
    expect(rows.filter(has_text="tool.")).to_have_count(0)
    filter_by(page, "sendr:api")
    expect(page.get_by_role("alert")).to_contain_text("character 1: there is no field 'sendr'; use sender")
    assert violations(page) == []
    page.get_by_label("Filter").fill("participant:memory_to")
    expect(page.locator("datalist option[value='participant:memory_tools']")).to_have_count(1)
    filter_by(page, "participant:memory_tools payload.call_id:*")
    expect(page.get_by_role("alert")).to_have_count(0)
    expect(rows.filter(has_text="tool.result.search_memory").first).to_be_visible()
    expect(rows.filter(has_text="query.received")).to_have_count(0)
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as a file").click()
    subjects = {json.loads(line)["subject"] for line in Path(saved.value.path()).read_text().splitlines()}
    assert "tool.result.search_memory" in subjects and "query.received" not in subjects
    filter_by(page, "")
    page.get_by_label("Date and time").fill("2020-01-31T09:30:00")  # nothing is older than the first message
    expect(page.locator("output")).to_contain_text("up to")
    expect(page.locator(".screen .empty")).to_be_visible()
    page.get_by_role("button", name="Back to now").click()
    filter_by(page, "subject:query.")  # of everything, the newest may all be something else
    first = rows.filter(has_text="query.received").first
    before = first.text_content() or ""
    paged.ask("Look up the moon", asked)  # it comes by itself
    expect(first).not_to_have_text(before)
    first.get_by_role("button").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("complementary", name="Inspector")).to_contain_text("Look up the moon")
    assert violations(page) == []


def test_a_message_that_was_sent_again_is_one_row(visit: Visit, paged: PagedSystem) -> None:
    header = {
        "id": "sent-again",
        "subject": "query.received",
        "sender": "api",
        "sent_at": time.time(),
        "summary": "again",
        "matches": ["sender:api"],
    }
    event = f"event: message\nid: 1\ndata: {json.dumps(header)}\n\n"
    page = visit().open()
    page.route("**/stream?*", lambda route: route.fulfill(content_type="text/event-stream", body=event * 2))
    page.evaluate("location.hash = '#/activity/messages'")
    page.reload()
    filter_by(page, "sender:api")
    rows = page.get_by_role("region", name="Messages").locator("li[data-subject]")
    expect(rows.filter(has_text="again")).to_have_count(1)


def test_the_bus_has_everybody_in_a_seat_and_each_message_that_passes(
    visit: Visit, paged: PagedSystem, asked: str, tmp_path: Path
) -> None:
    [last] = paged.request("GET", "/journal?subject=tool.result.&limit=1")["entries"]
    until = math.ceil(last["sent_at"])
    span = {"first_at": until - 60, "last_at": until + 60, "number": last["seq"]}
    page = visit().open()
    page.route("**/journal/span", lambda route: route.fulfill(json=span))
    page.evaluate("location.hash = '#/activity/bus'")
    picture = page.get_by_role("group", name="The participants on the bus")
    expect(picture.get_by_role("link", name="critic, ready")).to_be_visible()
    before = picture.get_by_role("link").evaluate_all("all => all.map(one => one.getAttribute('href'))")
    paged.ask("Look up the stars", asked)
    rows = page.get_by_role("region", name="Messages on the bus").locator("li[data-subject]")
    filter_by(page, "subject:tool.*")
    expect(rows.filter(has_text="tool.result.search_memory").first).to_be_visible()
    expect(rows.filter(has_text="generation.token")).to_have_count(0)
    filter_by(page, "subject:query. comets")
    expect(page.locator(".screen .empty")).to_contain_text("No message has matched")
    paged.ask("Look up the comets", asked)  # it comes by itself
    expect(rows.filter(has_text="query.received")).to_have_count(1)
    page.get_by_role("button", name="Hold still").click()
    expect(page.locator(".bus-head")).to_contain_text("held")
    page.get_by_role("button", name="Go on").click()
    filter_by(page, "subject:tool.* participant:memory_tools")
    page.get_by_role("slider", name="Time").fill(str(until))
    expect(page.locator(".bus-head")).to_contain_text("on record")
    expect(picture.get_by_role("link", name=re.compile(r"^memory_tools, \d"))).to_be_visible()
    expect(picture.get_by_role("link", name="ready")).to_have_count(0)
    found = paged.request("GET", f"/journal?subject=tool.&participant=memory_tools&until={until}")["entries"]
    expect(rows).to_have_count(len(found))
    assert violations(page, "main") == []
    page.get_by_role("button", name="Back to now").click()
    expect(page.locator(".bus-head")).to_contain_text("live")
    filter_by(page, "subject:tool.*")
    rows.filter(has_text="tool.request.search_memory").first.click()
    expect(page.get_by_role("complementary", name="Inspector")).to_contain_text("tide tables")
    page.get_by_role("button", name="Close", exact=True).click()
    assert picture.get_by_role("link").evaluate_all("all => all.map(one => one.getAttribute('href'))") == before
    page.get_by_role("link", name="Subjects").click()
    beat = page.get_by_role("row").filter(has_text="participant.status")
    expect(beat).to_contain_text("critic")
    assert violations(page, "main") == []
    page.go_back()
    page.get_by_text("As a table").click()
    expect(page.get_by_role("table", name="Participants on the bus")).to_contain_text("critic")
    assert violations(page) == []
    page.get_by_text("As a table").click()
    rows.last.evaluate("(row) => row.scrollIntoView()")  # it may be replaced by a newer one meanwhile
    picture_file = tmp_path / "bus.png"
    assert len(page.screenshot(path=picture_file)) > 20_000, "blank"
    if folder := os.environ.get("LOCAL2_PICTURES"):
        shutil.copy(picture_file, Path(folder) / "bus.png")
    for width, theme in ((360, "dark"), (1280, "dark"), (360, "light")):
        page.set_viewport_size({"width": width, "height": 740})
        page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        assert overflow(page) == [0, 0, 0]
        assert violations(page) == []
    picture.get_by_role("link", name="critic, ready").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("critic")


def test_a_dead_letter_is_delivered_again_and_its_words_are_harmless(visit: Visit, paged: PagedSystem) -> None:
    letter = {
        "number": 7, "committed_at": 1.0, "consumer": "memory", "dead_subject": "query.received", "query_id": "q",
        "reason": HOSTILE,
    }  # fmt: skip
    ordered = list[object]()

    def answer(route: Route) -> None:
        letters = [] if ordered else [letter]
        route.fulfill(json={"dead_letters": letters, "count": len(letters)})

    def redeliver(route: Route) -> None:
        ordered.append(json.loads(route.request.post_data or ""))
        route.fulfill(json={"redelivered": {"memory": [7]}})

    page = visit().open(paged.sign_in())
    expect(page.locator("#question")).to_be_visible()
    page.route("**/journal/dead", answer)
    page.route("**/journal/redeliver", redeliver)
    page.evaluate("location.hash = '#/activity/dead'")
    table = page.get_by_role("table", name="Dead letters")
    expect(table).to_contain_text(HOSTILE)
    page.set_viewport_size({"width": 360, "height": 740})
    assert violations(page) == []
    assert overflow(page) == [0, 0, 0]
    table.get_by_role("button", name="Deliver message 7 to memory again").press("Enter")
    expect(page.locator(".screen")).to_contain_text("1 message will be delivered again.")
    expect(page.locator(".screen .empty")).to_contain_text("every message was handled")
    assert ordered == [{"numbers": [7], "consumer": "memory"}]
