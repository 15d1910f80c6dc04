"""Words are counted once in a while, and the telling ones are looked for first."""

from collections.abc import Callable

import pytest

from local.memory.service import EngramService
from local.memory.store import Coverages, EngramDraft, affordable


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
    hits = (await service.search("ann", question)).hits
    assert "huginnq" in hits[0].engram.query


async def test_whatever_the_length_of_the_question_and_of_the_answer_both_are_searched(
    service: EngramService, exchange: Callable[..., EngramDraft]
) -> None:
    pages = " ".join(f"filler{number % 900}" for number in range(9_000))
    long = exchange(f"Sum this up: {pages} munin1", f"It says: {pages} munin2")
    await service.ingest(long)
    for word in ("munin1", "munin2"):
        assert [hit.engram.engram_id for hit in (await service.search("ann", word)).hits] == [long.engram_id]


async def test_the_more_texts_have_a_word_the_less_it_weighs_and_all_words_make_one(
    service: EngramService, exchange: Callable[..., EngramDraft]
) -> None:
    for number in range(40):
        await service.ingest(exchange(f"My number {number} is what it was"))
    for said in ("My rune", "My own number of a rune"):
        await service.ingest(exchange(said))
    found = await service._by_words("ann", "Which number has the rune?")
    owns = sorted(found.own.values(), reverse=True)
    assert owns[0] == pytest.approx(1.0)
    assert 1.0 > owns[1] > 0.9 > 0.1 > owns[2] > 0.0


async def test_others_words_are_not_counted_and_what_many_have_is_looked_for_among_the_latest(
    service: EngramService, exchange: Callable[..., EngramDraft]
) -> None:
    for user_id in ("ann", "bob"):
        await service.ingest(exchange("My rune is huginnq", user_id=user_id))
    assert len((await service._by_words("ann", "huginnq")).own) == 1
    assert await service._by_words("eve", "huginnq") == Coverages()


def test_the_best_have_most_of_the_words_themselves_then_before_and_of_equals_the_latest_come_first() -> None:
    found = Coverages({1: 0.5, 2: 0.9, 3: 0.5, 4: 0.5, 5: 0.1}, {1: 0.2, 6: 0.9, 2: 0.1})
    assert found.best(3) == [2, 1, 4]
    assert found.best(4) == [2, 1, 4, 3]
    assert found.best(9) == [2, 1, 4, 3, 5, 6]
    assert Coverages().best(3) == []


def test_the_best_among_some_are_of_them_alone_also_those_that_have_no_word() -> None:
    found = Coverages({1: 0.5, 2: 0.9}, {3: 0.4}).among([1, 3, 7, 8])
    assert found.best(2) == [1, 3]
    assert found.best(9) == [1, 3, 8, 7]
    assert (found.of(1), found.of(2), found.of(3)) == ((0.5, 0.0), (0.0, 0.0), (0.0, 0.4))
