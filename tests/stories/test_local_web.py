"""The web of the stories, as the real web tools see it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from local.stories.player import STORIES, LocalWeb, load_pages, search
from local.web.fetch import PageReader
from local.web.search import SearxngProvider

PAGES = load_pages(STORIES / "web")


@pytest.fixture
def web() -> Iterator[LocalWeb]:
    with LocalWeb(PAGES) as web:
        yield web


async def test_the_search_provider_finds_pages_in_the_order_of_shared_words(web: LocalWeb) -> None:
    provider = SearxngProvider(f"http://{web.host}")
    hits = await provider.search("LoCAL2 Gemma tool calling", 5)
    await provider.close()
    assert hits[0].url == f"http://{web.host}/local2/tool-calling"
    assert hits[0].title == "LoCAL2 and Gemma tool calling, an overview"


async def test_a_page_holds_text_that_its_snippet_does_not(web: LocalWeb) -> None:
    reader = PageReader(allow_hosts=(web.host,))
    page = await reader.read(f"http://{web.host}/local2/tool-calling")
    assert "a lighthouse keeper who never leaves the lamp" in page.text
    assert not any("lighthouse" in known.snippet for known in PAGES)


def test_a_query_that_shares_no_word_finds_nothing() -> None:
    assert search(PAGES, "zebra") == []
