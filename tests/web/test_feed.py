"""Feeds: what is read of them, and that other XML is left as it is."""

from __future__ import annotations

import time

import pytest

from local.core.web_text import Article, Document, Link, read_article
from local.core.web_url import MediaType

RSS = """<?xml version="1.0" encoding="UTF-8"?>
<rss xmlns:content="http://purl.org/rss/1.0/modules/content/" version="2.0"><channel>
<title>Harbour news</title><link>http://h.example/</link><description>All about ships</description>
<item><title>A new crane</title><link>/1</link><pubDate>Mon, 01 Jan 2024</pubDate>
<description>short</description>
<content:encoded><![CDATA[<p>It weighs <b>400</b> tonnes.</p>]]></content:encoded></item>
<item><title>Fog &amp; rain</title><description>&lt;p&gt;All ferries were late.&lt;/p&gt;</description></item>
</channel></rss>"""
ATOM = """<feed xmlns="http://www.w3.org/2005/Atom"><title>Log</title><link rel="self" href="/log.xml"/>
<entry><title>Release 4</title><updated>2024-03-01</updated><link href="http://l.example/4"/>
<content type="html">&lt;p&gt;It is faster.&lt;/p&gt;</content></entry></feed>"""
RDF = """<rdf:RDF xmlns="http://purl.org/rss/1.0/" xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<channel><title>Old feed</title></channel><item><title>An entry</title></item></rdf:RDF>"""


def read(source: str, name: str = "application/xml") -> Article:
    return read_article(Document("http://h.example/feed", MediaType(name), source.encode()))


def test_an_rss_feed_is_its_entries() -> None:
    article = read(RSS, "application/rss+xml")

    assert article.title == "Harbour news"
    assert article.text == (
        "Harbour news\nhttp://h.example/\nAll about ships\n\n"
        "A new crane\nMon, 01 Jan 2024\n/1\nIt weighs 400 tonnes.\n\n"
        "Fog & rain\nAll ferries were late."
    )
    assert article.links == (Link("A new crane", "http://h.example/1"),)


def test_an_atom_feed_is_its_entries() -> None:
    article = read(ATOM, "text/xml")

    assert article.text == "Log\n\nRelease 4\n2024-03-01\nhttp://l.example/4\nIt is faster."
    assert article.links == (Link("Release 4", "http://l.example/4"),)


def test_entries_may_stand_beside_the_channel() -> None:
    assert read(RDF).text == "Old feed\n\nAn entry"


@pytest.mark.parametrize("source", ["<urlset><url><loc>http://l.example/1</loc></url></urlset>", "no XML", ""])
def test_what_is_no_feed_is_left_as_it_is(source: str) -> None:
    assert read(source) == Article("", source)


def test_a_feed_that_breaks_off_is_read_as_far_as_it_goes() -> None:
    assert "It weighs 400 tonnes." in read(RSS[: RSS.index("<item><title>Fog")]).text


def test_no_file_is_read_into_a_feed(tmp_path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secretword")
    head = f'<!DOCTYPE rss [<!ENTITY file SYSTEM "{secret.as_uri()}">]>'

    text = read(f"{head}<rss><channel><title>Feed</title><description>&file;</description></channel></rss>").text

    assert "Feed" in text
    assert "secretword" not in text


def test_entities_within_entities_do_not_grow() -> None:
    head = f'<!DOCTYPE rss [<!ENTITY a "{"loud" * 100}"><!ENTITY b "{"&a;" * 100}"><!ENTITY c "{"&b;" * 10}">]>'

    text = read(f"{head}<rss><channel><title>Feed</title><description>&c;</description></channel></rss>").text

    assert len(text) < len(head)


@pytest.mark.parametrize(
    "inside",
    [
        f"<description>x{' ' * 100_000}x</description>",
        f"{'<item><description>' * 110}{'x' * 1_000_000}{'</description></item>' * 110}",
        "<a>" * 300_000,
        "<item><description>&lt;p&gt;b</description></item>" * 60_000,
    ],
    ids=["blanks", "items within items", "depth", "many items"],
)
def test_no_feed_takes_long(inside: str) -> None:
    began = time.process_time()

    read(f"<rss><channel><title>Feed</title>{inside}</channel></rss>")

    assert time.process_time() - began < 30  # minutes where it grows with a square
