"""The first visit: what is fetched, when something is seen, when one can type."""

from __future__ import annotations

from statistics import median
from urllib.parse import urlsplit

from benchmarks.figure import Figure
from benchmarks.page_browser import READY, PagedSystem, until
from local.api.page import INDEX, PageFolder

VISITS = 5
SLOW_DOWN = 4
PAINTED = "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0"


async def load_figures(paged: PagedSystem) -> list[Figure]:
    """Bytes, and milliseconds as medians of several visits, at full speed and with a CPU of a quarter."""
    visits = [await _visit(paged, 1) for _ in range(VISITS)]
    slow = [await _visit(paged, SLOW_DOWN) for _ in range(VISITS)]
    files = (await PageFolder().newest()).files
    sizes = [len(one.packed or one.content) for one in files.values()]
    return [
        Figure("page: first load, compressed", median(each[0] for each in visits) / 1000, "kB", limit=150),
        Figure("page:   with the headers, and what the API says", median(each[3] for each in visits) / 1000, "kB"),
        Figure("page: everything, compressed", sum(sizes) / 1000, "kB", limit=400),
        Figure("page: everything, as it is", sum(len(one.content) for one in files.values()) / 1e6, "MB", limit=2),
        Figure("page: first paint", median(each[1] for each in visits), "ms", limit=300),
        Figure("page: usable", median(each[2] for each in visits), "ms", limit=500),
        Figure(f"page: usable, CPU {SLOW_DOWN} times slower", median(each[2] for each in slow), "ms", limit=1500),
    ]


async def _visit(paged: PagedSystem, slower: int) -> tuple[float, float, float, float]:
    """Bytes of the page's files, first paint, usable, all bytes that came."""
    context = await paged.context()
    page = await context.new_page()
    session = await context.new_cdp_session(page)
    await session.send("Network.enable")
    await session.send("Emulation.setCPUThrottlingRate", {"rate": slower})
    fetched, paths = list[float](), list[str]()
    session.on("Network.loadingFinished", lambda event: fetched.append(event["encodedDataLength"]))
    session.on("Network.requestWillBeSent", lambda event: paths.append(urlsplit(event["request"]["url"]).path))
    await page.goto(f"{paged.url}/")
    await page.wait_for_selector(READY)
    await page.keyboard.type("x")
    await until(page, "document.querySelector('#question').value === 'x'")
    painted, usable = await page.evaluate(PAINTED), await page.evaluate("usable")
    await context.close()
    files = (await PageFolder().newest()).files
    own = [files[path.split("/", 3)[3] if path.startswith("/app/") else INDEX] for path in set(paths) if _is_file(path)]
    return sum(len(one.packed or one.content) for one in own), painted, usable, sum(fetched)


def _is_file(path: str) -> bool:
    """Whether the path is one of the page's own files, and not the API's."""
    return path == "/" or path.startswith("/app/")
