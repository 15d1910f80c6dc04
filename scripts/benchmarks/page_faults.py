"""At each of 30 points of an answer the page is loaded again, or the API is killed: it shows the record, once."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import httpx
import psutil

from benchmarks.figure import Figure
from benchmarks.page_browser import LOOK_SECONDS, READY, PagedSystem, answered, ask, until

if TYPE_CHECKING:
    from playwright.async_api import Page

POINTS = 30
PARAGRAPHS = 60
STORY = "\n\n".join(f"Paragraph {number} of the *story*, with `code`." for number in range(PARAGRAPHS))
SHOWN = "document.querySelector('[data-answer]')?.textContent.length ?? 0"


async def fault_figures(paged: PagedSystem) -> list[Figure]:
    """How often the text was right without anybody's help, and the longest time until it went on."""
    await paged.script(
        {"user": "^story", "replies": [{"thinking": "A story. " * 9, "content": STORY}]},
        chunk_chars=12, chunk_delay_seconds=0.02,
    )  # fmt: skip
    reloads = [await _try(paged, point, kill=False) for point in range(POINTS)]
    kills = [await _try(paged, point, kill=True) for point in range(POINTS)]
    figures = []
    for name, tries in (("loaded again", reloads), ("with the API killed", kills)):
        right, late = sum(each[0] for each in tries), [each[1] for each in tries]
        figures += [
            Figure(f"page: {name} at {POINTS} points, right", right, "", limit=POINTS, at_least=True),
            Figure("page:   until it goes on, at most", max(late), "s", limit=2),
        ]
    return figures


async def _try(paged: PagedSystem, point: int, *, kill: bool) -> tuple[bool, float]:
    """Whether the page shows the record, once; seconds from the return of what was away to the text's going on."""
    page = await paged.open()
    session = await ask(page, f"story {point}")
    at = point * len(STORY) // POINTS
    await until(page, f"({SHOWN}) >= {at * 0.8:.0f}")
    late = await (_killed(paged, page) if kill else _reloaded(page))
    live = await answered(page)
    turns = (await paged.get(f"/sessions/{session}/turns"))["turns"]
    await page.reload()
    await page.wait_for_selector(READY)
    right = live == await answered(page) and len(turns) == 1 and turns[0]["answer"] == STORY
    right = right and await page.locator("article.turn").count() == 1
    await page.context.close()
    return right, late


async def _reloaded(page: Page) -> float:
    before = await page.evaluate(SHOWN)
    await page.reload()
    begun = time.monotonic()
    await until(page, _goes_on(before))
    return time.monotonic() - begun


async def _killed(paged: PagedSystem, page: Page) -> float:
    before = await page.evaluate(SHOWN)
    health = await paged.get("/health")
    (pid,) = [each["pid"] for each in health["participants"] if each["name"] == "api"]
    process = psutil.Process(pid)
    process.kill()
    await asyncio.to_thread(psutil.wait_procs, [process], 30)
    async with httpx.AsyncClient(base_url=paged.url, timeout=5, trust_env=False) as client, asyncio.timeout(30):
        while True:
            with suppress(httpx.HTTPError):
                await client.get("/health")
                break
            await asyncio.sleep(LOOK_SECONDS)
    begun = time.monotonic()
    await until(page, _goes_on(before))
    return time.monotonic() - begun


def _goes_on(before: int) -> str:
    done = "document.querySelector('article.turn')?.dataset.state === 'answered'"
    return f"({SHOWN}) > {before} || ({done})"
