"""Pages that are made to take long: the reader reads each of them within its step limit, over HTTP as the tool does."""

from __future__ import annotations

import asyncio

import pytest

from local.core.errors import ToolError
from local.core.web_url import MediaType
from local.web.fetch import Document, PageReader, read_article
from local.web.text import WorkCount, counted

WIDE_SECONDS = 50.0  # only the count of steps decides, on a slow machine, too; most of these pages took minutes
STEPS_PER_CHARACTER = 10
WORDS = "with words that count as prose and go on for some time here"
PAGES = {
    "a base address of 700 kB": f"<base href='http://e/{'../' * 230_000}'>" + "<a href='../x'>needle</a>" * 500,
    "captions": "<figure><figcaption>needle</figcaption></figure>" * 9_000,
    "cells with headings, and tables": "<table><tr><td><p>needle<p>b</table>" * 6_000,
    "folded panels": "needle"
    + "".join(f"<b aria-expanded=false aria-controls=p{n}>b</b><div id=p{n}>t</div>" for n in range(9_000)),
    "footers before a long text": "<footer>x</footer>" * 12_000 + "needle " * 200_000,
    "hidden between words": ("<i hidden>a</i>" + "needle " * 12) * 25_000,
    "signs between words": ("<a href=#b>#</a>" + "needle " * 12) * 20_000,
    "edit between words": ("<span class=mw-editsection>#</span>" + "needle " * 12) * 20_000,
    "headings between words": ("<h2><a href=/x>aaa</a></h2>" + "needle " * 14) * 12_000,
    "prose that stands nowhere else": f"<article><p>needle {' '.join(f'one {n}' for n in range(160_000))}</p></article>"
    + "".join(f"<div class=extra-meta>Needle {n * 7} needle {WORDS}</div>" for n in range(20_000)),
    "four listings in each of many boxes": ("<div>" + "<pre>needle</pre>" * 4 + "</div>") * 8_000,
    "paragraphs with code": "".join(f"<p>a{n} <code>b{n}</code> needle</p>" for n in range(28_000)),
}


async def read(page: str, **limits: int) -> str:
    """The text of a page that a server on this machine gives."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + page.encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    host = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        reader = PageReader(timeout_seconds=WIDE_SECONDS, allow_hosts=[host], **limits)
        return (await reader.read(f"http://{host}/")).text


@pytest.mark.timeout(240)
@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_the_steps_of_a_page_grow_with_its_length_alone(page: str) -> None:
    count = WorkCount()
    document = Document("http://e/", MediaType("text/html", "utf-8"), page.encode())
    assert "needle" in counted(lambda: read_article(document), count).text
    assert count.steps <= STEPS_PER_CHARACTER * len(page)


@pytest.mark.timeout(240)
async def test_a_page_that_is_made_to_take_long_is_read_over_http() -> None:
    assert "needle" in await read(PAGES["four listings in each of many boxes"])


async def test_a_page_above_the_step_limit_is_refused() -> None:
    page = "<p><a href=/x>needle</a> and some more words</p>" * 100
    assert "needle" in await read(page)
    with pytest.raises(ToolError, match="too complicated"):
        await read(page, most_steps=1000)
