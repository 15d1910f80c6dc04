"""The tool that reads one web page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Self

from pydantic import Field

from local.config import Settings
from local.runtime.participant import Resources
from local.services.pages.article import Link
from local.services.pages.page_reader import Page, PageReader
from local.services.pages.reading_limit import SECONDS_FACTOR
from local.tools.tool import Tool, ToolOutput

LINKS_CHARS, LINK_TEXT_CHARS = 2000, 80


class WebFetchConfig(Settings):
    """`web_fetch.yaml`; the comments there say what each key means."""

    fetch_max_chars: int = Field(8000, ge=200, le=200_000)
    timeout_seconds: float = Field(15, gt=0)
    allow_hosts: tuple[str, ...] = ()


class WebFetchTool(Tool):
    """Read one web page by its URL. The URL is known, for example from web_search. A long page comes in parts: call
    again with the start that the result names to read on."""

    name = "web_fetch"
    replaces = "curl, wget"
    Config = WebFetchConfig
    effect = "read"
    safety = "L0"
    category = "web"
    repeatable = False

    def __init__(self, config: WebFetchConfig, reader: PageReader) -> None:
        super().__init__(config)
        self._reader = reader
        # Fetching and extracting have a limit each; the second one more lets their errors come first.
        self.timeout_seconds = (1.0 + SECONDS_FACTOR) * config.timeout_seconds + 1.0

    @classmethod
    def build(cls, config: WebFetchConfig, resources: Resources) -> Self:
        """With a reader that may go wherever `allow_hosts` and the address table let it."""
        reader = PageReader(
            fetch_max_chars=config.fetch_max_chars,
            timeout_seconds=config.timeout_seconds,
            allow_hosts=config.allow_hosts,
        )
        return cls(config, reader)

    async def run(
        self,
        url: Annotated[str, "An http or https address"],
        start: Annotated[int, Field(ge=0, description="The character to begin at; 0 is the beginning")] = 0,
    ) -> ToolOutput:
        """The page's address, title and text, or the part of it that begins at `start`."""
        page = await self._reader.read(url, start, same_host=self.stays_on_host())
        return ToolOutput(_render(page), (page.url,), links=tuple(link.url for link in page.links))


def _render(page: Page) -> str:
    title = f"Title: {page.title}\n" if page.title else ""
    more = ""
    if page.next_start is not None:
        more = (
            f"\n\n[Characters {page.start} to {page.end} of {page.total_chars}."
            f" To read on, call web_fetch with start={page.next_start}.]"
        )
    links = _listed(page.links) if page.start == 0 else ""
    return f"URL: {page.url}\n{title}Extracted text:\n{page.text}{more}{links}"


def _listed(links: Sequence[Link]) -> str:
    """The first links of a page, as many as have room, so that the model can follow them."""
    lines, room = list[str](), LINKS_CHARS
    for link in links:
        line = f"- {link.text[:LINK_TEXT_CHARS]}: {link.url}"
        room -= len(line) + 1
        if room >= 0:
            lines.append(line)
    return "\n\nLinks on the page:\n" + "\n".join(lines) if lines else ""
