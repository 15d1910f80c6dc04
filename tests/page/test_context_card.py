"""The card of what a model was told from the memory, above its answer: live, and after the page is loaded again."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from tests.page.conftest import PagedSystem
from tests.page.test_access import violations
from tests.page.test_chat import Visit, answered, ask


def shown(page: Page) -> None:
    card = page.locator("article.turn [data-context]")
    expect(card).to_have_count(1)
    head = card.get_by_role("button").first
    expect(head).to_contain_text("Known about you: ")
    if head.get_attribute("aria-expanded") == "false":
        head.click()
    expect(card.locator(".insides")).to_contain_text("allergies: hazelnuts (said 20")
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
