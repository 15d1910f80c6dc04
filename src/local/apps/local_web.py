"""A small web on this machine for the stories: a search engine that answers as SearXNG does, and the pages it finds."""

from __future__ import annotations

import html
import json
import re
import threading
from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qs, urlsplit

from local import config
from local.config import Settings


class LocalPage(Settings):
    """One page: where it is, what the search engine says of it, and its text."""

    path: str
    title: str
    snippet: str
    paragraphs: tuple[str, ...]  # {web} is where the page is from

    def html(self) -> str:
        """The page as a browser would get it."""
        title = html.escape(self.title)
        text = "\n".join(f"<p>{html.escape(paragraph)}</p>" for paragraph in self.paragraphs)
        return (
            f"<!doctype html><html lang=en><head><title>{title}</title></head>"
            f"<body><article><h1>{title}</h1>\n{text}\n</article></body></html>"
        )


class LocalPages(Settings):
    """`pages.yaml`: the whole web."""

    pages: tuple[LocalPage, ...]


def load_pages(folder: Path) -> tuple[LocalPage, ...]:
    """Read `pages.yaml` in a folder. Raises `ConfigError`."""
    return config.load("pages", LocalPages, [folder]).pages


def search(pages: Sequence[LocalPage], query: str) -> list[LocalPage]:
    """The pages that share words with the query, those with the most of them first."""
    asked = _words(query)
    shared = [(len(asked & _words(f"{page.title} {page.snippet}")), page) for page in pages]
    return [page for count, page in sorted(shared, key=lambda pair: -pair[0]) if count]


class LocalWeb:
    """Serves pages on a free port of 127.0.0.1 for as long as its `with` block lasts."""

    def __init__(self, pages: Sequence[LocalPage]) -> None:
        self.opened: list[str] = []  # paths with their queries, whether there was something or not
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(pages, self.opened))
        self._thread = threading.Thread(target=self._server.serve_forever, name="local web", daemon=True)

    @property
    def host(self) -> str:
        """Host and port, as `allow_hosts` takes them."""
        return f"127.0.0.1:{self._server.server_port}"

    def settings(self) -> dict[str, dict[str, Any]]:
        """What makes the web tools use this web and no other, by the name of their files."""
        return {
            "web_search": {"provider": "searxng", "searxng_url": f"http://{self.host}"},
            "web_fetch": {"allow_hosts": [self.host]},
        }

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _handler(pages: Sequence[LocalPage], opened: list[str]) -> type[BaseHTTPRequestHandler]:
    by_path = {page.path: page for page in pages}

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            opened.append(self.path)
            asked = urlsplit(self.path)
            if asked.path == "/search":
                query = parse_qs(asked.query).get("q", [""])[0]
                self._send("application/json", json.dumps(_found(search(pages, query), query, self.headers["Host"])))
            elif page := by_path.get(asked.path):
                self._send("text/html", page.html().replace("{web}", f"http://{self.headers['Host']}"))
            else:
                self.send_error(404)

        def log_message(self, format: str, *args: object) -> None:
            """Nobody reads this server's log."""

        def _send(self, media_type: str, text: str) -> None:
            body = text.encode()
            self.send_response(200)
            self.send_header("Content-Type", f"{media_type}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    return Handler


def _found(pages: Sequence[LocalPage], query: str, host: str) -> dict[str, Any]:
    """SearXNG's answer: https://docs.searxng.org/dev/search_api.html"""
    results = [
        {"url": f"http://{host}{page.path}", "title": page.title, "content": page.snippet, "engine": "local"}
        for page in pages
    ]
    return {"query": query, "number_of_results": len(results), "results": results, "unresponsive_engines": []}


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w{3,}|ai", text.lower()))
