"""The page in a real browser, before a real system with the stand-in. A console message, a refused policy, a request to
another host or an exception in any page fails the test. What moves stands still, unless a visitor wishes otherwise."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
import yaml
from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Error,
    Page,
    Request,
    ViewportSize,
    expect,
    sync_playwright,
)

from local.cli.temporary_system import write_settings
from local.stories.player import STORIES, LocalWeb, load_pages
from tests.warm.warm_system import WarmSystem

SECONDS = 90.0
CHROMIUM = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "google-chrome"))), None)
# Among what is switched off is the list below the address, of which each window would make two pages of its own. Nobody
# is at the proxy: a request to another machine fails, and the console says so.
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync"),
    "--disable-features=Translate,WebUIOmniboxPopup,WebUIOmniboxAimPopup,WebUIOmniboxFullPopup",
    "--proxy-server=http://127.0.0.1:9",
)
WINDOW: ViewportSize = {"width": 1280, "height": 860}
PHONE: ViewportSize = {"width": 360, "height": 740}
HERE = f"{Path(__file__).parent}{os.sep}"
expect.set_options(timeout=SECONDS * 1000)

# Counts what a policy refuses: the page must not even try. And tells of a script that a stranger's words have run.
WATCH = """
globalThis.refused = [];
addEventListener("securitypolicyviolation", (event) => refused.push(`${event.effectiveDirective} ${event.blockedURI}`));
globalThis.pwned = () => console.error("a script of a stranger ran");
"""
# A page that is left keeps its draft once more, in a store that is there no longer.
FORGET = "localStorage.clear(); sessionStorage.clear(); Storage.prototype.setItem = () => {};"
VISITS = count()


class Window:
    """A browser's window for one visitor after the other. The first of them to come finds the tab of the one before: a
    page that follows another one has its modules from memory, and costs a third of one in a tab of its own."""

    def __init__(self, browser: Browser, *, is_phone: bool = False) -> None:
        viewport = PHONE if is_phone else WINDOW
        self.context: BrowserContext = browser.new_context(viewport=viewport, is_mobile=is_phone, has_touch=is_phone)
        self.context.add_init_script(WATCH)
        self.context.set_default_timeout(SECONDS * 1000)
        self._left: Page | None = None

    def tab(self) -> Page:
        """A tab, with nothing in it that is of somebody."""
        tab, self._left = self._left or self.context.new_page(), None
        tab.goto("about:blank")  # the system of the visitor before may have ended, about which its page complains
        tab.mouse.move(0, 0)
        return tab

    def leave(self, tabs: list[Page]) -> None:
        """Forget what a visitor has left in their tabs, and keep one."""
        self.context.set_offline(False)
        self.context.unroute_all()
        for tab in tabs[1:]:
            tab.close()
        self._left = tabs[0]
        self._left.unroute_all()
        self._left.evaluate(FORGET)


class Visitor:
    """One person with a browser: pages that fail the test when anything of them is not as it should be. `wishes` are
    those of `Page.emulate_media`."""

    def __init__(self, window: Window, url: str, viewport: ViewportSize = WINDOW, **wishes: Any) -> None:
        self.window, self.context, self.url = window, window.context, url
        self.requests: list[Request] = []  # of all their pages, in order, once they are followed
        self.expected: Callable[[str], bool] = lambda trouble: False  # what a test brings about itself
        self._viewport, self._wishes = viewport, wishes
        self._pages, self._troubles = list[Page](), list[str]()
        self._watched = {"console": self._said, "pageerror": self._failed}

    def follow_requests(self) -> None:
        """Keep each request of the pages opened from now on; one to another host fails the test also where the policy
        or the proxy would have stopped it. A load of the page has a hundred requests, so most tests do without."""
        self._watched["request"] = self._request

    def open(self, address: str = "#/") -> Page:
        """A page that can be used: its list of conversations and its stream are there."""
        page = self.window.tab()
        self._pages.append(page)
        page.set_viewport_size(self._viewport)
        page.emulate_media(**{"color_scheme": "light", "reduced_motion": "reduce", **self._wishes})
        for event, hear in self._watched.items():
            page.on(event, hear)  # type: ignore[call-overload]
        page.goto(f"{self.url}/?debug&visit={next(VISITS)}{address}")
        page.wait_for_selector("#page[data-state=ready] main h1")
        page.wait_for_selector(".sessions[data-state=ready]", state="attached")  # which the stream's beginning has read
        return page

    def _said(self, message: ConsoleMessage) -> None:
        self._troubles.append(f"console: {message.text}")

    def _failed(self, error: Error) -> None:
        self._troubles.append(f"exception: {error}")

    def _request(self, asked: Request) -> None:
        self.requests.append(asked)
        if not asked.url.startswith((self.url, "blob:", "data:")):
            self._troubles.append(f"request to {asked.url}")

    def leave(self) -> None:
        """End the visit. Raises if anything was wrong."""
        pages = [page for page in self._pages if not page.is_closed()]
        self._pages.clear()
        refused = [one for page in pages for one in page.evaluate("globalThis.refused ?? []")]
        for page in pages:
            for event, hear in self._watched.items():
                page.remove_listener(event, hear)
        if pages:
            self.window.leave(pages)
        assert not refused, refused
        assert not (left := [one for one in self._troubles if not self.expected(one)]), left


class PagedSystem:
    """The system behind the pages."""

    def __init__(self, system: WarmSystem) -> None:
        self.system, self.url = system, system.api_url
        self._stories = count()

    @property
    def owner_token(self) -> str:
        """The owner's token, for programs."""
        return (self.system.data_dir / "api_token").read_text().strip()

    @property
    def authorization(self) -> dict[str, str]:
        """The header that shows it."""
        return {"authorization": f"Bearer {self.owner_token}"}

    def code(self, *, link: bool = False) -> str:
        """A new one-time code of the owner's: to be typed, or for a link."""
        made = self.request("POST", "/sign-in/codes", json={"link": link}, headers=self.authorization)
        return str(made["code"])

    def sign_in(self) -> str:
        """The end of an address that signs a visitor in."""
        return f"#code={self.code(link=True)}"

    def request(self, method: str, path: str, **request: Any) -> Any:
        """The JSON that the API answers with."""
        response = httpx.request(method, f"{self.url}{path}", timeout=SECONDS, trust_env=False, **request)
        assert response.status_code < 400, response.text
        return response.json()

    def ask(self, query: str, session_id: str, **others: Any) -> Any:
        """A query from another frontend."""
        return self.request("POST", "/query", json={"query": query, "session_id": session_id, **others})

    def _compares(self, statement: str) -> bool:
        found = self.request("GET", "/memory", params={"query": statement})
        return not found["degraded"] and any(hit["similarity"] is not None for hit in found["hits"])

    def tell(self, statement: str, session_id: str) -> None:
        """State something at another frontend; it can be found in the memory then, by its words and by its meaning."""
        query_id = uuid4().hex
        events = f"{self.url}/events?subject=memory.ingested"
        with httpx.stream("GET", events, timeout=SECONDS, trust_env=False) as ingested:
            self.ask(statement, session_id, query_id=query_id)
            next(line for line in ingested.iter_lines() if query_id in line)
        end = time.monotonic() + SECONDS
        while not self._compares(statement):  # the model is loaded meanwhile
            assert time.monotonic() < end

    def script(self, *turns: dict[str, Any], **pace: float) -> None:
        """Let the stand-in say exactly this; see `Script`."""
        body = yaml.safe_dump(
            {"story": f"page {next(self._stories)}", "turns": list(turns), **pace}, allow_unicode=True
        )
        url = f"{self.system.facts.model_url}/stand_in/script"
        httpx.post(url, content=body.encode(), timeout=SECONDS, trust_env=False).raise_for_status()

    def fault(self, **fault: Any) -> None:
        """Let the stand-in fail; see `InjectedFault`."""
        url = f"{self.system.facts.model_url}/stand_in/fault"
        httpx.post(url, content=json.dumps(fault), timeout=SECONDS, trust_env=False).raise_for_status()


class House:
    """What all tests of the page share: one system, one browser, one window of it. They are there while tests of the
    page run: beside Playwright's event loop no other test could have one of its own."""

    def __init__(self) -> None:
        self._open = ExitStack()
        self._paged: PagedSystem | None = None
        self._browser: Browser | None = None
        self._windows: dict[bool, Window] = {}

    def paged(self, folder: Callable[[str], Path]) -> PagedSystem:
        """The system; `folder` makes one."""
        if self._paged is None:
            web = self._open.enter_context(LocalWeb(load_pages(STORIES / "web")))
            config, flags = write_settings(folder("config"), web.settings()), ["--backend", "stand_in"]
            system = WarmSystem(folder("data"), config_dir=config, flags=flags)
            self._paged = PagedSystem(self._open.enter_context(system))
        return self._paged

    def window(self, *, is_phone: bool = False) -> Window:
        """A window of Debian's Chromium, or of a phone's: that of the visitor before, unless it was given up."""
        if is_phone not in self._windows:
            self._windows[is_phone] = Window(self._started(), is_phone=is_phone)
        return self._windows[is_phone]

    def _started(self) -> Browser:
        if self._browser is None:
            if CHROMIUM is None:
                if os.environ.get("CI"):
                    pytest.fail("no Chromium is installed; .ci/run installs Debian's")
                pytest.skip("no Chromium is installed: apt-get install chromium-headless-shell")
            playwright = self._open.enter_context(sync_playwright())
            self._browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
            self._open.callback(self._browser.close)
        return self._browser

    def give_up_windows(self) -> None:
        """The next visitor gets another one."""
        for window in self._windows.values():
            window.context.close()
        self._windows.clear()

    def close(self) -> None:
        """End what runs. It begins again when a test asks for it."""
        self._open.close()
        self._paged = self._browser = None
        self._windows.clear()


HOUSE = House()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A system and a browser take their time to start on a busy machine. Two workers have them, with half of these
    tests each, so that the last of them do not run alone."""
    here = [item for item in items if str(item.path).startswith(HERE)]
    halves = {path: number % 2 for number, path in enumerate(dict.fromkeys(item.path for item in here))}
    for item in here:
        item.add_marker("system")
        item.add_marker(pytest.mark.xdist_group(f"page {halves[item.path]}"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> Iterator[None]:
    """Ends the house after the last of the page's tests."""
    try:
        return (yield)
    finally:
        if nextitem is None or not str(nextitem.path).startswith(HERE):
            HOUSE.close()


@pytest.fixture(scope="module")
def model_server() -> Iterator[str]:
    """The address of a model server with several models for chat, and one for embeddings."""
    command = [sys.executable, "-m", "local.stand_in", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert "http://127.0.0.1:" in line, line
        yield line.split()[-1]
        process.terminate()


@pytest.fixture
def paged(tmp_path_factory: pytest.TempPathFactory) -> PagedSystem:
    """One running system for all tests of the page."""
    return HOUSE.paged(tmp_path_factory.mktemp)


@pytest.fixture
def visit(paged: PagedSystem) -> Iterator[Callable[..., Visitor]]:
    """Makes a visitor, one at a time; at the end all of theirs must have been well."""
    visitors: list[Visitor] = []

    def come(url: str = paged.url, *, is_phone: bool = False, **wishes: Any) -> Visitor:
        if is_phone:
            wishes = {"viewport": PHONE, **wishes}
        visitors.append(Visitor(HOUSE.window(is_phone=is_phone), url, **wishes))
        return visitors[-1]

    yield come
    try:
        for visitor in visitors:
            visitor.leave()
    except BaseException:
        HOUSE.give_up_windows()
        raise
