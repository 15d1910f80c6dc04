"""Hits: what providers send becomes plain, bounded, distinct text."""

from __future__ import annotations

import pytest

from local.core.errors import SearchUnavailable
from local.web.search import SNIPPET_CHARS, TITLE_CHARS, SearchHit, hits_of, plain_text


@pytest.mark.parametrize(
    ("sent", "read"),
    [
        ("The <strong>best</strong> tea", "The best tea"),
        ('<p class="x">one<br/>two</p>', "onetwo"),
        ("Tom &amp; Jerry&#x27;s caf&eacute;", "Tom & Jerry's café"),
        ("How to centre a &lt;div&gt;", "How to centre a <div>"),
        ("  spread \n over\t lines\u2028and\x00\x1b[31m controls ", "spread over lines and [31m controls"),
        ("if a < b and c > d: List<String>", "if a < b and c > d: List<String>"),
        ("a<!-- hidden -->b", "ab"),
        ("broken \ud800 surrogate", "broken ? surrogate"),
        (None, ""),
        (42, ""),
    ],
)
def test_text_is_plain_and_on_one_line(sent, read):
    assert plain_text(sent, 100) == read


def test_long_text_is_cut_at_a_word_and_says_so():
    assert plain_text("one two three four", 12) == "one two…"
    assert plain_text("x" * 50, 12) == "x" * 11 + "…"
    assert plain_text("exactly this", 12) == "exactly this"


def item(url, title="T", content="S"):
    return {"title": title, "content": content, "url": url}


def test_titles_and_snippets_are_bounded():
    (hit,) = hits_of("p", [item("https://a.example/", "word " * 500, "word " * 5000)], 5, snippet="content")
    assert len(hit.title) <= TITLE_CHARS
    assert len(hit.snippet) <= SNIPPET_CHARS


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "file:///etc/passwd",
        "//a.example",
        "https://",
        "http://[::1",
        "",
        "https://a.example/a b",
        "https://a.example/\n[9]",
        "https://a.example/" + "x" * 3000,
    ],
)
def test_what_is_no_web_address_is_dropped(url):
    good = item("https://good.example/")
    assert [hit.url for hit in hits_of("p", [item(url), good], 5, snippet="content")] == ["https://good.example/"]


def test_one_page_appears_once_even_with_another_fragment_or_final_slash():
    urls = ["https://a.example/x", "https://a.example/x/", "https://a.example/x#part", "https://a.example/y"]
    hits = hits_of("p", [item(url) for url in urls], 5, snippet="content")
    assert [hit.url for hit in hits] == ["https://a.example/x", "https://a.example/y"]


def test_no_more_than_max_results_are_given():
    hits = hits_of("p", [item(f"https://a.example/{n}") for n in range(30)], 3, snippet="content")
    assert [hit.url for hit in hits] == [f"https://a.example/{n}" for n in range(3)]


def test_fields_of_the_wrong_kind_become_empty_text():
    assert hits_of("p", [item("https://a.example/", None, ["x"])], 5, snippet="content") == [
        SearchHit("", "", "https://a.example/")
    ]


@pytest.mark.parametrize("results", [None, "x", {"0": {}}, ["x"], [None], [{"link": "https://a.example"}]])
def test_a_list_of_another_shape_is_an_error_and_not_nothing_found(results):
    with pytest.raises(SearchUnavailable, match=r"^p could not search: "):
        hits_of("p", results, 5, snippet="content")


def test_an_empty_list_is_nothing_found():
    assert hits_of("p", [], 5, snippet="content") == []
