"""Eight tabs of one browser, each with an answer that comes."""

from __future__ import annotations

import asyncio

from benchmarks.figure import Figure
from benchmarks.page_browser import PagedSystem, answered, ask

TABS = 8
STORY = "\n\n".join(f"Paragraph {number} of the *story*." for number in range(30))


async def tab_figures(paged: PagedSystem) -> list[Figure]:
    """How many of them have their whole answer, and over how many streams."""
    await paged.script({"user": "^tab ", "replies": [{"content": STORY}]}, chunk_chars=9, chunk_delay_seconds=0.02)
    context = await paged.context()
    running = set[object]()
    most = 0

    def begun(request: object) -> None:
        nonlocal most
        running.add(request)
        most = max(most, len(running))

    context.on("request", lambda request: begun(request) if "/stream?" in request.url else None)
    context.on("requestfinished", lambda request: running.discard(request))
    context.on("requestfailed", lambda request: running.discard(request))
    tabs = [await paged.open(context=context) for _ in range(TABS)]
    for number, tab in enumerate(tabs):
        await ask(tab, f"tab {number}")
    texts = await asyncio.gather(*(answered(tab) for tab in tabs))
    whole = sum(text.count("Paragraph") == STORY.count("Paragraph") for text in texts)
    await context.close()
    return [
        Figure(f"page: of {TABS} tabs have their whole answer", whole, "", limit=TABS, at_least=True),
        Figure("page:   streams at once", most, "", limit=1),
    ]
