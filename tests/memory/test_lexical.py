"""Search by words: languages, what of a question is looked for, rare words, and the time that a question names."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from local.core.words import Language, language_of, terms_of
from local.memory.search import TOLD_LATER, named_time, questions_in
from local.memory.service import EngramService
from local.memory.store import (
    EngramDraft,
)


@pytest.mark.parametrize(
    "text",
    ["What is the capital of France?", "I take my coffee with oat milk", "How do I mount a disk in Linux, and why?"],
)
def test_english_is_recognised(text: str) -> None:
    assert language_of(text) is Language.ENGLISH


@pytest.mark.parametrize(
    "text",
    [
        "Wie spät ist es in der Stadt?", "Où est la gare de Lyon, et comment y aller?", "¿Cómo se dice esto en inglés?",
        "Hoe laat is het in Amsterdam?", "我喜欢喝乌龙茶", "Где мой ключ?", "kubectl", "",
    ],
)  # fmt: skip
def test_what_is_not_surely_english_is_not_stemmed(text: str) -> None:
    assert language_of(text) is Language.OTHER


def test_a_question_is_looked_for_by_its_telling_words() -> None:
    assert terms_of("What did I tell you about the coffee, and the Coffee machine?") == ["coffee", "machine"]
    assert terms_of("who is it") == ["who", "is", "it"]


@pytest.mark.parametrize(
    ("question", "parts"),
    [
        ("Where does Ana live, and what is her dog called?", ("Where does Ana live", "what is her dog called")),
        ("Was mag Jo? Wo wohnt Kim?", ("Was mag Jo", "Wo wohnt Kim")),
        ("What does Tim love and is good at?", ()),
        ("Who lives in Oslo?", ()),
    ],
)
def test_a_question_may_ask_several_things(question: str, parts: tuple[str, ...]) -> None:
    assert questions_in(question) == parts


async def test_what_answers_the_second_half_of_a_question_is_found_too(
    service: EngramService, exchange: Callable[..., EngramDraft]
) -> None:
    for number in range(6):
        await service.ingest(exchange(f"Ana moved flat and her rabbit {number} came along to the new lake house"))
    for place in ("attic", "car", "school", "shop", "hall", "cellar", "office"):
        await service.ingest(exchange(f"The violin is in the {place}"))
    question = "Which lake house flat did Ana and her rabbit move to, and where is the violin?"
    found = [hit.engram.query for hit in (await service.search("ann", question, limit=3)).hits]
    assert "Ana" in found[0] and any("violin" in each for each in found)


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


async def test_a_rare_word_is_found_in_a_question_and_an_answer_of_any_length(
    service: EngramService, exchange: Callable[..., EngramDraft]
) -> None:
    for number in range(80):
        await service.ingest(exchange(f"My favourite number {number} is what it was"))
    pages = " ".join(f"filler{number % 900}" for number in range(9_000))
    await service.ingest(exchange(f"Sum this up: {pages} munin1", f"It says: {pages} munin2"))
    await service.ingest(exchange(f"Remember that my favourite rune is huginnq. {pages[:9000]}"))
    for question, found in (
        ("huginnq", "huginnq"),
        ("What was my favourite rune, Huginnq?", "huginnq"),
        ("munin1", "munin1"),
        ("munin2", "munin1"),
    ):
        assert found in (await service.search("ann", question)).hits[0].engram.query


async def test_a_rare_word_weighs_more_than_a_common_one(
    service: EngramService, exchange: Callable[..., EngramDraft]
) -> None:
    for number in range(40):
        await service.ingest(exchange(f"My number {number} is what it was"))
    for said in ("My rune", "My own number of a rune"):
        await service.ingest(exchange(said))
    both, rare, *_ = (await service.search("ann", "Which number has the rune?")).hits
    assert (both.engram.query, rare.engram.query) == ("My own number of a rune", "My rune")
    assert pytest.approx(both.words) == 1.0 and 1.0 > rare.words > 0.9


NOW = datetime(2026, 11, 22, 12).timestamp()  # a Sunday
DAY = 86400.0


@pytest.mark.parametrize(
    ("question", "first", "last"),
    [
        ("What did we say yesterday?", "2026-11-21", "2026-11-21"),
        ("And the day before yesterday?", "2026-11-20", "2026-11-20"),
        ("What did I plan last week?", "2026-11-09", "2026-11-15"),
        ("Where was I last month?", "2026-10-01", "2026-10-31"),
        ("What did Nora paint in May 2023?", "2023-05-01", "2023-05-31"),
        ("What did I do on 7 May 2023?", "2023-05-07", "2023-05-07"),
        ("What did I do on May 7th, 2023?", "2023-05-07", "2023-05-07"),
        ("What was on 2024-02-29?", "2024-02-29", "2024-02-29"),
        ("Who came in December?", "2025-12-01", "2025-12-31"),
        ("Who came on December 3?", "2025-12-03", "2025-12-03"),
        ("What happened in 2023?", "2023-01-01", "2023-12-31"),
        ("What did I eat two days ago?", "2026-11-20", "2026-11-20"),
        ("What did I eat last Friday?", "2026-11-20", "2026-11-20"),
        ("Wo war ich vorgestern?", "2026-11-20", "2026-11-20"),
        ("Was war letzte Woche?", "2026-11-09", "2026-11-15"),
        ("Was habe ich am 3. März gesagt?", "2026-03-03", "2026-03-03"),
        ("Qu'ai-je dit le mois dernier ?", "2026-10-01", "2026-10-31"),
        ("¿Qué dije ayer?", "2026-11-21", "2026-11-21"),
        ("我上周说了什么", "2026-11-09", "2026-11-15"),
    ],
)
def test_a_time_is_the_days_from_its_first_to_its_last_and_a_little_more(question: str, first: str, last: str) -> None:
    period = named_time(question, NOW)
    assert period is not None
    begins = datetime.fromtimestamp(period.begins)
    ends = datetime.fromtimestamp(period.ends) - TOLD_LATER - timedelta(seconds=1)
    assert (f"{begins:%Y-%m-%d}", f"{ends:%Y-%m-%d}") == (first, last)


@pytest.mark.parametrize(
    "question",
    ["", "What may I eat?", "Where do I live?", "2023-02-31", "in 1", "99 May", "march on", "9999 years ago", "today?"],
)
def test_what_names_no_time_has_none(question: str) -> None:
    assert named_time(question, NOW) is None


async def test_what_was_said_then_comes_first_and_all_of_it_where_nothing_else_is_asked(
    service: EngramService, exchange: Callable[..., EngramDraft]
) -> None:
    now = service._clock()
    for days, said in ((30, "The garden needs water"), (1, "The garden needs a fence"), (1, "The train was late")):
        await service.ingest(exchange(said, asked_at=now - days * DAY))
    await service.settled()
    first, *_ = (await service.search("ann", "What did the garden need yesterday?")).hits
    assert (first.engram.query, first.in_period) == ("The garden needs a fence", True)
    everything = (await service.search("ann", "What did we talk about yesterday?")).hits
    assert {hit.engram.query for hit in everything} == {"The garden needs a fence", "The train was late"}
