"""The page in a real browser, before a real system with the stand-in. A console message, a refused policy, a request to
another host or an exception in any page fails the test."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
import yaml
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from local.apps.local_web import LocalWeb, load_pages
from local.apps.stories import STORIES
from local.apps.temporary_system import TemporarySystem, write_settings

SECONDS = 30.0
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--disable-features=Translate"),
)
expect.set_options(timeout=SECONDS * 1000)

# Counts what a policy refuses: the page must not even try.
WATCH_POLICY = """
globalThis.refused = [];
addEventListener("securitypolicyviolation", (event) => refused.push(`${event.effectiveDirective} ${event.blockedURI}`));
"""


class Visitor:
    """One browser of one person: pages that fail the test when anything of them is not as it should be."""

    def __init__(self, browser: Browser, url: str, **options: Any) -> None:
        self.url, self.troubles = url, list[str]()
        self.expected: Callable[[str], bool] = lambda trouble: False  # what a test brings about itself
        self.context: BrowserContext = browser.new_context(**{"viewport": {"width": 1280, "height": 860}, **options})
        self.context.add_init_script(WATCH_POLICY)
        self.context.set_default_timeout(SECONDS * 1000)

    def open(self, address: str = "#/") -> Page:
        """A page that can be used: its list of conversations and its stream are there."""
        page = self.context.new_page()
        page.on("console", lambda said: self._note(f"console: {said.text}"))
        page.on("pageerror", lambda error: self._note(f"exception: {error}"))
        page.on("request", lambda asked: self._request(asked.url))
        page.goto(f"{self.url}/?debug{address}")
        page.wait_for_selector("#page[data-state=ready] #question")
        page.wait_for_selector(".sessions[data-state=ready]", state="attached")  # which the stream's beginning has read
        return page

    def _request(self, url: str) -> None:
        if not url.startswith((self.url, "blob:", "data:")):
            self._note(f"request to {url}")

    def _note(self, trouble: str) -> None:
        self.troubles.append(trouble)

    def close(self) -> None:
        """Raises if anything was wrong."""
        refused = [one for page in self.context.pages for one in page.evaluate("globalThis.refused ?? []")]
        self.context.close()
        assert not refused, refused
        assert not (left := [one for one in self.troubles if not self.expected(one)]), left


class PagedSystem:
    """The system behind the pages."""

    def __init__(self, system: TemporarySystem) -> None:
        self.system, self.url = system, system.api_url
        self._stories = count()

    def request(self, method: str, path: str, **request: Any) -> Any:
        """The JSON that the API answers with."""
        response = httpx.request(method, f"{self.url}{path}", timeout=SECONDS, trust_env=False, **request)
        assert response.status_code < 400, response.text
        return response.json()

    def ask(self, query: str, session_id: str, **others: Any) -> Any:
        """A query from another door."""
        return self.request("POST", "/query", json={"query": query, "session_id": session_id, **others})

    def tell(self, statement: str, session_id: str) -> None:
        """State something at another door; it can be found in the memory then."""
        query_id = uuid4().hex
        events = f"{self.url}/events?subject=memory.ingested"
        with httpx.stream("GET", events, timeout=SECONDS, trust_env=False) as ingested:
            self.ask(statement, session_id, query_id=query_id)
            next(line for line in ingested.iter_lines() if query_id in line)

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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A browser and a system take their time to start on a busy machine."""
    here = f"{Path(__file__).parent}{os.sep}"
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker("system")
            item.add_marker(pytest.mark.timeout(180))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium. While it runs so does Playwright's event loop, and no test with one of its own could."""
    if CHROMIUM is None:
        if os.environ.get("CI"):
            pytest.fail("no Chromium is installed; .ci/run installs Debian's")
        pytest.skip("no Chromium is installed: apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def paged(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PagedSystem]:
    """One running system for all tests of the page."""
    folder = tmp_path_factory.mktemp("config")
    with LocalWeb(load_pages(STORIES / "web")) as web:
        config = write_settings(folder, web.settings())
        flags = ["--backend", "stand_in"]
        with TemporarySystem(tmp_path_factory.mktemp("data"), config_dir=config, flags=flags) as system:
            yield PagedSystem(system)


@pytest.fixture
def visit(browser: Browser, paged: PagedSystem) -> Iterator[Callable[..., Visitor]]:
    """Makes a visitor; at the end all of theirs must have been well."""
    visitors: list[Visitor] = []

    def come(**options: Any) -> Visitor:
        visitors.append(Visitor(browser, paged.url, **options))
        return visitors[-1]

    yield come
    for visitor in visitors:
        visitor.close()
