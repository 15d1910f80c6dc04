"""Providers against local servers that answer as each of them really does."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from local.core.errors import SearchUnavailable
from local.web.search import BODY_BYTES, BraveProvider, SearchHit, SearxngProvider, TavilyProvider

SEARXNG_ANSWER = {
    "query": "tea",
    "number_of_results": 0,
    "results": [
        {
            "url": "https://tea.example/",
            "title": "Tea",
            "content": "All about tea.",
            "engine": "duckduckgo",
            "engines": ["duckduckgo"],
            "category": "general",
            "score": 1.0,
            "publishedDate": None,
        },
        {"url": "https://green.example/", "title": "Green tea", "engine": "brave"},
    ],
    "answers": [],
    "corrections": [],
    "infoboxes": [],
    "suggestions": ["green tea"],
    "unresponsive_engines": [["google", "CAPTCHA"]],
}
BRAVE_ANSWER = {
    "type": "search",
    "query": {"original": "tea", "more_results_available": True},
    "mixed": {"type": "mixed", "main": [{"type": "web", "index": 0, "all": False}]},
    "web": {
        "type": "search",
        "results": [
            {
                "title": "Tea &amp; more",
                "url": "https://tea.example/",
                "description": "All about <strong>tea</strong>&#x27;s history.",
                "page_age": "2026-01-01T00:00:00",
                "meta_url": {"hostname": "tea.example"},
            }
        ],
    },
}
TAVILY_ANSWER = {
    "query": "tea",
    "answer": None,
    "images": [],
    "results": [
        {
            "url": "https://tea.example/",
            "title": "Tea",
            "content": "All about tea.",
            "score": 0.98,
            "raw_content": None,
        }
    ],
    "response_time": 1.2,
    "request_id": "f1",
}


def brave_error(status, code, detail):
    return {"type": "ErrorResponse", "error": {"id": "1", "status": status, "detail": detail, "meta": {}, "code": code}}


PROVIDERS = {
    "searxng": lambda url: SearxngProvider(url),
    "brave": lambda url: BraveProvider("brave-key", base_url=url + "/res/v1"),
    "tavily": lambda url: TavilyProvider("tavily-key", base_url=url),
}


@pytest.fixture
async def searxng(server):
    provider = PROVIDERS["searxng"](server.url)
    yield provider
    await provider.close()


@pytest.fixture
async def brave(server):
    provider = PROVIDERS["brave"](server.url)
    yield provider
    await provider.close()


@pytest.fixture
async def tavily(server):
    provider = PROVIDERS["tavily"](server.url)
    yield provider
    await provider.close()


@pytest.fixture(params=PROVIDERS)
async def provider(request, server):
    provider = PROVIDERS[request.param](server.url)
    yield provider
    await provider.close()


async def refusal(provider, max_results=5) -> SearchUnavailable:
    with pytest.raises(SearchUnavailable) as caught:
        await provider.search("tea", max_results)
    assert caught.value.kind == "unavailable"
    assert caught.value.provider == provider.name
    return caught.value


async def test_searxng_is_asked_for_json_and_its_results_become_hits(server, searxng):
    server.says(SEARXNG_ANSWER)
    assert await searxng.search("tea & scones", 5) == [
        SearchHit("Tea", "All about tea.", "https://tea.example/"),
        SearchHit("Green tea", "", "https://green.example/"),
    ]
    (request,) = server.requests
    assert (request.method, request.path) == ("GET", "/search")
    assert request.query == {"q": "tea & scones", "format": "json"}


async def test_searxng_without_json_says_what_to_change(server, searxng):
    server.says(b"<!doctype html><title>403 Forbidden</title>", 403, Content_Type="text/html")
    assert "format=json is not enabled" in (await refusal(searxng)).reason


async def test_searxng_with_silent_engines_and_no_results_could_not_look(server, searxng):
    silent = [["google", "Suspended: CAPTCHA"], ["brave", "too many requests"]]
    server.says({**SEARXNG_ANSWER, "results": [], "unresponsive_engines": silent})
    reason = (await refusal(searxng)).reason
    assert "google (Suspended: CAPTCHA), brave (too many requests)" in reason


async def test_searxng_whose_engines_answered_found_nothing(server, searxng):
    server.says({**SEARXNG_ANSWER, "results": [], "unresponsive_engines": []})
    assert await searxng.search("tea", 5) == []


async def test_brave_gets_its_token_and_its_html_becomes_text(server, brave):
    server.says(BRAVE_ANSWER)
    assert await brave.search("tea", 7) == [SearchHit("Tea & more", "All about tea's history.", "https://tea.example/")]
    (request,) = server.requests
    assert (request.method, request.path) == ("GET", "/res/v1/web/search")
    assert request.query == {"q": "tea", "count": "7"}
    assert request.headers["x-subscription-token"] == "brave-key"


async def test_brave_leaves_web_out_when_it_found_nothing(server, brave):
    server.says({"type": "search", "query": {"original": "tea"}, "mixed": {"type": "mixed", "main": []}})
    assert await brave.search("tea", 5) == []


async def test_brave_with_a_refused_token_names_the_variable(server, brave):
    server.says(brave_error(422, "SUBSCRIPTION_TOKEN_INVALID", "The provided subscription token is invalid."), 422)
    reason = (await refusal(brave)).reason
    assert "The provided subscription token is invalid." in reason
    assert "BRAVE_API_KEY" in reason


async def test_brave_over_its_rate_says_when_its_window_opens(server, brave):
    body = brave_error(429, "RATE_LIMITED", "Request rate limit exceeded for plan.")
    server.says(body, 429, X_RateLimit_Remaining="0, 1204", X_RateLimit_Reset="1, 1419704")
    failure = await refusal(brave)
    assert failure.retry_after == 1
    assert "Request rate limit exceeded for plan." in failure.reason


async def test_tavily_gets_its_key_as_bearer(server, tavily):
    server.says(TAVILY_ANSWER)
    assert await tavily.search("tea", 7) == [SearchHit("Tea", "All about tea.", "https://tea.example/")]
    (request,) = server.requests
    assert (request.method, request.path) == ("POST", "/search")
    assert json.loads(request.body) == {"query": "tea", "max_results": 7}
    assert request.headers["authorization"] == "Bearer tavily-key"


async def test_tavily_refusals_are_reported_with_what_to_do(server, tavily):
    for status, said, hint in (
        (401, "Unauthorized: missing or invalid API key.", "TAVILY_API_KEY"),
        (432, "This request exceeds your plan's set usage limit.", "limit is reached"),
    ):
        server.says({"detail": {"error": said}}, status)
        reason = (await refusal(tavily)).reason
        assert f"HTTP {status}" in reason and said in reason and hint in reason


async def test_a_missing_or_impossible_key_names_its_variable_and_a_final_newline_is_none_of_it(server):
    for key in (None, "  ", "kéy", "line\nbreak"):
        for provider, variable in (
            (BraveProvider(key, base_url=server.url), "BRAVE_API_KEY"),
            (TavilyProvider(key, base_url=server.url), "TAVILY_API_KEY"),
        ):
            assert variable in (await refusal(provider)).reason
            await provider.close()
    assert server.requests == []
    server.says(TAVILY_ANSWER)
    provider = TavilyProvider("tavily-key\n", base_url=server.url)
    assert await provider.search("tea", 5)
    await provider.close()


async def test_retry_after_in_seconds_and_as_a_date_reaches_the_error(server, provider):
    server.says({}, 429, Retry_After="30")
    assert (await refusal(provider)).retry_after == 30
    server.says({}, 503, Retry_After=format_datetime(datetime.now(UTC) + timedelta(seconds=600), usegmt=True))
    assert (await refusal(provider)).retry_after == pytest.approx(600, abs=30)


MALFORMED = [
    *(b"", b"<html>", b"\xff\xfe\x00", b"[" * 200_000, [], {}, {"results": None, "web": None}),
    *({"results": {}, "web": {"results": {}}}, {"results": ["x"], "web": {"results": ["x"]}}),
]


async def test_a_malformed_answer_is_unavailable_and_a_refusal_names_its_status(server, provider):
    for payload in MALFORMED:
        server.says(payload)
        await refusal(provider)
    for payload in (b"", [], {"error": "x"}, {"detail": [{"msg": "x"}]}, {"error": {}}):
        server.says(payload, 500)
        assert "HTTP 500" in (await refusal(provider)).reason


async def test_a_redirect_is_not_followed_but_named(server, provider):
    server.says(b"", 301, Location="https://elsewhere.example/")
    assert "a redirect to https://elsewhere.example/" in (await refusal(provider)).reason
    assert len(server.requests) == 1


async def test_an_answer_without_end_is_cut_off(server, provider):
    server.says(b" " * (BODY_BYTES + 1))
    assert "more than" in (await refusal(provider)).reason


async def test_a_broken_off_answer_is_unavailable(server, provider):
    server.says(b"{", 200, Content_Length="100")
    assert "broke" in (await refusal(provider)).reason


async def test_a_server_that_is_not_there_is_named_without_its_password():
    provider = SearxngProvider("http://user:secret@127.0.0.1:1")
    failure = await refusal(provider)
    await provider.close()
    assert "no connection to http://127.0.0.1:1" in failure.reason
    assert "secret" not in str(failure)


async def test_proxies_from_the_environment_are_not_used(server, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    server.says(SEARXNG_ANSWER)
    provider = SearxngProvider(server.url)
    assert await provider.search("tea", 5)
    await provider.close()
