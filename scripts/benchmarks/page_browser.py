"""Debian's Chromium before a whole system with the stand-in, and what is read off its pages."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import yaml

from benchmarks.figure import BenchmarkFailed
from local.cli.temporary_system import TemporarySystem, write_settings
from local.core.errors import LocalError

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, CDPSession, Page

SECONDS = 120.0
LOOK_SECONDS = 0.02  # between two looks at what tells nobody of its changes, within SECONDS
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
    "--disable-features=Translate,WebUIOmniboxPopup,WebUIOmniboxAimPopup,WebUIOmniboxFullPopup",
)
READY = "#page[data-state=ready] #question"

# Notes every task of the page's thread above 50 ms, when the page can first be typed into, and how long a key takes to
# be on the screen, all in milliseconds.
WATCH = """
globalThis.longTasks = []; globalThis.usable = 0; globalThis.typed = []; globalThis.frames = [];
new PerformanceObserver((list) => {
  for (const one of list.getEntries()) longTasks.push([one.startTime, one.duration]);
}).observe({type: "longtask", buffered: true});
const look = () => {
  usable = document.querySelector("#page[data-state=ready] #question") ? performance.now() : 0;
  if (!usable) requestAnimationFrame(look);
};
look();
addEventListener("keydown", (event) => {
  const after = new MessageChannel();
  after.port1.onmessage = () => typed.push(performance.now() - event.timeStamp);
  requestAnimationFrame(() => after.port2.postMessage(0));
}, true);
globalThis.watchFrames = () => {
  const last = performance.now();
  frames.length = 0;
  const note = (now) => { frames.push(now); globalThis.watching = requestAnimationFrame(note); };
  cancelAnimationFrame(globalThis.watching);
  globalThis.watching = requestAnimationFrame(note);
};
"""


class PagedSystem:
    """A system, and a browser to look at it."""

    def __init__(self, system: TemporarySystem, browser: Browser) -> None:
        self.system, self.browser, self.url = system, browser, system.api_url

    async def context(self, **options: Any) -> BrowserContext:
        """A browser of one person, with nothing in its cache."""
        context = await self.browser.new_context(viewport={"width": 1280, "height": 860}, **options)
        context.set_default_timeout(SECONDS * 1000)
        await context.add_init_script(WATCH)
        return context

    async def open(self, address: str = "#/", context: BrowserContext | None = None) -> Page:
        """A page that can be used."""
        page = await (context or await self.context()).new_page()
        await page.goto(f"{self.url}/{address}")
        await page.wait_for_selector(READY)
        return page

    async def script(self, *turns: dict[str, Any], **pace: float) -> None:
        """Let the stand-in say exactly this."""
        body = yaml.safe_dump({"story": f"bench {id(turns)}", "turns": list(turns), **pace}, allow_unicode=True)
        url = f"{self.system.facts.model_url}/stand_in/script"
        async with httpx.AsyncClient(timeout=SECONDS, trust_env=False) as client:
            (await client.post(url, content=body.encode())).raise_for_status()

    async def get(self, path: str) -> Any:
        """The JSON that the API answers with."""
        async with httpx.AsyncClient(base_url=self.url, timeout=SECONDS, trust_env=False) as client:
            response = await client.get(path)
            response.raise_for_status()
            return response.json()


async def until(page: Page, expression: str) -> None:
    """Wait for a fact, told in JavaScript. (The page's policy forbids Playwright's own way, which is `eval`.)"""
    async with asyncio.timeout(SECONDS):
        while not await page.evaluate(expression):  # noqa: ASYNC110 - another process's, which tells of no change
            await asyncio.sleep(LOOK_SECONDS)


async def ask(page: Page, question: str) -> str:
    """Ask; gives the conversation's id."""
    await page.fill("#question", question)
    await page.keyboard.press("Enter")
    await until(page, "location.hash.startsWith('#/c/')")
    session: str = await page.evaluate("location.hash.split('/')[2]")
    return session


async def answered(page: Page) -> str:
    """The text of the last answer, as soon as it has ended."""
    await page.wait_for_selector("article.turn:last-child[data-state=answered]")
    return await page.locator("[data-answer]").last.inner_text()


async def metrics(session: CDPSession) -> dict[str, float]:
    """Seconds that the page's thread has worked, by what on, and the bytes of its heap."""
    told = await session.send("Performance.getMetrics")
    return {each["name"]: each["value"] for each in told["metrics"]}


async def watched(page: Page) -> CDPSession:
    """For `metrics`: in CPU time, which a busy machine does not stretch."""
    session = await page.context.new_cdp_session(page)
    await session.send("Performance.enable", {"timeDomain": "threadTicks"})
    return session


@asynccontextmanager
async def paged_system(prepare: Callable[[Path], Awaitable[None]] | None = None) -> AsyncIterator[PagedSystem]:
    """Start both, stop both; `prepare` is given the data directory first. Raises `BenchmarkFailed`."""
    try:
        from playwright.async_api import async_playwright
    except ImportError:
        raise BenchmarkFailed("Playwright is missing: run scripts/run_tests.py once, which installs it") from None
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        raise BenchmarkFailed("no Chromium is installed: apt-get install chromium")
    with tempfile.TemporaryDirectory(prefix="bench-page-") as name:
        data = Path(name) / "data"
        data.mkdir()
        if prepare is not None:
            await prepare(data)
        config = write_settings(Path(name) / "config", {"system": {"backend": "stand_in"}})
        system = TemporarySystem(data, config_dir=config, flags=["--log-level", "warning"])
        try:
            await asyncio.to_thread(system.__enter__)
        except LocalError as error:
            raise BenchmarkFailed(str(error)) from None
        try:
            async with async_playwright() as playwright:
                browser = await playwright.chromium.launch(executable_path=chromium, args=list(FLAGS))
                yield PagedSystem(system, browser)
                await browser.close()
        finally:
            await asyncio.to_thread(system.__exit__, None, None, None)
