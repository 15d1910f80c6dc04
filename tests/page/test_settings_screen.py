"""The settings on the page: found, changed, refused beside the field, reset; secrets stored, and a search tried."""

from __future__ import annotations

import json

import pytest
from playwright.sync_api import Page, expect

from tests.page.conftest import PagedSystem
from tests.page.test_access import violations
from tests.page.test_chat import Visit
from tests.page.test_screens import overflow
from tests.page.typist import Typist

CANARY = "canary-key-1234"


def section(page: Page, name: str) -> None:
    """That section is there."""
    expect(page.get_by_role("heading", level=2, name=f"Settings of {name}")).to_be_visible()
    expect(page.locator(".section [aria-busy=true]")).to_have_count(0)
    expect(page.locator(".setting").first).to_be_visible()


def test_a_setting_is_found_changed_refused_and_reset_by_the_keyboard(visit: Visit, paged: PagedSystem) -> None:
    visitor = visit()
    visitor.expected = lambda trouble: "422" in trouble  # of the change that is refused
    page = visitor.open(paged.sign_in())
    person = Typist(page)
    page.evaluate("location.hash = '#/settings'")
    expect(page.get_by_role("link", name="Critic")).to_be_visible()
    person.reach(page.get_by_label("Find a setting"))
    person.write("keep days")
    expect(page.locator(".found-settings li")).to_have_count(1)
    expect(page.locator(".found-settings p")).to_contain_text("How many days")
    assert violations(page, ".screen") == []
    person.press("Tab")
    person.reach(page.locator(".found-settings a"))
    person.press("Enter")
    section(page, "files")
    box = page.get_by_label("keep days", exact=True)
    expect(box).to_be_focused()
    person.press("Control+a")
    person.write("0")
    person.press("Enter")
    row = page.locator(".setting", has=box)
    expect(row.get_by_role("alert")).to_contain_text("More than 0.")
    person.press("Control+a")
    person.write("31")
    person.press("Enter")
    expect(row).to_contain_text("set in your file")
    expect(page.get_by_role("link", name="files 1 changed")).to_be_visible()
    expect(page.get_by_role("button", name="Restart files")).to_be_visible()
    page.locator(".yaml summary").click()
    expect(page.locator(".yaml pre")).to_have_text("keep_days: 31\n", use_inner_text=False)
    assert violations(page, ".screen") == []
    person.do(row.get_by_role("button", name="Reset keep days"), "Shift+Tab")
    expect(row).not_to_contain_text("set in your file")
    expect(box).to_be_focused()
    page.evaluate("location.hash = '#/settings/system/bus_pub_address'")
    section(page, "system")
    box = page.get_by_label("bus pub address", exact=True)
    box.fill("<img src=x onerror=alert(1)>")
    page.get_by_role("button", name="Save").click()
    row = page.locator(".setting", has=box)
    expect(row.get_by_role("alert")).to_contain_text("found '<img src=x")
    expect(box).to_be_focused()
    page.get_by_role("button", name="Discard the change").click()
    expect(page.locator(".section [role=alert]")).to_have_count(0)


def test_a_key_is_stored_and_cleared_and_never_comes_back_and_a_search_is_tried(
    visit: Visit, paged: PagedSystem
) -> None:
    visitor = visit(viewport={"width": 1280, "height": 860})
    page = visitor.open(paged.sign_in())
    told: list[str] = []
    page.on(
        "response", lambda one: told.append(one.text()) if "/settings" in one.url or "/secrets" in one.url else None
    )
    page.evaluate("location.hash = '#/settings/web_search'")
    section(page, "web search")
    set_up = page.get_by_role("form", name="Set up web search")
    set_up.get_by_label("A search to try").fill("coffee")
    set_up.get_by_role("button", name="Try a search").click()
    expect(set_up.get_by_role("status")).to_contain_text("It works.")
    row = page.locator(".setting", has=page.get_by_label("brave api key", exact=True))
    expect(row).to_contain_text("Not set.")
    page.get_by_label("brave api key", exact=True).fill(CANARY)
    row.get_by_role("button", name="Store").click()
    expect(row).to_contain_text("Stored as brave on")
    expect(page.get_by_label("brave api key", exact=True)).to_have_value("")
    expect(page.get_by_role("button", name="Restart web_search")).to_be_visible()
    set_up.get_by_label("Search engine").select_option("brave")
    expect(set_up).to_contain_text("A key is stored.")
    assert violations(page, ".screen") == [] and overflow(page) == [0, 0, 0]
    page.get_by_role("link", name="Secrets").click()
    table = page.get_by_role("table", name="Secrets")
    expect(table).to_contain_text("web_search.brave_api_key")
    assert violations(page, ".screen") == []
    table.get_by_role("link", name="web_search.brave_api_key").click()
    expect(page.get_by_label("brave api key", exact=True)).to_be_focused()
    row.get_by_role("button", name="Clear").click()
    row.get_by_role("button", name="Clear it").click()
    expect(row).to_contain_text("Not set.")
    page.get_by_role("link", name="Secrets").click()
    expect(page.locator(".section .empty")).to_contain_text("No secret is stored")
    page.get_by_label("Name", exact=True).fill("mine")
    page.get_by_label("Value", exact=True).fill(CANARY)
    page.get_by_role("button", name="Store").click()
    expect(table).to_contain_text("mine")
    table.get_by_role("button", name="Remove mine").click()
    table.get_by_role("button", name="Remove it").click()
    expect(page.locator(".section .empty")).to_be_visible()
    assert told and not [each for each in told if CANARY in each]
    assert CANARY not in json.dumps(page.evaluate("[localStorage, sessionStorage, document.body.innerHTML]"))


@pytest.mark.thorough
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_section_overflows_or_is_hard_to_reach(visit: Visit, paged: PagedSystem, theme: str) -> None:
    page = visit(color_scheme=theme).open(paged.sign_in())
    found = {}
    names = [one["name"] for one in paged.request("GET", "/settings")["settings"] if one["keys"]]
    for width in (360, 1280):
        page.set_viewport_size({"width": width, "height": 740})
        for name in names:
            page.evaluate(f"location.hash = '#/settings/{name}'")
            section(page, name.replace("_", " "))
            found[f"{name} at {width}"] = violations(page, ".screen") + [str(one) for one in overflow(page) if one > 0]
    assert {place: each for place, each in found.items() if each} == {}
