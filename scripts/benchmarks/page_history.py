"""A conversation of 10,000 messages: opened, scrolled, searched, and written in while an answer comes."""

from __future__ import annotations

import asyncio
import time
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.figure import Figure
from benchmarks.page_browser import PagedSystem, answered, ask, metrics, until, watched
from benchmarks.page_streaming import LETTERS, RATE, text
from local.bus.messages import QueryReceived, ResponseGeneration
from local.generator.history import ConversationService, NewTurn, TurnStatus

if TYPE_CHECKING:
    from playwright.async_api import Page

SESSION = "long-conversation"
TURNS = 5_000
AT_ONCE = 100
NEEDLE = "chrysanthemum"
NEEDLES = range(0, TURNS, 500)
OPENINGS = 5
PAGES_BACK = 6
KEYS = 100

# Scrolls to the first turn that is loaded: gives where it stands then, and how many there are.
TO_BEGINNING = """() => {
  document.querySelector(".scroll").scrollTop = 0;
  globalThis.anchor = document.querySelector("article.turn");
  return [anchor.getBoundingClientRect().top, document.querySelectorAll("article.turn").length];
}"""


async def prepare(data: Path) -> None:
    """Put the conversation into the record, as the generator does it."""
    async with ConversationService(data / "conversation.db") as record:
        for first in range(0, TURNS, AT_ONCE):
            await asyncio.gather(*(_exchange(record, number) for number in range(first, first + AT_ONCE)))


async def _exchange(record: ConversationService, number: int) -> None:
    query_id, query = f"q-{number:05}", f"What of number {number}?"
    flower = f" A {NEEDLE} stands there." if number in NEEDLES else ""
    answer = f"Number **{number}** is `{number * 7}`.{flower}\n\n" + "Some more words of it, as answers have.\n\n" * 4
    body = QueryReceived(query_id=query_id, query=query, session_id=SESSION).encode().decode()
    await record.accept(NewTurn(query_id, SESSION, None, query_id, query, body))
    outcome = ResponseGeneration(
        query_id=query_id, status="answered", query=query, answer=answer, thinking="Hm.", session_id=SESSION
    )
    ending = (TurnStatus.ANSWERED, answer, outcome.routing_key, outcome.encode().decode())
    await record.finish(query_id, *ending)
    await record.published(query_id)


async def history_figures(paged: PagedSystem) -> list[Figure]:
    """Milliseconds and frames of a person who looks through it."""
    opened = [await _opening(paged) for _ in range(OPENINGS)]
    page = await paged.open(f"#/c/{SESSION}")
    await page.wait_for_selector("article.turn:nth-of-type(50)")
    found = [await _finding(page) for _ in range(OPENINGS)]
    shifts = [await _earlier(page) for _ in range(PAGES_BACK)]
    frames = await _scroll(page)
    heap = (await metrics(await watched(page)))["JSHeapUsedSize"]
    typed = await _typing(paged, page)
    await page.context.close()
    return [
        Figure(f"page: {TURNS * 2:,} messages, open", median(opened), "ms", limit=1000),
        Figure("page:   find", median(found), "ms", limit=300),
        Figure("page:   the text moves when earlier turns come", max(shifts), "px", limit=1),
        Figure("page:   scrolling, frames a second", 1000 / median(frames), "/s", limit=55, at_least=True),
        Figure("page:   the longest frame", max(frames), "ms", limit=100),
        Figure("page:   heap", heap / 1e6, "MB", limit=150),
        Figure("page:   a key while an answer comes, p50", median(typed), "ms"),
        Figure("page:   p98", sorted(typed)[int(len(typed) * 0.98)], "ms", limit=100),
    ]


async def _opening(paged: PagedSystem) -> float:
    """From the click on its name to its last turn."""
    page = await paged.open()
    await page.wait_for_selector(".conv")
    begun = await page.evaluate(f"(location.hash = '#/c/{SESSION}', performance.now())")
    await page.wait_for_selector(f"[data-query=q-{TURNS - 1:05}] [data-answer]")
    spent: float = await page.evaluate("performance.now()") - begun
    await page.context.close()
    return spent


async def _finding(page: Page) -> float:
    """From the last letter of a word to the places where it stands."""
    await page.evaluate("document.activeElement.blur()")
    await page.keyboard.press("/")
    await page.wait_for_selector("dialog input")
    await page.keyboard.insert_text(NEEDLE)
    begun = time.perf_counter()
    await page.wait_for_selector(".hits button")
    spent = time.perf_counter() - begun
    await page.fill("dialog input", "")
    await page.keyboard.press("Escape")
    await page.wait_for_selector("dialog", state="detached")
    return spent * 1000


async def _earlier(page: Page) -> float:
    """By how many pixels what stands on top moves while the turns before it come."""
    first, known = await page.evaluate(TO_BEGINNING)
    await until(page, f"document.querySelectorAll('article.turn').length > {known}")
    await page.wait_for_timeout(300)
    moved: float = abs(await page.evaluate("anchor.getBoundingClientRect().top") - first)
    return moved


async def _scroll(page: Page) -> list[float]:
    """Milliseconds of each frame while the wheel is turned through all that is there."""
    await page.evaluate("(document.querySelector('.scroll').scrollTop = 200, longTasks.length = 0, watchFrames())")
    box = await page.locator(".scroll").bounding_box()
    assert box is not None
    await page.mouse.move(box["x"] + 200, box["y"] + 200)
    for _ in range(200):
        await page.mouse.wheel(0, 400)
    times = await page.evaluate("frames")
    return [after - before for before, after in pairwise(times)]


async def _typing(paged: PagedSystem, page: Page) -> list[float]:
    """Milliseconds from each key to the frame that shows it, while an answer comes at its end."""
    turn = {"user": "^while I write", "replies": [{"content": text(8_000)}]}
    await paged.script(turn, chunk_chars=LETTERS, chunk_delay_seconds=1 / RATE)
    await ask(page, "while I write")
    await page.wait_for_selector("article.turn:last-child [data-answer]")
    await page.evaluate("typed.length = 0")
    for _ in range(KEYS):
        await page.keyboard.type("x", delay=0)
        await page.wait_for_timeout(60)
    typed: list[float] = await page.evaluate("typed")
    await page.fill("#question", "")
    await answered(page)
    return typed
