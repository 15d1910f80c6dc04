"""A question may name a time; what was said then is found first."""

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from local.memory.search import TOLD_LATER, named_time
from local.memory.service import EngramService
from local.memory.store import EngramDraft

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
    assert (await service.search("bob", "What did we talk about yesterday?")).hits == ()
