"""The tool that looks things up on the web, with providers of the test's own."""

from collections.abc import Awaitable, Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from local.core.errors import ConfigError, SearchUnavailable
from local.runtime.participant import Resources
from local.tools.tool import Tool
from local.web.search import SearchChain, SearchHit, WebSearchConfig, WebSearchTool

Serve = Callable[[Tool], Awaitable[Any]]


class Provider:
    """Finds what it was given, or cannot look."""

    def __init__(self, name: str, found: list[SearchHit] | SearchUnavailable) -> None:
        self.name, self.found = name, found
        self.asked: list[tuple[str, int]] = []
        self.closed = False

    async def search(self, query: str, max_results: int) -> list[SearchHit]:
        self.asked.append((query, max_results))
        if isinstance(self.found, SearchUnavailable):
            raise self.found
        return self.found

    async def close(self) -> None:
        self.closed = True


def tool(*providers: Provider, **settings: Any) -> WebSearchTool:
    return WebSearchTool(WebSearchConfig(**settings), SearchChain(providers))


async def test_hits_are_numbered_text_that_begins_with_today_and_names_its_sources(serve: Serve) -> None:
    provider = Provider(
        "mine", [SearchHit("Fjords", "Deep.", "http://fjord/"), SearchHit("Fells", "High.", "http://fell/")]
    )
    result = await (await serve(tool(provider, max_results=2)))(query="Norway")
    assert result.error is None
    assert result.result.startswith(f"Today's date: {date.today().isoformat()}\n\n[1] Title: Fjords\n")
    assert "[2] Title: Fells\n    Snippet: High.\n    URL: http://fell/" in result.result
    assert result.sources == ("http://fjord/", "http://fell/")
    assert provider.asked == [("Norway", 2)]


async def test_finding_nothing_is_a_result(serve: Serve) -> None:
    nothing = await (await serve(tool(Provider("mine", []))))(query="Norway")
    assert (nothing.error, "found nothing" in nothing.result) == (None, True)


async def test_not_being_able_to_look_is_an_error(serve: Serve) -> None:
    blind = await (await serve(tool(Provider("mine", SearchUnavailable("mine", "it is asleep")))))(query="Norway")
    assert (blind.result, blind.error.kind) == (None, "unavailable")
    assert "mine: it is asleep" in blind.error.message


async def test_an_empty_query_is_refused_in_words(serve: Serve) -> None:
    result = await (await serve(tool(Provider("mine", []))))(query="  ")
    assert (result.error.kind, "say what to search for" in result.error.message) == ("bad_argument", True)


async def test_the_providers_are_closed_at_the_end() -> None:
    provider = Provider("mine", [])
    made = tool(provider)
    async with made.lifespan():
        assert not provider.closed
    assert provider.closed


def test_the_model_is_told_to_send_a_query_and_nothing_else() -> None:
    schema = tool(Provider("mine", []), timeout_seconds=4).schema()
    assert schema.tool == "web_search"
    assert schema.parameters["required"] == ["query"]
    assert schema.parameters["additionalProperties"] is False
    assert (schema.repeatable, schema.timeout_seconds) == (False, 5)


async def test_it_is_built_from_its_configuration(serve: Serve, tmp_path: Path) -> None:
    built = WebSearchTool.build(WebSearchConfig(provider="mock"), Resources(tmp_path))
    assert (await (await serve(built))(query="Norway")).error is None
    with pytest.raises(ConfigError, match="askjeeves"):
        WebSearchTool.build(WebSearchConfig(provider="askjeeves"), Resources(tmp_path))
