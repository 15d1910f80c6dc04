"""The page for people who cannot see it: axe-core finds nothing wrong. And how the page begins."""

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


def violations(page: Page, place: str = "body") -> list[str]:
    """What axe-core finds wrong in one place of the page, which takes it less time than all of the page."""
    if not page.evaluate("'axe' in globalThis"):
        page.evaluate(AXE)
    found = page.evaluate(
        "place => axe.run(place, {resultTypes: ['violations']}).then(({ violations }) => violations)", place
    )
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
        pytest.param(1280, "light", marks=pytest.mark.thorough),
    ],
)
def test_axe_finds_nothing_in_any_state(visit: Visit, paged: PagedSystem, width: int, theme: str) -> None:
    paged.script({"user": "^mixed", "replies": [{"thinking": "I *think*.", "content": MIXED}]})
    paged.script(
        {"user": "^slow", "replies": [{"thinking": "hm " * 99, "content": "word " * 99}]}, chunk_delay_seconds=0.2
    )
    page = visit(viewport={"width": width, "height": 780}, color_scheme=theme).open()
    found = {}
    ask(page, "mixed")
    expect(page.locator(".c-kwd").first).to_be_visible()
    page.locator(".thinking summary").click()
    found["answered"] = violations(page, "article.turn")
    page.get_by_role("button", name="Model: ").click()
    expect(page.get_by_role("menuitemradio").first).to_be_visible()
    found["model menu"] = violations(page, ".bar")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="How it is answered").click()
    expect(page.get_by_role("textbox", name="Instructions")).to_be_visible()
    found["settings of the conversation"] = violations(page, "dialog")
    page.keyboard.press("Escape")
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
    found["menu"] = violations(page, ".rail")
    page.get_by_role("menuitem", name="Delete").click()
    expect(page.locator("dialog")).to_contain_text("are deleted permanently")
    found["dialog"] = violations(page, "dialog")
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)
    assert {state: each for state, each in found.items() if each} == {}


@pytest.mark.thorough
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
