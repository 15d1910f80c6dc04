"""Words are counted once in a while, and the telling ones are looked for first."""

from collections.abc import Callable

import pytest

from local.services.engrams.engram import EngramDraft
from local.services.engrams.lexical import RARE, affordable
from local.services.engrams.ranking import COVERAGE_FLOOR
from local.services.engrams.service import EngramService


def test_the_rarest_words_are_looked_for_as_long_as_they_are_cheap() -> None:
    assert affordable({"common": 90, "rare": 2, "usual": 30}, 40) == ["rare", "usual"]
    assert affordable({"common": 90, "usual": 60}, 40) == ["usual"]
    assert affordable({"common": 90, "new": 0}, 40) == ["new", "common"]
    assert affordable({}, 40) == []


async def test_a_word_is_found_as_soon_as_it_was_said_though_it_was_counted_before(
    service: EngramService, exchange: Callable[..., EngramDraft]
) -> None:
    for number in range(50):
        await service.ingest(exchange(f"number {number}"))
    assert (await service.search("ann", "zanzibar")).hits == ()
    await service.ingest(exchange("I travel to Zanzibar"))
    (hit,) = (await service.search("ann", "zanzibar")).hits
    assert hit.engram.query == "I travel to Zanzibar"


async def test_a_word_in_the_exchange_counts_more_than_one_said_before(
    service: EngramService, exchange: Callable[..., EngramDraft]
) -> None:
    for query in ("We plan Lisbon", "The hotel is fine", "And the boat, too", "Something else"):
        await service.ingest(exchange(query, session_id="s"))
    found = [hit.engram.query for hit in (await service.search("ann", "Lisbon")).hits]
    assert found[0] == "We plan Lisbon"
    assert "Something else" not in found


@pytest.mark.parametrize("question", ["huginnq", "What was my favourite rune, Huginnq?"])
@pytest.mark.parametrize("others", [0, 2, 80])
async def test_a_rare_word_is_found_in_a_text_of_any_length(
    service: EngramService, exchange: Callable[..., EngramDraft], others: int, question: str
) -> None:
    for number in range(others):
        await service.ingest(exchange(f"My favourite number {number} is what it was"))
    filler = " ".join(f"filler{number % 900}" for number in range(1_900))
    await service.ingest(exchange(f"Remember that my favourite rune is huginnq. {filler}"))
    hits = await service._by_words("ann", question)
    assert hits[0].coverage >= COVERAGE_FLOOR


async def test_whatever_the_length_of_the_question_and_of_the_answer_both_are_searched(
    service: EngramService, exchange: Callable[..., EngramDraft]
) -> None:
    pages = " ".join(f"filler{number % 900}" for number in range(9_000))
    long = exchange(f"Sum this up: {pages} munin1", f"It says: {pages} munin2")
    await service.ingest(long)
    for word in ("munin1", "munin2"):
        assert [hit.engram.engram_id for hit in (await service.search("ann", word)).hits] == [long.engram_id]


async def test_a_word_that_many_have_does_not_make_a_long_text_relevant(
    service: EngramService, exchange: Callable[..., EngramDraft]
) -> None:
    filler = " ".join(f"filler{number % 900}" for number in range(1_900))
    for number in range(RARE + 1):
        await service.ingest(exchange(f"My rune {number}. {filler}"))
    for number in range(40):
        await service.ingest(exchange(f"My number {number} is what it was"))
    await service.ingest(exchange("My short rune"))
    long_ones = (await service._by_words("ann", "rune"))[1:]
    assert len(long_ones) == RARE + 1
    assert all(hit.coverage < COVERAGE_FLOOR for hit in long_ones)
