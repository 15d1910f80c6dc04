import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from local.core.errors import ConfigError, FetchRefused, ToolError
from local.core.web_url import MediaType
from local.web.fetch import Article, CachedPage, Document, PageCache, PageReader, read_article
from local.web.text import count_steps, is_tame, parse_markup, strip_markup

_STORY = " ".join(f"This is sentence number {number} of a story about bees." for number in range(100))
_PAGE = f"""<!DOCTYPE html><html><head><title> All about\n bees </title><style>p {{}}</style></head><body>
<nav><a href="/">Home</a></nav><article><h1>Bees</h1><p>{_STORY}</p>
<p>See <a href="honey.html#top">honey</a>, <a href="honey.html">more honey</a>, <a href="#here">here</a>,
<a href="mailto:b@e.example">mail</a> and <a href="http://[broken">nothing</a>.</p></article>
<script>var hidden = "<p>not for readers</p>";</script></body></html>"""


class Site:
    """A local web server that gives every path the same page and counts the requests."""

    def __init__(self) -> None:
        self.requests = 0
        self.host = ""


@asynccontextmanager
async def serving(body: str | bytes, content_type: str = "text/html; charset=utf-8") -> AsyncIterator[Site]:
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


def article(html: str | bytes, name: str = "text/html") -> Article:
    body = html if isinstance(html, bytes) else html.encode()
    return read_article(Document("http://bees.example/wiki/", MediaType(name), body))


async def test_a_page_is_its_main_text_with_title_final_address_and_links():
    async with serving(_PAGE) as site:
        page = await PageReader(allow_hosts=[site.host]).read(f"http://{site.host}/old")
    assert page.url == f"http://{site.host}/new"
    assert page.title == "All about bees"
    assert "sentence number 99 of" in page.text
    assert "not for readers" not in page.text
    assert (page.start, page.end, page.next_start) == (0, page.total_chars, None)
    assert [(link.text, link.url) for link in page.links] == [
        ("Home", f"http://{site.host}/"),
        ("honey", f"http://{site.host}/honey.html"),
    ]


async def test_a_long_page_is_read_part_by_part_at_sentence_ends_and_fetched_once():
    async with serving(_STORY, "text/plain") as site:
        reader = PageReader(fetch_max_chars=1000, allow_hosts=[site.host])
        parts = [await reader.read(f"http://{site.host}/old")]
        while (start := parts[-1].next_start) is not None:
            # The model may name the address it asked for or the one it was told.
            parts.append(await reader.read(f"http://{site.host}/{'old' if len(parts) % 2 else 'new'}", start))
    assert site.requests == 2
    assert " ".join(part.text for part in parts) == _STORY
    assert all(len(part.text) <= 1000 and part.text.endswith("bees.") for part in parts)
    assert all(part.text == _STORY[part.start : part.end] and part.total_chars == len(_STORY) for part in parts)


async def test_a_page_is_fetched_again_when_the_cached_one_is_old():
    now = 0.0
    async with serving(_PAGE) as site:
        reader = PageReader(allow_hosts=[site.host], clock=lambda: now)
        await reader.read(f"http://{site.host}/")
        now = 299.0
        await reader.read(f"http://{site.host}/")
        assert site.requests == 1
        now = 301.0
        await reader.read(f"http://{site.host}/")
        assert site.requests == 2


@pytest.mark.parametrize("start", [-1, 11, 10_000])
async def test_a_start_beyond_the_text_is_an_error_that_names_its_length(start):
    async with serving("Short text.", "text/plain") as site:
        with pytest.raises(ToolError, match="from 0 to 11") as caught:
            await PageReader(allow_hosts=[site.host]).read(f"http://{site.host}/", start)
    assert caught.value.kind == "bad_start"


@pytest.mark.parametrize("body", ["", " \n ", "<html><body><script>app()</script></body></html>", "<!-- nothing -->"])
async def test_a_page_without_text_is_an_error_not_an_empty_text(body):
    async with serving(body) as site:
        with pytest.raises(ToolError, match="no readable text") as caught:
            await PageReader(allow_hosts=[site.host]).read(f"http://{site.host}/")
    assert caught.value.kind == "no_text"


async def test_forbidden_addresses_and_bad_exceptions_are_refused():
    with pytest.raises(FetchRefused):
        await PageReader().read("http://127.0.0.1:8099/")
    with pytest.raises(ConfigError):
        PageReader(allow_hosts=["http://x/"])


async def test_a_pdf_is_an_error_that_names_its_type():
    async with serving(b"%PDF-1.7 \x00\x01", "application/pdf") as site:
        with pytest.raises(ToolError, match="application/pdf"):
            await PageReader(allow_hosts=[site.host]).read(f"http://{site.host}/")


async def test_a_page_with_the_wrong_charset_is_read():
    async with serving("<p>Grüße aus Köln und schöne Straßen für alle.</p>".encode("latin-1")) as site:
        page = await PageReader(allow_hosts=[site.host]).read(f"http://{site.host}/")
    assert page.text == "Grüße aus Köln und schöne Straßen für alle."


async def test_the_loop_stays_free_while_a_page_is_extracted(monkeypatch):
    extracting, free = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def slow(document: Document) -> Article:
        loop.call_soon_threadsafe(extracting.set)
        asyncio.run_coroutine_threadsafe(free.wait(), loop).result(10)
        return Article("", "done")

    monkeypatch.setattr("local.web.fetch.read_article", slow)
    async with serving(_PAGE) as site:
        task = asyncio.create_task(PageReader(allow_hosts=[site.host]).read(f"http://{site.host}/"))
        await asyncio.wait_for(extracting.wait(), 10)
        free.set()
        assert (await task).text == "done"


async def test_a_page_that_takes_too_many_steps_is_an_error(monkeypatch):
    def spin(document: Document) -> Article:
        while True:
            count_steps(1000)

    monkeypatch.setattr("local.web.fetch.read_article", spin)
    async with serving(_PAGE) as site:
        with pytest.raises(ToolError, match="too complicated") as caught:
            await PageReader(allow_hosts=[site.host]).read(f"http://{site.host}/")
    assert caught.value.kind == "timeout"


@pytest.mark.parametrize(
    "html",
    [
        "<div>" * 250_000 + "needle",
        "<p>needle</p>" + "<div>" * 250_000,
        "<p>needle</p>" + "<p>junk & <junk> < junk &&& </x y=z" * 35_000,
        "<p>needle</p>" + "<p>word.</p>" * 100_000,
        f"<p {' '.join(f'a{n}=b' for n in range(100_000))}>needle</p>",
        "<p>needle</p>" + "<!--" * 250_000,
        "<p>needle</p>" + "<script" * 175_000,
        "needle <br" + " " * 5_000_000,
        "needle" + " " * 4_000_000 + "x",
        "<p>needle</p>" + ("<div>" * 190 + "</div>" * 190) * 80,
        "<div>" + "<pre>needle</pre>" * 25_000 + "word " * 800_000 + "</div>",
        "<p>needle</p>" + "</i>" * 250_000 + "<table><tr><b>" * 100,
        "<?xml version='1.0' encoding='utf-8'?><html xmlns='http://www.w3.org/1999/xhtml'><p>needle</p></html>",
        "needle\ud800&#xD800;\x01".encode("utf-8", "surrogatepass"),
        "<html><body>needle<table><tr>" + "<td>a" * 15_000,
        "<style>" + "a{" * 500_000 + "</style>needle",
        "<style>" + "/*" * 500_000 + "</style>needle",
        "<div style='color:#fff;opacity:0'>" * 200 + "<b style='color:#fff'>x</b>" * 1500 + "</div>" * 200 + "needle",
        "<script type='application/ld+json'>" + "[" * 500_000 + "</script>needle",
    ],
    ids=range(19),
)
@pytest.mark.timeout(240)  # seconds on any machine; minutes where the time grows with a square
def test_wild_markup_is_read_in_moderate_time(html):
    text = article(html).text
    assert "needle" in text
    text.encode()  # no lone surrogates


def test_links_follow_the_base_of_the_page_and_are_bounded():
    html = "<base href='/other/'>" + "".join(f"<a href='p{n}'>page {n}</a>" for n in range(500))
    links = article(html).links
    assert links[0].url == "http://bees.example/other/p0"
    assert len(links) == 50


def test_what_readers_say_under_a_page_is_not_its_text():
    html = _PAGE.replace("<script>", "<div id='comments'><h2>Comments</h2><p>First! I like bees too.</p></div><script>")
    text = article(html).text
    assert "sentence number 99 of" in text
    assert "First!" not in text


def test_what_trafilatura_leaves_is_read_block_by_block(monkeypatch):
    monkeypatch.setattr("trafilatura.extract", lambda *_, **__: None)
    text = article(_PAGE).text
    assert text.startswith("Bees") and "number 99" in text
    assert "not for readers" not in text and "Home" not in text


def test_a_page_is_parsed_once(monkeypatch):
    parsed = []
    monkeypatch.setattr("local.web.fetch.parse_markup", lambda html: parsed.append(1) or parse_markup(html))
    monkeypatch.setattr("lxml.html.fromstring", None)
    monkeypatch.setattr("trafilatura.utils.fromstring", None)
    found = article(_PAGE)
    assert parsed == [1]
    assert found.title == "All about bees" and len(found.links) == 2 and "number 99" in found.text


def test_links_that_nobody_sees_are_none():
    html = _PAGE.replace("<article>", "<p style='font-size:0'><a href='/trap'>Trap</a></p><article>")
    assert [link.text for link in article(html).links] == ["Home", "honey"]


def test_a_heading_stands_in_for_a_missing_title():
    assert article("<h1>Bees <i>today</i></h1><p>Buzz.</p>").title == "Bees today"


def test_plain_text_json_and_xml_are_left_as_they_are():
    assert article("a <b> c\r\n\r\n\r\n\r\nd  \n", "text/plain").text == "a <b> c\n\nd"
    assert article('{"a": [1]}', "application/json").text == '{"a": [1]}'


def test_the_largest_ordinary_pages_are_tame_and_deep_ones_are_not():
    assert is_tame("<ul>" + "<li><a href='x' title='y'>a <b>word</b></a></li>" * 15_000 + "</ul>")
    assert is_tame("<div>" * 200)
    assert not is_tame("<div>" * 300)


def test_stripping_keeps_text_and_lines_and_drops_scripts():
    html = "<h1>A&amp;B</h1><p>one<b>two</b> 1 < 2<script>if (a<b) {}</script> end<!-- gone --></p>"
    assert strip_markup(html).split() == ["A&B", "onetwo", "1", "<", "2", "end"]


def cached(url: str, chars: int, stored_at: float = 0.0) -> CachedPage:
    return CachedPage(url, Article("", "x" * chars), stored_at)


def test_the_cache_forgets_the_oldest_pages_beyond_its_bound_but_never_the_newest():
    cache = PageCache(max_chars=100, ttl_seconds=10)
    cache.put("asked", cached("a", 60))
    assert cache.get("asked", 0) is cache.get("a", 0) is not None
    cache.put("b", cached("b", 40))
    assert cache.get("a", 9.9) and cache.get("b", 0) and not cache.get("a", 10)
    cache.put("c", cached("c", 1))
    assert not cache.get("asked", 0) and not cache.get("a", 0) and cache.get("b", 0) and cache.get("c", 0)
    cache.put("huge", cached("huge", 1000))
    assert not cache.get("c", 0) and cache.get("huge", 0)


def test_old_pages_make_room_even_if_there_is_some():
    cache = PageCache(max_chars=100, ttl_seconds=10)
    cache.put("a", cached("a", 1, 0))
    cache.put("b", cached("b", 1, 11))
    assert not cache.get("a", 0) and cache.get("b", 11)
