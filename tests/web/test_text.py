"""What is read of a page: its own kinds of content, no hidden text, bounded work, few links."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import yaml

from local.core.web_text import Article, Document, read_article
from local.core.web_url import MediaType

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
KINDS: dict[str, Any] = yaml.load(Path(__file__).with_name("page_kinds.yaml").read_text("utf-8"), Loader=_LOADER)
CASES: dict[str, list[dict[str, Any]]] = defaultdict(list)
for each in KINDS["pages"]:
    CASES[each["kind"]].append(each)

STORY = " ".join(f"This is sentence number {number} of a story about bees." for number in range(100))
PAGE = f"""<!DOCTYPE html><html><head><title> All about\n bees </title><style>p {{}}</style></head><body>
<nav><a href="/">Home</a></nav><article><h1>Bees</h1><p>{STORY}</p>
<p>See <a href="honey.html#top">honey</a>, <a href="honey.html">more honey</a>, <a href="#here">here</a>,
<a href="mailto:b@e.example">mail</a> and <a href="http://[broken">nothing</a>.</p></article>
<ul><li><a href="/sentence">sentence</a></li></ul>
<script>var hidden = "<p>not for readers</p>";</script></body></html>"""


def read(page: str | bytes, name: str = "text/html") -> Article:
    body = page if isinstance(page, bytes) else page.encode()
    return read_article(Document("http://bees.example/wiki/", MediaType(name), body))


def words_that_fail(case: dict[str, Any]) -> list[str]:
    """The words that are missing or that should not be there."""
    frame, named = KINDS["frames"][case["frame"]], re.findall(r"\[([1-8])\]", case["body"])
    body = re.sub(r"\[([1-8])\]", lambda match: KINDS["paragraphs"][int(match[1])], case["body"])
    text = read(str(frame["html"]).replace("BODY", body).encode(case.get("charset", "utf-8"))).text
    keep = [*case["keep"], *(KINDS["paragraphs"][int(each)].rstrip(".").rpartition(" ")[2] for each in named)]
    drop = [*case.get("drop", ()), *frame["drop"]]
    return [word for word in keep if word not in text] + [word for word in drop if word in text]


@pytest.mark.parametrize("kind", CASES)
def test_a_page_of_each_kind_is_its_content(kind: str) -> None:
    failed = {case["name"]: words for case in CASES[kind] if (words := words_that_fail(case))}
    assert failed == {}


def test_an_article_has_its_title_its_text_and_the_links_in_that_text() -> None:
    article = read(PAGE)
    assert article.title == "All about bees"
    assert "sentence number 99 of" in article.text
    assert "not for readers" not in article.text
    assert [(link.text, link.url) for link in article.links] == [("honey", "http://bees.example/wiki/honey.html")]


def test_an_index_of_links_has_them_all_with_the_base_of_the_page() -> None:
    items = "".join(f"<li><a href='p{number}'>Chapter {number}</a></li>" for number in range(30))
    links = read(f"<base href='/other/'><h1>Contents</h1><ul>{items}</ul>").links
    assert [link.url for link in links] == [f"http://bees.example/other/p{number}" for number in range(30)]


def test_a_heading_replaces_a_missing_title() -> None:
    assert read("<h1>Bees <i>today</i></h1><p>Buzz.</p>").title == "Bees today"


def test_what_is_not_markup_stays_as_it_is() -> None:
    assert read("a <b> c\r\n\r\n\r\n\r\nd  \n", "text/plain").text == "a <b> c\n\nd"
    assert read('{"a": [1]}', "application/json").text == '{"a": [1]}'
    assert read("<p>a\x01&#1;\x0cb <b title='\x02'>c</b></p>").text.split() == ["a", "b", "c"]
    read("needle\ud800&#xD800;<p>".encode("utf-8", "surrogatepass")).text.encode()
    assert (
        read("<?xml version='1.0' encoding='utf-8'?><html xmlns='http://www.w3.org/1999/xhtml'><p>b</p></html>").text
        == "b"
    )


def test_styles_of_any_form_are_read() -> None:
    for css in (
        "{font-size:0}",
        ",{color:red}",
        "}}{{",
        "@media{",
        "a{color:rgb(1,2)}",
        ".é{}",
        "p{font-size:;color:#12}",
    ):
        assert "needle" in read(f"<style>{css}</style><p style='{css}' id class>needle</p>").text
    shown = "<style>.a{display:none} .a.b{display:block} @media (min-width:9px){.c{display:none}}</style>"
    assert read(f"{shown}<p class='a b'>needle</p><p class=a>hidden</p><p class=c>hidden</p>").text == "needle"


@pytest.mark.parametrize("page", ["", " \n ", "<script>app()</script>", "<!-- nothing -->", "<"])
def test_a_page_without_text_has_none(page: str) -> None:
    assert read(page).text in ("", "<")


CUT = "the rest of it was left out"
HOSTILE = {
    "nested": ("<p>needle</p>" + "<p>words</p>" * 200 + "<div>" * 250_000, True),
    "many elements": ("<p>needle</p>" + "<p>word.</p>" * 35_000, True),
    "nested again and again": ("<p>needle</p>" + ("<div>" * 190 + "</div>" * 190) * 40, True),
    "end tags": ("<p>needle</p>" + "</i>" * 500_000, False),
    "comments": ("<p>needle</p>" + "<!--" * 250_000, False),
    "rules": ("<style>" + "a{" * 500_000 + "/*" * 100_000 + "</style>needle", False),
    "hidden words between words": (("<i hidden>a</i>" + "needle " * 60) * 5_000, True),
    "cells of one row": ("<table><tr>" + "<td>needle" * 15_000, False),
    "links of one paragraph": ("<p>needle" + "<a href=/x>a link</a> and text " * 4_000, False),
    "base address": (f"<base href='http://e/{'../' * 230_000}'>" + "<a href='../x'>needle</a>" * 500, False),
    "ends of elements that are not open": ("<center><a>needle</center></a><font></b>" * 100, False),
    "nested JSON": ("<script type='application/ld+json'>" + "[" * 500_000 + "</script>needle", False),
}


@pytest.mark.parametrize(("page", "is_cut"), HOSTILE.values(), ids=HOSTILE)
def test_a_page_made_to_take_long_is_read_in_a_few_seconds_or_cut(page: str, is_cut: bool) -> None:
    began = time.process_time()
    article = read(page)
    assert "needle" in article.text
    assert (CUT in article.text) == is_cut
    assert len(article.links) <= 200
    assert time.process_time() - began < 30  # takes 0.1 to 2 s; minutes where the time grows with a square


def test_an_element_of_countless_attributes_makes_a_page_unreadable() -> None:
    page = f"<p>needle</p><p {' '.join(f'a{number}=b' for number in range(20_000))}>needle</p>"
    assert read(page).text.startswith("[The page is too large")


def test_beyond_the_limit_nothing_hidden_is_read() -> None:
    page = "<div>" * 300 + "<p hidden>orders</p>" + "</div>" * 300 + "<p hidden>orders</p>"
    text = read(f"<p>needle</p>{'<p>words</p>' * 300}{page}").text
    assert "needle" in text and CUT in text
    assert "orders" not in text
