"""Providers that need no server of their own: the ddgs package, replaced by a stand-in, and the mock."""

from __future__ import annotations

import sys
import types

import pytest

from local.core.errors import SearchUnavailable
from local.web.search import DdgsProvider, MockProvider, SearchHit


async def refusal() -> SearchUnavailable:
    with pytest.raises(SearchUnavailable) as caught:
        await DdgsProvider().search("tea", 5)
    return caught.value


def fake_ddgs(monkeypatch, text):
    class DDGS:
        def __init__(self, timeout):
            assert isinstance(timeout, int)

        def text(self, query, max_results):
            return text(query, max_results)

    module = types.ModuleType("ddgs")
    module.DDGS = DDGS
    monkeypatch.setitem(sys.modules, "ddgs", module)


async def test_ddgs_results_become_hits(monkeypatch):
    fake_ddgs(monkeypatch, lambda query, n: [{"title": query, "href": "https://tea.example/", "body": "All."}])
    assert await DdgsProvider().search("tea", 5) == [SearchHit("tea", "All.", "https://tea.example/")]


async def test_ddgs_that_is_not_installed_gives_the_install_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "ddgs", None)
    assert "pip install ddgs" in (await refusal()).reason


async def test_ddgs_without_results_does_not_pass_for_nothing_found(monkeypatch):
    def no_results(query, max_results):
        raise RuntimeError("No results found.")

    fake_ddgs(monkeypatch, no_results)
    assert (await refusal()).reason == "No results found."


async def test_mock_gives_its_canned_hits_or_says_that_they_are_made_up():
    hits = [SearchHit("A", "a", "https://a.example/"), SearchHit("B", "b", "https://b.example/")]
    assert await MockProvider(hits).search("tea", 1) == hits[:1]
    assert await MockProvider([]).search("tea", 5) == []
    assert all("tea" in hit.snippet and "mock" in hit.snippet for hit in await MockProvider().search("tea", 5))
