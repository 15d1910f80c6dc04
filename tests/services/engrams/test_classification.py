"""What a model made of an exchange is noted once; what was recalled passes on its origin and what holds no more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from local.core.errors import NotOnRecord
from local.memory.facts import Classified, FactFinding, FactOperation
from local.memory.service import EngramService
from local.memory.store import EngramDraft, Origin, StatedFact

Make = Callable[..., EngramDraft]
SLOT = "how I take my coffee"


def found(value: str, way: FactOperation = FactOperation.SUPERSEDE) -> Classified:
    return Classified(True, "statement", ("coffee",), (FactFinding(way, SLOT, value),))


@pytest.fixture
def told(service: EngramService, exchange: Make) -> Callable[..., Any]:
    """Ingests an exchange and notes what was made of it."""

    async def tell(classified: Classified, **fields: Any) -> EngramDraft:
        said = exchange("I take my coffee so", **fields)
        await service.ingest(said)
        await service.classify(said.engram_id, classified)
        return said

    return tell


def held(facts: list[StatedFact]) -> list[str]:
    return [fact.value for fact in facts]


async def test_exchanges_are_classified_oldest_first_and_those_of_other_respondents_and_jobs_never(
    service: EngramService, exchange: Make
) -> None:
    first, second = exchange("One"), exchange("Two")
    of_a_job = exchange("I take my coffee black", by_user=False)
    for each in (exchange("Zero", respondent_id="B"), of_a_job, first, second):
        await service.ingest(each)
    for expected in (first, second):
        (pending,) = await service.unclassified(1)
        assert pending.engram_id == expected.engram_id
        await service.classify(pending.engram_id, Classified(expected is first))
    assert await service.unclassified(1) == []
    status = await service.status()
    assert (status.unclassified, status.unparsed) == (0, 1)


async def test_what_is_noted_once_stays(service: EngramService, told: Any) -> None:
    said = await told(found("black"))
    facts = await service.classify(said.engram_id, found("white"))
    assert held(facts) == held(await service.facts("ann")) == ["black"]
    engram = await service.get("ann", said.engram_id)
    assert (engram.intent, engram.entities) == ("statement", ("coffee",))


async def test_each_way_does_what_it_says(service: EngramService, told: Any) -> None:
    await told(found("black"))
    await told(found("white"))
    assert held(await service.facts("ann")) == ["white"]
    await told(found("green", FactOperation.CONTRADICT))
    assert held(await service.facts("ann")) == ["white", "green"]
    await told(found("", FactOperation.RETRACT))
    assert await service.facts("ann") == []
    assert held(await service.fact_history("ann")) == ["black", "white", "green"]


async def test_what_is_taken_back_is_outdated_and_has_no_successor(service: EngramService, told: Any) -> None:
    said = await told(found("black"), answer="A zebrablack coffee")
    await told(found("", FactOperation.RETRACT))
    (hit,) = (await service.search("ann", "zebrablack")).hits
    assert [(old.value, old.values) for old in hit.outdated] == [("black", ())]
    assert (await service.get("ann", said.engram_id)).superseded_by is None


async def test_what_was_said_later_is_not_taken_back(service: EngramService, told: Any) -> None:
    await told(found("black"), asked_at=20.0)
    await told(found("", FactOperation.RETRACT), asked_at=10.0)
    assert held(await service.facts("ann")) == ["black"]


async def test_what_was_deleted_meanwhile_is_not_noted(service: EngramService, exchange: Make) -> None:
    said = exchange("I take my coffee so")
    await service.ingest(said)
    await service.delete("ann", said.engram_id)
    with pytest.raises(NotOnRecord, match="it may have been deleted"):
        await service.classify(said.engram_id, found("black"))
    assert await service.facts("ann") == []


async def test_an_answer_comes_from_where_what_it_recalled_comes_from(service: EngramService, exchange: Make) -> None:
    from_web = exchange("What does the page say?", origin=Origin.WEB)
    from_tool = exchange("What does the tool say?", origin=Origin.TOOL)
    for each in (from_web, from_tool):
        await service.ingest(each)
    for recalled, expected in (
        ((from_tool,), Origin.TOOL),
        ((from_tool, from_web), Origin.WEB),
        ((), Origin.ASSISTANT),
    ):
        echo = exchange("What was it again?", recalled=tuple(each.engram_id for each in recalled))
        await service.ingest(echo)
        assert (await service.get("ann", echo.engram_id)).origin is expected


async def test_an_answer_made_of_an_old_fact_is_marked_when_the_fact_is(service: EngramService, told: Any) -> None:
    said = await told(found("black"))
    echo = await told(Classified(True), answer="It was zebrablack", recalled=(said.engram_id,))
    await told(found("white"))
    hits = (await service.search("ann", "zebrablack")).hits
    (outdated,) = next(hit.outdated for hit in hits if hit.engram.engram_id == echo.engram_id)
    assert (outdated.value, outdated.values) == ("black", ("white",))
