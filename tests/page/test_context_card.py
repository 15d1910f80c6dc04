"""The card of what a model was told from the memory, above its answer: live, and after the page is loaded again."""

from __future__ import annotations

from playwright.sync_api import Page, Route, expect

from tests.page.conftest import PagedSystem
from tests.page.test_access import violations
from tests.page.test_chat import Visit, answered, ask
from tests.page.test_palette import open_palette


def shown(page: Page) -> None:
    card = page.locator("article.turn [data-context]")
    expect(card).to_have_count(1)
    head = card.get_by_role("button").first
    expect(head).to_contain_text("Known about you: ")
    if head.get_attribute("aria-expanded") == "false":
        head.click()
    expect(card.locator(".insides")).to_contain_text("Never suggest anything with hazelnuts. (said 20")
    assert violations(page, "[data-context]") == []


def test_what_was_told_is_above_the_answer_and_still_there_when_the_page_is_loaded_again(
    visit: Visit, paged: PagedSystem
) -> None:
    paged.ask("I am severely allergic to hazelnuts", "told")
    page = visit(viewport={"width": 360, "height": 860}, color_scheme="dark").open()
    ask(page, "Suggest a cake for my birthday")
    answered(page)
    shown(page)
    page.reload()
    page.wait_for_selector("#page[data-state=ready] #question")
    shown(page)


def test_an_unconfirmed_fact_is_confirmed_or_dropped_with_one_click(visit: Visit, paged: PagedSystem) -> None:
    made = {"stated_at": 1.0, "engram_id": "e", "confirmed": False, "slot": "home"}
    left = [made | {"value": "Porto", "fact_id": 7}, made | {"value": "<img src=x>", "fact_id": 8}]
    done: list[str] = []

    def answer(route: Route) -> None:
        method, path = route.request.method, route.request.url.partition("/memory/facts")[2].partition("?")[0]
        if method != "GET":
            done.append(f"{method} {path}")
            left.pop(0)
        facts = [] if left else [made | {"value": "Porto", "fact_id": 7, "confirmed": True, "questioned": True}]
        route.fulfill(json={"facts": facts, "unconfirmed": left})

    page = visit().open()
    page.route("**/memory/facts**", answer)
    open_palette(page)
    page.keyboard.type("Known about you")
    page.keyboard.press("Enter")
    screen = page.locator(".screen[data-screen=memory]")
    screen.get_by_role("button", name="Confirm home: Porto").click()
    screen.get_by_role("button", name="Drop home: <img src=x>").click()
    expect(screen.get_by_role("table", name="Facts")).to_contain_text("Porto may have changed since")
    assert done == ["POST /7/confirm", "DELETE /8"]
    assert violations(page, ".screen") == []
