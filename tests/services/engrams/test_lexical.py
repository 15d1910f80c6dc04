"""Words are counted once in a while, and the telling ones are looked for first."""

from collections.abc import Callable

from local.services.engrams.engram import Exchange
from local.services.engrams.lexical import affordable
from local.services.engrams.service import EngramService


def test_the_rarest_words_are_looked_for_as_long_as_they_are_cheap() -> None:
    assert affordable({"common": 90, "rare": 2, "usual": 30}, 40) == ["rare", "usual"]
    assert affordable({"common": 90, "usual": 60}, 40) == ["usual"]
    assert affordable({"common": 90, "new": 0}, 40) == ["new", "common"]
    assert affordable({}, 40) == []


async def test_a_word_is_found_as_soon_as_it_was_said_though_it_was_counted_before(
    service: EngramService, exchange: Callable[..., Exchange]
) -> None:
    for number in range(50):
        await service.ingest(exchange(f"number {number}"))
    assert (await service.search("ann", "zanzibar")).hits == ()
    await service.ingest(exchange("I travel to Zanzibar"))
    (hit,) = (await service.search("ann", "zanzibar")).hits
    assert hit.engram.query == "I travel to Zanzibar"


async def test_a_word_in_the_exchange_counts_more_than_one_said_before(
    service: EngramService, exchange: Callable[..., Exchange]
) -> None:
    for query in ("We plan Lisbon", "The hotel is fine", "And the boat, too", "Something else"):
        await service.ingest(exchange(query, session_id="s"))
    found = [hit.engram.query for hit in (await service.search("ann", "Lisbon")).hits]
    assert found[0] == "We plan Lisbon"
    assert "Something else" not in found
