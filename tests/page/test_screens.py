"""The frame of the page: each screen has a place in the rail and an address, which a reload and *back* keep to."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, Route, expect

from tests.page.conftest import PagedSystem
from tests.page.test_access import violations
from tests.page.test_chat import Visit
from tests.page.test_palette import open_palette

PARTS = (
    *("system/participants", "system/usage", "system/backups", "system/log", "system/users"),
    *("settings/critic", "agents/goals", "agents/reflection", "memory/soul", "activity/changes", "activity/subjects"),
    *("tools/approvals", "tools/skills", "tools/profiles", "tools/mcp", "tools/hooks", "tools/folders"),
    "activity/questions",
)
TITLES = ("Memory", "Activity", "Agents", "Schedules", "Tools", "Participants", "System", "Settings")


def shown(page: Page, title: str) -> None:
    """That screen is there with its content, says so, and is marked in the rail."""
    expect(page.get_by_role("heading", level=1)).to_have_text(title)
    expect(page.locator(".screen [aria-busy=true]")).to_have_count(0)
    expect(page).to_have_title(f"{title} · LoCAL2")
    expect(page.locator(".screen .fault")).to_have_count(0)


def overflow(page: Page) -> list[int]:
    found: list[int] = page.evaluate(
        "[...document.querySelectorAll('#page, main, .screen')].map(one => one.scrollWidth - one.clientWidth)"
    )
    return found


def test_each_screen_opens_from_the_rail_has_the_focus_and_survives_reload_and_back(
    visit: Visit, paged: PagedSystem
) -> None:
    page = visit().open()
    rail = page.get_by_role("navigation", name="Screens")
    found = {}
    for title in TITLES:
        rail.get_by_role("link", name=title).click()
        shown(page, title)
        expect(page).to_have_url(re.compile(f"#/{title.lower()}$"))
        expect(page.get_by_role("heading", level=1)).to_be_focused()
        expect(rail.get_by_role("link", name=title)).to_have_attribute("aria-current", "page")
        found[title] = violations(page)
    assert {title: each for title, each in found.items() if each} == {}
    page.reload()
    shown(page, "Settings")
    page.go_back()
    shown(page, "System")
    page.go_forward()
    shown(page, "Settings")
    rail.get_by_role("link", name="Chat").click()
    expect(page.locator("#question")).to_be_focused()
    expect(page).to_have_title("LoCAL2")
    page.evaluate("location.hash = '#/nowhere/at/all'")
    expect(page.get_by_role("heading", level=1)).to_have_text("No such page")
    page.get_by_role("link", name="Open Chat").click()
    expect(page.locator("#question")).to_be_visible()


def test_on_a_phone_the_screens_are_a_bar_and_a_sheet(visit: Visit, paged: PagedSystem) -> None:
    page = visit(viewport={"width": 360, "height": 740}, color_scheme="dark").open("#/system")
    shown(page, "System")
    bar = page.get_by_role("navigation", name="Screens")
    assert bar.get_by_role("link").all_inner_texts() == ["Chat", "Memory", "Activity", "Settings"]
    assert overflow(page) == [0, 0, 0]
    assert violations(page) == []
    bar.get_by_role("button", name="More").click()
    expect(page.get_by_role("dialog", name="More")).to_be_visible()
    assert violations(page, "dialog") == []
    page.get_by_role("dialog").get_by_role("link", name="Tools").click()
    shown(page, "Tools")
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert overflow(page) == [0, 0, 0]
    bar.get_by_role("link", name="Settings").click()
    shown(page, "Settings")
    page.get_by_role("link", name="Critic").click()
    expect(page.get_by_role("heading", name="Settings of critic")).to_be_visible()
    page.get_by_role("link", name="All settings").click()
    expect(page.get_by_role("link", name="Critic")).to_be_visible()
    assert overflow(page) == [0, 0, 0]
    bar.get_by_role("link", name="Chat").click()
    page.get_by_role("button", name="Conversations").click()
    expect(page.get_by_role("searchbox")).to_be_visible()


def test_keys_and_the_palette_lead_to_screens_and_back_to_the_list(visit: Visit, paged: PagedSystem) -> None:
    page = visit().open("#/memory")
    shown(page, "Memory")
    for keys, title in (("ga", "Activity"), ("gg", "Agents"), ("gy", "System")):
        page.keyboard.type(keys)
        shown(page, title)
    open_palette(page)
    page.keyboard.type("schedules")
    page.keyboard.press("Enter")
    shown(page, "Schedules")
    expect(page.get_by_role("heading", level=1)).to_be_focused()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Schedules")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.type("gf")
    expect(page.locator("#search-conversations")).to_be_focused()


def test_the_theme_and_the_text_size_are_kept_and_there_before_the_page_is_drawn(
    visit: Visit, paged: PagedSystem
) -> None:
    page = visit().open("#/settings")
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_text("Dark", exact=True).click()
    page.get_by_text("125 %").click()
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark != light
    held: list[Route] = []
    page.route("**/main.js", lambda route: held.append(route))
    page.reload(wait_until="commit")
    page.wait_for_selector("#page[data-state=loading] .mark", state="attached")
    expect(page.locator("body")).to_have_css("background-color", dark)  # from a style sheet, while the script is held
    expect(page.locator("#page")).to_have_css("zoom", "1.25")
    held[0].continue_()
    shown(page, "Settings")
    expect(page.get_by_role("radio", name="Dark")).to_be_checked()
    assert overflow(page) == [0, 0, 0]


@pytest.mark.thorough
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_on_any_screen_at_two_widths(visit: Visit, paged: PagedSystem, theme: str) -> None:
    found = {}
    page = visit(color_scheme=theme).open(paged.sign_in())
    for width in (360, 1280):
        page.set_viewport_size({"width": width, "height": 780})
        for address in (*(title.lower() for title in TITLES), *PARTS):
            page.evaluate(f"location.hash = '#/{address}'")
            title = address.partition("/")[0].capitalize()
            shown(page, title)
            found[f"{address} at {width}"] = violations(page) + [str(one) for one in overflow(page) if one > 0]
    assert {place: each for place, each in found.items() if each} == {}


def test_an_empty_screen_offers_an_example_to_send(visit: Visit, paged: PagedSystem) -> None:
    page = visit().open()
    page.route("**/cron", lambda route: route.fulfill(json={"jobs": []}))
    page.evaluate("location.hash = '#/schedules'")
    page.get_by_role("button", name="Try “Every morning").click()
    expect(page.locator("#question")).to_be_focused()
    expect(page.locator("#question")).to_have_value(re.compile("^Every morning at 8"))
