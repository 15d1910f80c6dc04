"""The tool that looks things up on the web, with providers of the test's own."""

from datetime import date
from pathlib import Path
from typing import Any, cast

import pytest

from local.bus.envelope import Envelope
from local.core.errors import ConfigError, SearchUnavailable, ToolError
from local.runtime.participant import Resources
from local.web.messages import SearchTrial
from local.web.search import SearchChain, SearchHit, WebSearchConfig, WebSearchTool


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


async def test_hits_are_numbered_text_that_begins_with_today_and_names_its_sources() -> None:
    provider = Provider(
        "mine", [SearchHit("Fjords", "Deep.", "http://fjord/"), SearchHit("Fells", "High.", "http://fell/")]
    )
    made = tool(provider, max_results=2)
    async with made.lifespan():
        output = await made.run("Norway")
        assert not provider.closed
    assert provider.closed
    assert output.text.startswith(f"Today's date: {date.today().isoformat()}\n\n[1] Title: Fjords\n")
    assert "[2] Title: Fells\n    Snippet: High.\n    URL: http://fell/" in output.text
    assert output.sources == ("http://fjord/", "http://fell/")
    assert provider.asked == [("Norway", 2)]


async def test_finding_nothing_is_a_result_and_not_being_able_to_look_an_error() -> None:
    assert "found nothing" in (await tool(Provider("mine", [])).run("Norway")).text
    with pytest.raises(ToolError, match="mine: it is asleep"):
        await tool(Provider("mine", SearchUnavailable("mine", "it is asleep"))).run("Norway")
    with pytest.raises(ToolError, match="say what to search for"):
        await tool(Provider("mine", [])).run("  ")


async def test_it_is_built_from_its_configuration(tmp_path: Path) -> None:
    built = WebSearchTool.build(WebSearchConfig(provider="mock"), Resources(tmp_path))
    assert (await built.run("Norway")).sources
    assert built.details() == {"provider": "mock"}
    assert WebSearchTool.build(WebSearchConfig(), Resources(tmp_path)).details() == {"provider": "auto"}
    with pytest.raises(ConfigError, match="askjeeves"):
        WebSearchTool.build(WebSearchConfig(provider="askjeeves"), Resources(tmp_path))


async def test_an_owner_who_tries_it_gets_what_a_model_would_read_or_why_there_is_nothing() -> None:
    envelope, trial = cast(Envelope, None), SearchTrial(query="Norway")
    found = await tool(Provider("mine", [SearchHit("Fjords", "Deep.", "http://fjord/")])).try_out(trial, envelope)
    assert (found.provider, found.sources, "[1] Title: Fjords" in found.text) == ("mine", ("http://fjord/",), True)
    away = await tool(Provider("mine", SearchUnavailable("mine", "it is asleep"))).try_out(trial, envelope)
    assert away.error is not None and away.error.kind == "unavailable" and "it is asleep" in away.error.message
