"""Checks of the search providers: can the one that is configured, or one of its fallbacks, look?"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import replace

import httpx

from local.apps.doctor.finding import Finding, Status, fail, ok, warn
from local.tools.web_search import WebSearchConfig, key_problem

SECONDS = 2.0


async def check_search(config: WebSearchConfig | None) -> list[Finding]:
    """One finding for each provider; one that cannot look is only a warning if another can."""
    if config is None:
        return [ok("search", "web_search does not take part")]
    names = dict.fromkeys([config.provider, *config.fallback_providers])
    return soften([await _check_provider(name, config) for name in names])


def soften(findings: Sequence[Finding]) -> list[Finding]:
    """The same findings, with failures as warnings if one provider works."""
    if all(finding.status is Status.FAIL for finding in findings):
        return list(findings)
    return [replace(f, status=Status.WARN) if f.status is Status.FAIL else f for f in findings]


async def _check_provider(provider: str, config: WebSearchConfig) -> Finding:
    match provider:
        case "searxng":
            return await check_searxng(config.searxng_url)
        case "brave" | "tavily":
            return _check_key(provider, config)
        case "ddgs":
            if importlib.util.find_spec("ddgs") is None:
                return fail("search", "ddgs: the package ddgs is not installed", "pip install ddgs")
            return ok("search", "ddgs: the package is installed")
        case "mock":
            return warn("search", "mock: gives canned results only", "set provider in web_search.yaml")
    return fail("search", f"there is no provider {provider!r}", "set provider in web_search.yaml")


def _check_key(provider: str, config: WebSearchConfig) -> Finding:
    if problem := key_problem(provider, config):
        return fail("search", f"{provider}: {problem}", "get a key from the provider and start again")
    return ok("search", f"{provider}: there is a key")


async def check_searxng(url: str) -> Finding:
    """SearXNG answers, and in JSON. Asked without a query, it says 403 if JSON is disabled, else 400, and searches
    nothing (`search()` in https://github.com/searxng/searxng/blob/master/searx/webapp.py)."""
    try:
        async with httpx.AsyncClient(timeout=SECONDS, trust_env=False) as client:
            answer = await client.get(f"{url.rstrip('/')}/search", params={"format": "json"})
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        text = f"searxng: no answer at {url} ({str(error) or type(error).__name__})"
        fix = "start SearXNG, correct searxng_url, or choose another provider in web_search.yaml"
        return fail("search", text, fix)
    return judge_searxng(url, answer.status_code, answer.headers.get("content-type", ""))


def judge_searxng(url: str, status: int, content_type: str) -> Finding:
    """What the HTTP status and content type of SearXNG's answer to no query mean."""
    if status in (200, 400) and "json" in content_type:
        return ok("search", f"searxng: answers in JSON at {url}")
    if status == 403:
        return fail("search", f"searxng: {url} refuses JSON", "add 'json' to search.formats in its settings.yml")
    if status == 429:
        fix = "allow this machine in its limiter.toml, or turn the limiter off"
        return fail("search", f"searxng: the limiter of {url} refuses us", fix)
    text = f"searxng: what answers at {url} is no SearXNG (HTTP {status})"
    return fail("search", text, "correct searxng_url in web_search.yaml: the address without /search")
