"""A long answer at full speed: what a token costs the page, at the beginning and at the end."""

from __future__ import annotations

import asyncio
import time

from benchmarks.figure import Figure
from benchmarks.page_browser import PagedSystem, answered, ask, metrics, watched

TOKENS = 20_000
RATE = 400  # tokens a second
WINDOW = 1000  # tokens
LETTERS = 4  # a token
BLOCKS = (
    "## A part of *some* length\n\n",
    "It has **weight**, a [link](https://a.example/page), `code` and words and words and words and words.\n\n" * 3,
    "```python\n" + "def part(number: int) -> str:\n    return f'part {number}'  # as it is\n" * 10 + "```\n\n",
    "| name | number | what it is |\n|:--|--:|--|\n" + "| one | 1 | the *first* of them |\n" * 12 + "\n",
    "".join(f"{number}. an item with **words**\n   - and one below it\n" for number in range(1, 8)) + "\n",
)


def text(number: int) -> str:
    """Markdown of that many tokens."""
    block = "".join(BLOCKS)
    return (block * (number * LETTERS // len(block) + 1))[: number * LETTERS]


async def streaming_figures(paged: PagedSystem) -> list[Figure]:
    """Script time of the page's thread a token, in CPU time, and the tasks that would be felt."""
    turn = {"user": "^at full speed", "replies": [{"content": text(TOKENS)}]}
    await paged.script(turn, chunk_chars=LETTERS, chunk_delay_seconds=1 / RATE)
    page = await paged.open()
    session = await watched(page)
    await ask(page, "at full speed")
    await page.wait_for_selector("[data-answer]")
    await page.evaluate("longTasks.length = 0")
    samples = [(time.monotonic(), await metrics(session))]
    ending = asyncio.create_task(answered(page))
    while not ending.done():
        await asyncio.wait([ending], timeout=0.5)
        samples.append((time.monotonic(), await metrics(session)))
    await ending
    long_tasks = [task for _, task in await page.evaluate("longTasks")]
    seconds = samples[-1][0] - samples[0][0]
    rate = TOKENS / seconds
    early, late = (_script(samples, at, rate) for at in (WINDOW, TOKENS - 2 * WINDOW))
    whole = samples[-1][1]["ScriptDuration"] - samples[0][1]["ScriptDuration"]
    await page.context.close()
    return [
        Figure("page: streaming, tokens a second that came", rate, "/s"),
        Figure("page:   tasks over 50 ms", len(long_tasks), "", limit=0),
        Figure("page:   the longest task", max(long_tasks, default=0), "ms", limit=50),
        Figure("page:   script a token", whole * 1000 / TOKENS, "ms", limit=1),
        Figure("page:   at the end, beside at 1,000 tokens", late, "ms", early, ratio_limit=1.5),
        Figure("page:   all work of its thread", _busy(samples) * 100, "%"),
    ]


def _script(samples: list[tuple[float, dict[str, float]]], at: float, rate: float) -> float:
    """Milliseconds of script a token in the thousand tokens around a place."""
    first = samples[0][0] + (at - WINDOW / 2) / rate
    inside = [each for each in samples if first - 0.5 <= each[0] <= first + WINDOW / rate + 0.5]
    spent = inside[-1][1]["ScriptDuration"] - inside[0][1]["ScriptDuration"]
    return spent * 1000 / ((inside[-1][0] - inside[0][0]) * rate)


def _busy(samples: list[tuple[float, dict[str, float]]]) -> float:
    spent = samples[-1][1]["TaskDuration"] - samples[0][1]["TaskDuration"]
    return spent / (samples[-1][0] - samples[0][0])
