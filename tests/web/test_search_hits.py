"""Hits: what providers send becomes plain, bounded, distinct text; and providers without a server of their own."""

from __future__ import annotations

import ssl
import sys
import types
from datetime import UTC, date, datetime

import httpx
import pytest

from local.core.errors import SearchUnavailable
from local.web.search import (
    SNIPPET_CHARS,
    TITLE_CHARS,
    DdgsProvider,
    MockProvider,
    ProviderClient,
    SearchHit,
    SearchOutcome,
    hits_of,
    pause_seconds,
    plain_text,
    render,
)

NOW = datetime(2026, 5, 30, 12, 0, 0, tzinfo=UTC)


def test_text_is_plain_on_one_line_and_cut_at_a_word():
    for sent, read in (
        ("The <strong>best</strong> tea", "The best tea"),
        ("Tom &amp; Jerry&#x27;s caf&eacute;", "Tom & Jerry's café"),
        ("How to centre a &lt;div&gt;", "How to centre a <div>"),
        ("  spread \n over\t lines\u2028and\x00\x1b[31m controls ", "spread over lines and [31m controls"),
        ("if a < b and c > d: List<String>", "if a < b and c > d: List<String>"),
        ("a<!-- hidden -->b", "ab"),
        ("broken \ud800 surrogate", "broken ? surrogate"),
        (None, ""),
    ):
        assert plain_text(sent, 100) == read
    assert plain_text("one two three four", 12) == "one two…"
    assert plain_text("x" * 50, 12) == "x" * 11 + "…"
    assert plain_text("exactly this", 12) == "exactly this"


def item(url, title="T", content="S"):
    return {"title": title, "content": content, "url": url}


def test_hits_are_bounded_distinct_and_have_web_addresses():
    (long,) = hits_of("p", [item("https://a.example/", "word " * 500, "word " * 5000)], 5, snippet="content")
    assert len(long.title) <= TITLE_CHARS and len(long.snippet) <= SNIPPET_CHARS
    bad = [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "//a.example",
        "https://",
        "http://[::1",
        "https://a.example/a b",
    ]
    good = ["https://a.example/x", "https://a.example/x/", "https://a.example/x#part", "https://a.example/y"]
    urls = [*bad, "https://a.example/\n[9]", "https://a.example/" + "x" * 3000, *good]
    hits = hits_of("p", [item(url) for url in urls], 5, snippet="content")
    assert [hit.url for hit in hits] == ["https://a.example/x", "https://a.example/y"]
    assert len(hits_of("p", [item(f"https://a.example/{n}") for n in range(30)], 3, snippet="content")) == 3
    odd = hits_of("p", [item("https://a.example/", None, ["x"])], 5, snippet="content")
    assert odd == [SearchHit("", "", "https://a.example/")]


def test_a_list_of_another_shape_is_an_error_and_not_nothing_found():
    for results in (None, "x", {"0": {}}, ["x"], [None], [{"link": "https://a.example"}]):
        with pytest.raises(SearchUnavailable, match=r"^p could not search: "):
            hits_of("p", results, 5, snippet="content")
    assert hits_of("p", [], 5, snippet="content") == []


def test_the_model_reads_the_date_and_numbered_hits_or_that_there_are_none_and_who_could_not_look():
    hits = (SearchHit("Tea", "All about tea.", "https://tea.example/"), SearchHit("", "", "https://b.example/"))
    assert render(SearchOutcome("tea", "brave", hits), NOW.date()) == (
        "Today's date: 2026-05-30\n\n"
        "[1] Title: Tea\n    Snippet: All about tea.\n    URL: https://tea.example/\n\n"
        "[2] Title: https://b.example/\n    Snippet: (none)\n    URL: https://b.example/"
    )
    nothing = render(SearchOutcome("tea", "brave", (), (("searxng", "HTTP 403"),)), date(2026, 5, 30))
    assert "found nothing" in nothing and "searxng could not search (HTTP 403)" in nothing


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "0"}, 0),
        ({"Retry-After": "Sat, 30 May 2026 12:01:30 GMT"}, 90),
        ({"Retry-After": "Sat, 30 May 2026 12:01:30 -0000"}, 90),
        ({"Retry-After": "Sat, 30 May 2026 11:00:00 GMT"}, 0),
        ({"X-RateLimit-Remaining": "0, 14523", "X-RateLimit-Reset": "1, 1419704"}, 1),
        ({"X-RateLimit-Remaining": "0, 0", "X-RateLimit-Reset": "1, 1419704"}, 1419704),
        ({"Retry-After": "5", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "60"}, 5),
        ({"X-RateLimit-Remaining": "3, 20", "X-RateLimit-Reset": "1, 1419704"}, None),
        ({"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1748606400"}, None),
        ({"Retry-After": "-5"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "Fri, 31 Dec 9999 23:59:59 GMT"}, None),
    ],
)
def test_a_pause_is_read_in_every_form_and_nonsense_is_none(headers, seconds):
    assert pause_seconds(httpx.Headers(headers), NOW) == seconds


def use_ddgs(monkeypatch, text):
    class DDGS:
        def __init__(self, timeout):
            assert isinstance(timeout, int)

        def text(self, query, max_results):
            return text(query, max_results)

    module = types.ModuleType("ddgs")
    module.DDGS = DDGS
    monkeypatch.setitem(sys.modules, "ddgs", module)


async def test_the_ddgs_package_gives_hits_or_a_reason(monkeypatch):
    def no_results(query, max_results):
        raise RuntimeError("No results found.")

    use_ddgs(monkeypatch, lambda query, n: [{"title": query, "href": "https://tea.example/", "body": "All."}])
    assert await DdgsProvider().search("tea", 5) == [SearchHit("tea", "All.", "https://tea.example/")]
    use_ddgs(monkeypatch, no_results)
    with pytest.raises(SearchUnavailable, match=r"No results found\."):
        await DdgsProvider().search("tea", 5)
    monkeypatch.setitem(sys.modules, "ddgs", None)
    with pytest.raises(SearchUnavailable, match="pip install ddgs"):
        await DdgsProvider().search("tea", 5)


async def test_the_mock_says_that_its_hits_are_made_up():
    assert all("tea" in hit.snippet and "mock" in hit.snippet for hit in await MockProvider().search("tea", 5))


@pytest.mark.parametrize(("address", "count"), [("http://localhost:8888", 0), ("https://api.search.test", 1)])
async def test_certificates_are_loaded_only_where_there_is_something_to_check(address, count, monkeypatch):
    loaded: list[object] = []
    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", lambda context, *args, **kwargs: loaded.append(args))
    await ProviderClient("some", address, {}).close()
    assert len(loaded) == count
