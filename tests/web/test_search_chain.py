"""The chain: who is asked, when, and what reaches the caller. Its providers are scripted and its clock stands still."""

from __future__ import annotations

import asyncio

import pytest

from local.core.errors import ConfigError, SearchUnavailable, ToolError
from local.web.search import CACHED_ANSWERS, MAX_RESULTS, SearchChain, SearchHit, build_chain

HIT = SearchHit("Tea", "All about tea.", "https://tea.example/")


class Clock:
    """A clock that moves when a test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Provider:
    """Gives its outcomes in order, the last one for ever; waits for `gate` first."""

    def __init__(self, name, *outcomes) -> None:
        self.name, self.outcomes, self.closed = name, list(outcomes), False
        self.asked: list[tuple[str, int]] = []
        self.gate, self.entered = asyncio.Event(), asyncio.Event()
        self.gate.set()
        self.inside = self.most_inside = 0

    async def search(self, query, max_results):
        self.asked.append((query, max_results))
        self.inside += 1
        self.most_inside = max(self.most_inside, self.inside)
        self.entered.set()
        try:
            await self.gate.wait()
        finally:
            self.inside -= 1
        outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def close(self):
        self.closed = True


def broken(name, reason="it is broken", retry_after=None):
    return SearchUnavailable(name, reason, retry_after)


async def test_the_first_provider_that_can_look_answers():
    first, second = Provider("first", [HIT]), Provider("second", [HIT])
    outcome = await SearchChain([first, second]).search("tea", 5)
    assert (outcome.query, outcome.provider, outcome.hits, outcome.tried) == ("tea", "first", (HIT,), ())
    assert second.asked == []


async def test_nothing_found_is_an_answer_and_no_reason_to_ask_the_next():
    first, second = Provider("first", []), Provider("second", [HIT])
    outcome = await SearchChain([first, second]).search("tea", 5)
    assert (outcome.provider, outcome.hits, outcome.tried) == ("first", (), ())
    assert second.asked == []


async def test_a_provider_that_cannot_look_is_named_with_its_reason_and_the_next_answers():
    chain = SearchChain([Provider("first", broken("first", "HTTP 500")), Provider("second", [HIT])])
    outcome = await chain.search("tea", 5)
    assert (outcome.provider, outcome.tried) == ("second", (("first", "HTTP 500"),))


async def test_when_none_can_look_the_error_names_each_and_the_shortest_pause():
    providers = [Provider("a", broken("a", "HTTP 500", 60)), Provider("b", broken("b", "no key")),
                 Provider("c", broken("c", "HTTP 429", 20))]  # fmt: skip
    with pytest.raises(SearchUnavailable) as caught:
        await SearchChain(providers).search("tea", 5)
    assert str(caught.value) == "web search could not search: a: HTTP 500; b: no key; c: HTTP 429"
    assert (caught.value.kind, caught.value.retry_after) == ("unavailable", 20)


async def test_a_provider_that_asked_for_a_pause_is_passed_over_until_then():
    clock = Clock()
    first = Provider("first", broken("first", "HTTP 429", 30), [HIT])
    chain = SearchChain([first, Provider("second", [])], clock=clock)
    await chain.search("one", 5)

    clock.now += 12
    outcome = await chain.search("two", 5)
    assert len(first.asked) == 1
    assert outcome.provider == "second"
    assert outcome.tried == (("first", "it asked not to be asked again for another 18 s"),)

    clock.now += 18
    assert (await chain.search("three", 5)).provider == "first"


async def test_a_query_that_waited_in_line_does_not_break_a_pause_asked_for_meanwhile():
    provider = Provider("only", broken("only", "HTTP 429", 30))
    provider.gate.clear()
    chain = SearchChain([provider])
    searches = [asyncio.create_task(chain.search(query, 5)) for query in ("one", "two")]
    await provider.entered.wait()
    provider.gate.set()
    outcomes = await asyncio.gather(*searches, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [SearchUnavailable, SearchUnavailable]
    assert len(provider.asked) == 1


async def test_answers_are_kept_for_a_while_and_found_by_the_same_words():
    clock, provider = Clock(), Provider("only", [HIT])
    chain = SearchChain([provider], cache_seconds=300, clock=clock)
    first = await chain.search("green tea", 5)
    clock.now += 299
    assert await chain.search("  Green \n TEA ", 5) == first
    assert len(provider.asked) == 1
    await chain.search("green tea", 6)
    assert len(provider.asked) == 2
    clock.now += 1
    await chain.search("green tea", 5)
    assert len(provider.asked) == 3


async def test_the_number_of_kept_answers_is_bounded_and_the_oldest_goes_first():
    provider = Provider("only", [])
    chain = SearchChain([provider], clock=Clock())
    for number in range(CACHED_ANSWERS + 1):
        await chain.search(f"query {number}", 5)
    await chain.search("query 1", 5)
    assert len(provider.asked) == CACHED_ANSWERS + 1
    await chain.search("query 0", 5)
    assert len(provider.asked) == CACHED_ANSWERS + 2


async def test_identical_queries_under_way_share_one_request_and_its_failure():
    for outcome in ([HIT], broken("only")):
        provider = Provider("only", outcome)
        provider.gate.clear()
        chain = SearchChain([provider])
        searches = [asyncio.create_task(chain.search(query, 5)) for query in ("tea", "TEA", " tea ")]
        await provider.entered.wait()
        provider.gate.set()
        first, *others = await asyncio.gather(*searches, return_exceptions=True)
        assert all(other is first for other in others)
        assert len(provider.asked) == 1


async def test_the_last_who_gives_up_ends_the_request_and_the_next_starts_a_new_one():
    provider = Provider("only", [HIT])
    provider.gate.clear()
    chain = SearchChain([provider])
    search = asyncio.create_task(chain.search("tea", 5))
    await provider.entered.wait()
    search.cancel()
    await asyncio.gather(search, return_exceptions=True)
    assert search.cancelled()
    assert provider.inside == 0
    provider.gate.set()
    assert (await chain.search("tea", 5)).hits == (HIT,)


async def test_one_provider_gets_one_query_at_a_time():
    provider = Provider("only", [HIT])
    chain = SearchChain([provider])
    await asyncio.gather(*(chain.search(f"query {number}", 5) for number in range(5)))
    assert (len(provider.asked), provider.most_inside) == (5, 1)


async def test_different_providers_work_side_by_side():
    first, second = Provider("first", broken("first"), [HIT]), Provider("second", [HIT])
    second.gate.clear()
    chain = SearchChain([first, second])
    slow = asyncio.create_task(chain.search("one", 5))
    await second.entered.wait()
    assert (await chain.search("two", 5)).provider == "first"
    second.gate.set()
    assert (await slow).provider == "second"


async def test_a_provider_that_hangs_leaves_time_for_the_next():
    hanging = Provider("hanging", [HIT])
    hanging.gate.clear()
    chain = SearchChain([hanging, Provider("next", [HIT])], timeout_seconds=0.2)
    outcome = await chain.search("tea", 5)
    assert outcome.provider == "next"
    assert outcome.tried == (("hanging", "no answer within 0.1 s"),)


async def test_the_number_of_results_is_limited_and_an_impossible_query_asks_nobody():
    provider = Provider("only", [])
    for number in (-3, 5, 1000):
        await SearchChain([provider]).search("tea", number)
    assert [number for _, number in provider.asked] == [1, 5, MAX_RESULTS]
    for query in ("", " \n ", "x" * 401):
        with pytest.raises(ToolError) as caught:
            await SearchChain([provider]).search(query, 5)
        assert caught.value.kind == "bad_argument"
    assert len(provider.asked) == 3


async def test_a_chain_is_built_in_the_order_of_the_settings_and_each_provider_once(server):
    server.says(b"", 500)
    chain = build_chain(provider="searxng", fallback_providers=["brave", "tavily", "brave"], searxng_url=server.url)
    with pytest.raises(SearchUnavailable) as caught:
        await chain.search("tea", 5)
    await chain.close()
    parts = [part.split(":")[0] for part in caught.value.reason.split("; ") if ": " in part]
    assert parts == ["searxng", "brave", "tavily"]


async def test_the_timeout_of_the_settings_ends_a_search(server):
    asked, gate = asyncio.Event(), asyncio.Event()

    async def hang(request):
        asked.set()
        await gate.wait()
        return server.answer

    server.handle = hang
    chain = build_chain(searxng_url=server.url, timeout_seconds=0.2)
    with pytest.raises(SearchUnavailable, match="searxng: "):
        await chain.search("tea", 5)
    gate.set()
    await chain.close()


def test_wrong_settings_are_named_with_what_would_be_right():
    for settings, says in (
        ({"provider": "brve"}, "provider: there is no search provider 'brve'.* Did you mean 'brave'?"),
        ({"fallback_providers": ["SearXNG"]}, "fallback_providers: .* Did you mean 'searxng'?"),
        ({"searxng_url": "localhost:8080"}, "searxng_url: 'localhost:8080' is no address; expected"),
    ):
        with pytest.raises(ConfigError, match=says):
            build_chain(**settings)
