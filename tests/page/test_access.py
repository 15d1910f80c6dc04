"""The page for people who cannot see it, or have no mouse: axe-core finds nothing, and everything has its keys."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import axe_playwright_python
import pytest
from playwright.sync_api import Page, Route, expect

from tests.page.conftest import PagedSystem, Visitor

Visit = Callable[..., Visitor]
AXE = (Path(axe_playwright_python.__file__).parent / "axe.min.js").read_text()

MIXED = """# Title

Text with `code`, [a link](https://a.example/x) and **weight**.

| a | b |
|--|--|
| 1 | 2 |

- [x] done
- [ ] to do

```python
def f(x):  # note
    return "text", 1
```"""


def violations(page: Page) -> list[str]:
    if not page.evaluate("'axe' in globalThis"):
        page.evaluate(AXE)
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']}).then(({ violations }) => violations)")
    return [
        f"{one['id']} ({one['impact']}): {node['html'][:160]} {node.get('failureSummary', '')[:200]}"
        for one in found
        for node in one["nodes"]
    ]


def ask(page: Page, question: str) -> None:
    page.fill("#question", question)
    page.keyboard.press("Control+Enter")


@pytest.mark.parametrize(
    ("width", "theme"),
    [
        (360, "dark"),
        (1280, "light"),
        pytest.param(360, "light", marks=pytest.mark.thorough),
        pytest.param(1280, "dark", marks=pytest.mark.thorough),
    ],
)
def test_axe_finds_nothing_in_any_state(visit: Visit, paged: PagedSystem, width: int, theme: str) -> None:
    paged.script({"user": "^mixed", "replies": [{"thinking": "I *think*.", "content": MIXED}]})
    paged.script(
        {"user": "^slow", "replies": [{"thinking": "hm " * 99, "content": "word " * 99}]}, chunk_delay_seconds=0.2
    )
    page = visit(viewport={"width": width, "height": 780}, color_scheme=theme).open()
    found = {"empty": violations(page)}
    ask(page, "mixed")
    expect(page.locator(".c-kwd").first).to_be_visible()
    page.locator(".thinking summary").click()
    found["answered"] = violations(page)
    paged.fault(kind="status", status=400, body={"error": "ill"}, match="14\\+14")
    ask(page, "What is 14+14?")
    expect(page.locator(".fault")).to_be_visible()
    ask(page, "slow")
    expect(page.locator("[data-live=true]")).to_be_visible()
    ask(page, "What is 2+2?")
    expect(page.locator(".queued")).to_be_visible()
    found["failed, thinking and queued"] = violations(page)
    if width < 760:
        page.get_by_role("button", name="Conversations").click()
    page.locator(".conv.on .menu > button").click()
    expect(page.get_by_role("menuitem", name="Delete")).to_be_visible()
    found["menu"] = violations(page)
    page.get_by_role("menuitem", name="Delete").click()
    expect(page.locator("dialog")).to_contain_text("go for good")
    found["dialog"] = violations(page)
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)
    page.locator(".screens button", has_text="Keys").click()
    expect(page.locator("dialog")).to_contain_text("Single letters")
    found["keys"] = violations(page)
    assert {state: each for state, each in found.items() if each} == {}


def test_everything_of_a_conversation_can_be_done_by_keys(visit: Visit, paged: PagedSystem) -> None:
    page = visit().open()
    press, focused = page.keyboard.press, "document.activeElement"
    expect(page.locator("#question")).to_be_focused()
    page.keyboard.type("What is 2+2?")
    press("Enter")
    expect(page.locator("[data-answer]")).to_have_text("2+2 = 4")
    expect(page.locator("#question")).to_be_focused()
    page.keyboard.type("What is 3+3?")
    press("Shift+Enter")
    page.keyboard.type("Say it.")
    press("Enter")
    expect(page.locator("article.turn").nth(1)).to_have_attribute("data-state", "answered")
    page.evaluate("document.activeElement.blur()")
    press("k")
    press("k")
    assert page.evaluate(f"{focused}.dataset.query") == page.locator("article.turn").nth(0).get_attribute("data-query")
    press("j")
    press("t")
    expect(page.locator("article.turn").nth(1).locator(".thinking")).to_have_attribute("open", "")
    press("/")
    expect(page.get_by_role("searchbox", name="Find in this conversation")).to_be_focused()
    page.keyboard.type("2+2")
    expect(page.locator(".hits button").first).to_contain_text("2+2")
    press("Tab")
    press("Enter")
    expect(page.locator("article.turn").nth(0)).to_be_focused()
    press("/")
    page.keyboard.type("2+2")
    expect(page.locator(".hits button").first).to_be_visible()
    press("Escape")
    expect(page.locator("dialog")).to_have_count(0)
    press("?")
    expect(page.locator("dialog")).to_contain_text("Single letters")
    press("Escape")
    expect(page.locator("dialog")).to_have_count(0)
    press("g")
    press("c")
    expect(page.locator("h1")).to_have_text("New conversation")
    expect(page.locator("#question")).to_be_focused()


def test_a_token_in_the_address_is_taken_from_it_and_shown_to_the_api_alone(visit: Visit, paged: PagedSystem) -> None:
    visitor = visit()
    visitor.follow_requests()
    token = paged.owner_token
    page = visitor.open(f"#token={token}")
    assert token not in page.url
    expect(page.locator(".rail")).to_be_visible()
    assert f"Bearer {token}" in {asked.headers.get("authorization") for asked in visitor.requests}


def test_the_frame_is_there_before_the_program_and_the_program_takes_it_over(visit: Visit) -> None:
    page = visit().open()
    held: list[Route] = []
    page.route("**/main.js", lambda route: held.append(route))
    page.goto(f"{page.url.partition('?')[0]}?frame", wait_until="commit")
    expect(page.locator("#page[data-state=loading] .brand")).to_have_text("LoCAL2")
    expect(page.locator(".rail")).to_have_css("display", "flex")  # its style is there
    wide = page.locator(".rail").bounding_box()
    held[0].continue_()
    page.wait_for_selector("#page[data-state=ready] #question")
    expect(page.locator(".brand b")).to_have_text("LoCAL2")
    assert page.locator(".rail").bounding_box() == wide
