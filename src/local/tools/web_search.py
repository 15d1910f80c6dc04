"""The tool that looks things up on the web."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import date
from typing import Annotated, Self

from pydantic import Field, SecretStr

from local.config import Settings
from local.errors import SearchUnavailable
from local.runtime.participant import Resources
from local.services.search import providers
from local.services.search.chain import SearchChain, build_chain
from local.services.search.hit import render
from local.services.search.providers import usable_key
from local.tools.tool import Tool, ToolOutput


class WebSearchConfig(Settings):
    """`web_search.yaml`; the comments there say what each key means. The environment
    may hold the API keys, too."""

    provider: str = "searxng"
    fallback_providers: tuple[str, ...] = ()
    max_results: int = Field(5, ge=1, le=20)
    timeout_seconds: float = Field(15, gt=0)
    searxng_url: str = "http://localhost:8888"
    cache_seconds: float = Field(300, ge=0)
    brave_api_key: SecretStr | None = None
    tavily_api_key: SecretStr | None = None


class WebSearchTool(Tool):
    """Search the web for current facts, news, prices or pages on a topic. Returns today's date and numbered results,
    each with title, snippet and URL. Use web_fetch on a URL to read the whole page."""

    name = "web_search"
    Config = WebSearchConfig
    effect = "read"
    safety = "L0"
    category = "web"
    repeatable = False

    def __init__(self, config: WebSearchConfig, chain: SearchChain) -> None:
        super().__init__(config)
        self._chain = chain
        self._max_results = config.max_results
        self.timeout_seconds = config.timeout_seconds + 1.0  # the chain's own limit comes first and explains itself

    @classmethod
    def build(cls, config: WebSearchConfig, resources: Resources) -> Self:
        """With the chain of providers that the configuration names."""
        chain = build_chain(
            provider=config.provider,
            fallback_providers=config.fallback_providers,
            searxng_url=config.searxng_url,
            brave_api_key=_value(config.brave_api_key),
            tavily_api_key=_value(config.tavily_api_key),
            timeout_seconds=config.timeout_seconds,
            cache_seconds=config.cache_seconds,
        )
        return cls(config, chain)

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Close the providers' connections at the end."""
        try:
            yield
        finally:
            await self._chain.close()

    async def run(self, query: Annotated[str, "What to search for, in a few words"]) -> ToolOutput:
        """Search, and tell what was found, or that nothing was, or that nobody could look."""
        outcome = await self._chain.search(query, self._max_results)
        return ToolOutput(render(outcome, date.today()), tuple(hit.url for hit in outcome.hits))


def _value(key: SecretStr | None) -> str | None:
    return None if key is None else key.get_secret_value()


def key_problem(provider: str, config: WebSearchConfig) -> str | None:
    """What is wrong with the API key of `brave` or `tavily`, or None."""
    variable, key = {
        "brave": (providers.BRAVE_KEY, config.brave_api_key),
        "tavily": (providers.TAVILY_KEY, config.tavily_api_key),
    }[provider]
    try:
        usable_key(provider, variable, _value(key))
    except SearchUnavailable as error:
        return error.reason
    return None
