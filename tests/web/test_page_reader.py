"""Pages read part by part over HTTP, and the tool that gives the model one part."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from local.core.errors import ConfigError, FetchRefused, ToolError
from local.core.excerpts import next_start, part_end
from local.core.web_text import Article, Document, Link
from local.runtime.participant import Resources
from local.web.fetch import (
    CachedPage,
    Page,
    PageCache,
    PageReader,
    WebFetchConfig,
    WebFetchTool,
)

STORY = " ".join(f"This is sentence number {number} of a story about bees." for number in range(100))
PAGE = f"<title>Bees</title><article><h1>Bees</h1><p>{STORY}</p><p>See <a href='honey.html'>honey</a>.</p></article>"


class Site:
    """A web server that gives every path the same page, /old by a redirect, and counts the requests."""

    def __init__(self) -> None:
        self.requests = 0
        self.host = ""

    def reader(self, **settings: int) -> PageReader:
        return PageReader(allow_hosts=[self.host], **settings)

    def url(self, path: str = "") -> str:
        return f"http://{self.host}/{path}"


@asynccontextmanager
async def serving(body: str | bytes, content_type: str = "text/html") -> AsyncIterator[Site]:
    site = Site()
    data = body if isinstance(body, bytes) else body.encode()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        site.requests += 1
        if request.startswith(b"GET /old"):
            writer.write(b"HTTP/1.1 301 Moved\r\nLocation: /new\r\n\r\n")
        else:
            writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n\r\n".encode() + data)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    site.host = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield site


async def test_a_page_has_its_final_address_its_title_and_the_links_of_each_part():
    async with serving(PAGE) as site:
        reader = site.reader(fetch_max_chars=3000)
        first = await reader.read(site.url("old"))
        second = await reader.read(site.url("new"), first.next_start)
    assert (first.url, first.title, first.start, first.links) == (site.url("new"), "Bees", 0, ())
    assert second.links == (Link("honey", site.url("honey.html")),)
    assert (second.end, second.next_start) == (second.total_chars, None)


async def test_a_long_page_is_read_part_by_part_at_sentence_ends_and_fetched_once():
    async with serving(STORY, "text/plain") as site:
        reader = site.reader(fetch_max_chars=1000)
        parts = [await reader.read(site.url("old"))]
        while (start := parts[-1].next_start) is not None:
            # The model may name the address it asked for or the one that the result named.
            parts.append(await reader.read(site.url("old" if len(parts) % 2 else "new"), start))
        for start in (-1, len(STORY), 10_000):
            with pytest.raises(ToolError, match=f"from 0 to {len(STORY)}") as caught:
                await reader.read(site.url("new"), start)
            assert caught.value.kind == "bad_start"
    assert site.requests == 2
    assert " ".join(part.text for part in parts) == STORY
    assert all(len(part.text) <= 1000 and part.text.endswith("bees.") for part in parts)
    assert all(part.text == STORY[part.start : part.end] and part.total_chars == len(STORY) for part in parts)


async def test_a_page_that_cannot_be_read_is_an_error_of_its_kind():
    for body, content_type, kind in (
        ("", "text/html", "no_text"),
        ("<script>app()</script>", "text/html", "no_text"),
        (b"%PDF-1.7 \x00\x01", "application/pdf", "unsupported_type"),
    ):
        async with serving(body, content_type) as site:
            with pytest.raises(ToolError) as caught:
                await site.reader().read(site.url())
        assert caught.value.kind == kind
    with pytest.raises(FetchRefused):
        await PageReader().read("http://127.0.0.1:8099/")
    with pytest.raises(ConfigError):
        PageReader(allow_hosts=["http://x/"])


async def test_a_page_of_another_host_is_not_given_from_the_cache_where_only_one_host_may_be_read():
    async with serving(STORY, "text/plain") as other, serving("") as site:
        reader = PageReader(allow_hosts=[site.host, other.host])
        reader._cache.put(site.url(), CachedPage(other.url().replace("127.0.0.1", "localhost"), Article("", "x"), 0.0))
        reader._clock = lambda: 1.0
        with pytest.raises(FetchRefused):
            await reader.read(site.url(), same_host=True)


async def test_the_loop_stays_free_while_a_page_is_read_and_waits_for_a_limited_time(monkeypatch):
    extracting, free = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def slow(document: Document) -> Article:
        loop.call_soon_threadsafe(extracting.set)
        asyncio.run_coroutine_threadsafe(free.wait(), loop).result(10)
        return Article("", "done")

    monkeypatch.setattr("local.web.fetch.read_article", slow)
    async with serving(PAGE) as site:
        task = asyncio.create_task(site.reader().read(site.url()))
        await asyncio.wait_for(extracting.wait(), 90)
        free.set()
        assert (await task).text == "done"
        free.clear()
        reader = site.reader()
        reader._reading_seconds = 0.01
        with pytest.raises(ToolError, match="could not be read within") as caught:
            await reader.read(site.url())
        free.set()
    assert caught.value.kind == "timeout"


@pytest.mark.parametrize(
    ("text", "limit", "part"),
    [
        ("One two. Three four. Five six seven.", 25, "One two. Three four."),
        ('He said "No." Then he left us all.', 20, 'He said "No."'),
        ("Version 3.14 is out. And then some more.", 22, "Version 3.14 is out."),
        ("Sentence ends exactly. Here.", 22, "Sentence ends exactly."),
        ("A headline\nand a text without an end", 16, "A headline"),
        ("words and words and words", 17, "words and words"),
        ("これは文です。これも文です。もう一つ", 16, "これは文です。これも文です。"),
        ("short", 100, "short"),
        ("abcdefghij", 4, "abcd"),
        ("aaae\u0301bbb", 4, "aaa"),
        ("aa\U0001f469\u200d\U0001f4bbbbb", 4, "aa"),
        ("aaa\U0001f44d\U0001f3fdbbb", 4, "aaa"),
        ("aaa\ud83d\ude00bbb", 4, "aaa"),
    ],
)
def test_a_part_ends_after_a_sentence_else_after_a_word_and_never_inside_a_character(text, limit, part):
    assert text[: part_end(text, 0, limit)] == part


@given(text=st.text(alphabet='ab .\n\u0301\u200d。"', max_size=300), limit=st.integers(1, 50))
def test_the_parts_of_any_text_are_within_the_limit_and_leave_out_only_white_space(text, limit):
    start, rest = next_start(text, 0), text
    while start is not None:
        end = part_end(text, start, limit)
        assert start < end <= start + limit
        assert rest[: start - (len(text) - len(rest))].isspace() or rest == text[start:]
        rest, start = text[end:], next_start(text, end)
    assert not rest.strip()


def test_the_cache_forgets_old_pages_and_the_oldest_beyond_its_bound_but_never_the_newest():
    def put(url: str, chars: int, at: float = 0.0, asked: str = "") -> None:
        cache.put(asked or url, CachedPage(url, Article("", "x" * chars), at))

    cache = PageCache(max_chars=100, ttl_seconds=10)
    put("a", 60, asked="asked")
    assert cache.get("asked", 0) is cache.get("a", 0) is not None
    put("b", 40)
    assert cache.get("a", 9.9) and cache.get("b", 0) and not cache.get("a", 10)
    put("c", 1)
    assert not cache.get("asked", 0) and not cache.get("a", 0) and cache.get("b", 0) and cache.get("c", 0)
    put("huge", 1000)
    assert not cache.get("c", 0) and cache.get("huge", 0)
    put("later", 1, at=11)
    assert not cache.get("huge", 0) and cache.get("later", 11)


class OnePage:
    """A reader that has one page."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.asked: list[tuple[str, int]] = []

    async def read(self, url: str, start: int = 0, *, same_host: bool = False) -> Page:
        self.asked.append((url, start))
        return self.page


async def test_the_model_is_given_text_few_links_and_how_to_read_on():
    links = tuple(Link(f"link {number}", f"http://fjord/{'x' * 90}{number}") for number in range(15))
    reader = OnePage(Page("http://fjord/", "Fjords", "Deep.", 10, 15, 40, 16, links))
    output = await WebFetchTool(WebFetchConfig(), cast(PageReader, reader)).run("http://fjord/old", 10)
    text, _, listed = output.text.partition("\n\nLinks in the text:\n")
    assert text == (
        "URL: http://fjord/\nTitle: Fjords\nExtracted text:\nDeep.\n\n"
        "[Characters 10 to 15 of 40. To read on, call web_fetch with start=16.]"
    )
    assert listed.startswith("- link 0: http://fjord/") and len(listed) <= 1000
    assert output.links == tuple(link.url for link in links)
    assert (output.sources, reader.asked) == (("http://fjord/",), [("http://fjord/old", 10)])


async def test_the_tool_refuses_what_is_not_public_unless_it_is_allowed(tmp_path: Path):
    async with serving(PAGE) as site:
        allowed = WebFetchTool.build(WebFetchConfig(allow_hosts=(site.host,)), Resources(tmp_path))
        assert "sentence number 99" in (await allowed.run(site.url())).text
        with pytest.raises(FetchRefused):
            await WebFetchTool.build(WebFetchConfig(), Resources(tmp_path)).run(site.url())
