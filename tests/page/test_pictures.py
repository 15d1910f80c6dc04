"""The page at four sizes and in both themes: nothing overflows, nothing is blank.

`LOCAL2_PICTURES=docs/images` keeps the pictures that the documentation shows."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.page.conftest import PagedSystem, Visitor

Visit = Callable[..., Visitor]

SIZES = {360: 740, 768: 1024, 1280: 800, 1920: 1080}
KEPT = {(1280, "light"): "chat-light.png", (1280, "dark"): "chat-dark.png", (360, "light"): "chat-phone.png"}
QUESTION = "How do I take my coffee, and which of these roasts would suit me?"
ANSWER = """You take it **black**. Without milk a roast's acidity is in front, so of the six these two suit you:

| Roast | Origin | Acidity | Price |
|:--|:--|--:|--:|
| Monte Verde | Brazil | 2 / 10 | € 14.20 |
| Harar Dark | Ethiopia | 3 / 10 | € 16.80 |

```python
sorted(roasts, key=lambda roast: (roast.acidity, roast.price))[:2]
```"""


@pytest.fixture
def talk(paged: PagedSystem) -> str:
    """A conversation that has a bit of everything; its id."""
    paged.script(
        {"user": "^How do I take my coffee, and", "replies": [
            {"thinking": "A preference, which search_memory can tell. Then I compare the acidity of the roasts.",
             "tool_calls": [{"name": "search_memory", "arguments": {"query": "How do I take my coffee?"}}]},
            {"content": ANSWER},
        ]},
        {"user": "^I take my coffee", "replies": [{"content": "Noted: black, no milk, since November."}]},
        {"user": "^Trip to", "replies": [{"content": "Take a warm coat."}]},
    )  # fmt: skip
    paged.ask("Trip to Oslo in December", "oslo")
    paged.tell("I take my coffee black, since I stopped with milk in November.", "office")
    paged.ask("What is 17 * 23?", "roasts")
    paged.request("PATCH", "/sessions/office", json={"title": "Coffee for the office", "pinned": True})
    paged.request("PATCH", "/sessions/roasts", json={"title": "Coffee roasts"})
    return "roasts"


@pytest.mark.thorough
def test_a_conversation_fits_at_every_size_and_in_both_themes(
    visit: Visit, paged: PagedSystem, talk: str, tmp_path: Path
) -> None:
    page = visit(viewport={"width": 1280, "height": 800}).open(paged.sign_in())
    page.evaluate(f"location.hash = '#/c/{talk}'")
    expect(page.locator("article.turn")).to_have_count(1)
    page.fill("#question", QUESTION)
    page.keyboard.press("Enter")
    expect(page.locator("article.turn").nth(1).locator(".grade")).to_be_visible()
    expect(page.locator(".recalls")).to_contain_text("coffee black")
    expect(page.locator(".c-kwd").first).to_be_visible()
    page.get_by_role("button", name="Close this note").click()
    page.mouse.move(640, 400)
    for (width, height), theme in ((size, theme) for size in SIZES.items() for theme in ("light", "dark")):
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=theme)
        page.locator("article.turn").nth(1).evaluate("turn => turn.scrollIntoView()")
        picture = page.screenshot(path=tmp_path / f"{width}-{theme}.png")
        assert len(picture) > 20_000, "blank"
        for shown in ("#page", ".talk", ".composer", "article.turn"):
            overflows = page.locator(shown).first.evaluate("node => node.scrollWidth - node.clientWidth")
            assert overflows <= 0, f"{shown} at {width} pixels"
        if (folder := os.environ.get("LOCAL2_PICTURES")) and (name := KEPT.get((width, theme))):
            Path(folder).mkdir(parents=True, exist_ok=True)
            shutil.copy(tmp_path / f"{width}-{theme}.png", Path(folder) / name)
