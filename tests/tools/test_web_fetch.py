"""The tool that reads one web page, with a reader of the test's own."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import pytest

from local.core.errors import ToolError
from local.runtime.participant import Resources
from local.tools.tool import Tool
from local.web.fetch import Page, PageReader, WebFetchConfig, WebFetchTool

Serve = Callable[[Tool], Awaitable[Any]]


class Reader:
    """Has one page."""

    def __init__(self, page: Page | ToolError) -> None:
        self.page = page
        self.asked: list[tuple[str, int]] = []

    async def read(self, url: str, start: int = 0, *, same_host: bool = False) -> Page:
        self.asked.append((url, start))
        if isinstance(self.page, ToolError):
            raise self.page
        return self.page


def tool(page: Page | ToolError, **settings: Any) -> WebFetchTool:
    return WebFetchTool(WebFetchConfig(**settings), cast(PageReader, Reader(page)))


async def test_a_page_is_its_address_title_and_text(serve: Serve) -> None:
    page = Page("http://fjord/final", "Fjords", "Deep.", start=0, end=5, total_chars=5, next_start=None)
    result = await (await serve(tool(page)))(url="http://fjord/")
    assert result.result == "URL: http://fjord/final\nTitle: Fjords\nExtracted text:\nDeep."
    assert result.sources == ("http://fjord/final",)


async def test_a_long_page_says_how_to_read_on(serve: Serve) -> None:
    page = Page("http://fjord/", "", "Deep.", start=10, end=15, total_chars=40, next_start=16)
    made = tool(page)
    result = await (await serve(made))(url="http://fjord/", start=10)
    assert result.result == (
        "URL: http://fjord/\nExtracted text:\nDeep.\n\n"
        "[Characters 10 to 15 of 40. To read on, call web_fetch with start=16.]"
    )
    assert cast(Reader, made._reader).asked == [("http://fjord/", 10)]


async def test_what_cannot_be_read_is_an_error_with_its_kind(serve: Serve) -> None:
    result = await (await serve(tool(ToolError("there is no such page", kind="http_status"))))(url="http://fjord/")
    assert (result.error.kind, result.error.message) == ("http_status", "there is no such page")


@pytest.mark.parametrize("args", [{}, {"url": "http://fjord/", "start": -1}, {"url": "http://fjord/", "page": 2}])
async def test_bad_arguments_reach_no_reader(serve: Serve, args: dict[str, Any]) -> None:
    made = tool(ToolError("unreachable"))
    assert (await (await serve(made))(**args)).error.kind == "bad_arguments"
    assert cast(Reader, made._reader).asked == []


async def test_built_from_its_configuration_it_refuses_what_is_not_public(serve: Serve, tmp_path: Path) -> None:
    built = WebFetchTool.build(WebFetchConfig(), Resources(tmp_path))
    assert (await (await serve(built))(url="http://127.0.0.1/")).error.kind == "refused"


def test_its_time_limit_leaves_room_for_fetching_and_for_extracting() -> None:
    assert tool(ToolError(""), timeout_seconds=4).schema().timeout_seconds == 21
