"""Facts: a new value supersedes the old, contradictions stay side by side, and nobody but the user states any."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from local.core.errors import NotOnRecord, UntrustedFact
from local.memory.facts import Classified, FactFinding, FactOperation
from local.memory.service import EngramService
from local.memory.store import EngramDraft, Origin, StatedFact, Statement

SLOT = "coffee, how taken"


@pytest.fixture
def say(service: EngramService, exchange: Callable[..., EngramDraft]) -> Callable[..., Any]:
    """Ingests an exchange and makes the statement of it."""

    async def make(value: str, stated_at: float, slot: str = SLOT, text: str = "") -> Statement:
        said = exchange(text or f"I take my coffee {value}")
        await service.ingest(said)
        return Statement(said.engram_id, slot, value, stated_at, Origin.USER)

    return make


def values(facts: list[StatedFact]) -> list[str]:
    return [fact.value for fact in facts]


async def test_a_new_value_supersedes_the_old_with_its_date(service: EngramService, say: Any) -> None:
    old = await service.supersede(await say("black", 10.0))
    new = await service.supersede(await say("with milk", 20.0))
    assert values(await service.facts("ann")) == ["with milk"]
    first, second = await service.fact_history("ann")
    assert (first.fact_id, first.superseded_by, first.superseded_at) == (old.fact_id, new.fact_id, 20.0)
    assert second == new


async def test_a_value_stated_earlier_but_noted_later_is_history(service: EngramService, say: Any) -> None:
    await service.supersede(await say("with milk", 20.0))
    assert (await service.supersede(await say("black", 10.0))).superseded_at == 20.0
    assert values(await service.facts("ann")) == ["with milk"]


async def test_a_contradiction_keeps_both_with_their_dates(service: EngramService, say: Any) -> None:
    await service.supersede(await say("black", 10.0))
    await service.contradict(await say("with milk", 20.0))
    assert [(fact.value, fact.stated_at) for fact in await service.facts("ann")] == [
        ("black", 10.0),
        ("with milk", 20.0),
    ]
    await service.supersede(await say("with cream", 30.0))
    assert values(await service.facts("ann")) == ["with cream"]


async def test_only_the_users_own_word_is_a_fact(service: EngramService, say: Any) -> None:
    statement = await say("black", 10.0)
    for origin in (Origin.WEB, Origin.TOOL, Origin.ASSISTANT):
        for store in (service.supersede, service.contradict):
            with pytest.raises(UntrustedFact, match=f"what comes from {origin} is no fact about the user"):
                await store(Statement(statement.engram_id, SLOT, "black", 10.0, origin))
    assert await service.facts("ann") == []


async def test_a_search_puts_the_present_before_the_past_and_marks_it(service: EngramService, say: Any) -> None:
    old = await say("black", 10.0, text="My coffee has to be black and strong")
    await service.supersede(old)
    new = await say("white", 20.0, text="I have changed to oat milk")
    await service.supersede(new)
    await service.settled()
    now, past, *_ = (await service.search("ann", "Is my coffee black and strong?")).hits
    assert (now.engram.engram_id, now.successor_of) == (new.engram_id, old.engram_id)
    (outdated,) = past.outdated
    assert (outdated.slot, outdated.value, outdated.values, outdated.superseded_at) == (SLOT, "black", ("white",), 20.0)


async def test_an_engram_is_superseded_once_none_of_its_facts_holds(service: EngramService, say: Any) -> None:
    statement = await say("black", 10.0)
    await service.supersede(statement)
    await service.supersede(Statement(statement.engram_id, "home", "Oslo", 10.0, Origin.USER))
    coffee, home = await say("white", 20.0), await say("Lisbon", 30.0, slot="home")
    await service.supersede(coffee)
    assert (await service.get("ann", statement.engram_id)).superseded_by is None
    await service.supersede(home)
    assert (await service.get("ann", statement.engram_id)).superseded_by == home.engram_id


async def test_saying_it_again_makes_no_engram_outdated(service: EngramService, say: Any) -> None:
    first = await say("black", 10.0)
    await service.supersede(first)
    await service.supersede(await say("Black", 20.0))
    assert (await service.get("ann", first.engram_id)).superseded_by is None
    assert values(await service.facts("ann")) == ["Black"]


@pytest.fixture
def note(service: EngramService, exchange: Callable[..., EngramDraft]) -> Callable[..., Any]:
    """Ingests an exchange and notes a finding of it; returns the exchange's engram_id."""

    async def make(way: FactOperation, value: str, slot: str = SLOT, *, certain: bool = True) -> str:
        said = exchange(f"I take my coffee {value}")
        await service.ingest(said)
        await service.classify(said.engram_id, Classified(True, findings=(FactFinding(way, slot, value, certain),)))
        return said.engram_id

    return make


async def test_a_deleted_correction_brings_back_the_value_before_it(service: EngramService, note: Any) -> None:
    old = await note(FactOperation.SUPERSEDE, "black")
    new = await note(FactOperation.SUPERSEDE, "white")
    assert (await service.get("ann", old)).superseded_by == new
    await service.delete("ann", new)
    (fact,) = await service.facts("ann")
    assert (fact.value, fact.superseded_at, fact.superseded_by) == ("black", None, None)
    assert (await service.get("ann", old)).superseded_by is None


async def test_of_deleted_corrections_the_last_that_is_left_holds(service: EngramService, note: Any) -> None:
    first, second, third = [await note(FactOperation.SUPERSEDE, value) for value in ("black", "white", "green")]
    await service.delete("ann", second)
    assert values(await service.facts("ann")) == ["green"]
    assert (await service.get("ann", first)).superseded_by == third  # and no more what is gone
    old, _ = await service.fact_history("ann")
    assert old.superseded_at is not None
    await service.delete("ann", third)
    assert values(await service.facts("ann")) == ["black"]


async def test_what_was_taken_back_stays_so_where_something_was_said_since(service: EngramService, note: Any) -> None:
    first = await note(FactOperation.SUPERSEDE, "black")
    taken_back = await note(FactOperation.RETRACT, "")
    latest = await note(FactOperation.SUPERSEDE, "white")
    await service.delete("ann", taken_back)
    assert values(await service.facts("ann")) == ["white"]
    assert (await service.get("ann", first)).superseded_by == latest
    await service.delete("ann", latest)
    assert values(await service.facts("ann")) == ["black"]


async def test_a_corrected_value_that_was_taken_back_does_not_bring_back_the_one_before(
    service: EngramService, note: Any
) -> None:
    await note(FactOperation.SUPERSEDE, "black")
    second = await note(FactOperation.SUPERSEDE, "white")
    await note(FactOperation.RETRACT, "")
    await service.delete("ann", second)
    assert await service.facts("ann") == []


async def test_a_deleted_session_leaves_what_was_before_it(service: EngramService, exchange: Any, note: Any) -> None:
    await note(FactOperation.SUPERSEDE, "black")
    for way, value in (
        (FactOperation.SUPERSEDE, "white"),
        (FactOperation.SUPERSEDE, "green"),
        (FactOperation.RETRACT, "green"),
    ):
        said = exchange("so", session_id="doomed")
        await service.ingest(said)
        await service.classify(said.engram_id, Classified(True, findings=(FactFinding(way, SLOT, value),)))
    await service.delete_session("doomed")
    assert values(await service.facts("ann")) == ["black"]


async def test_what_is_not_certain_is_kept_and_takes_nobodys_place(service: EngramService, note: Any) -> None:
    await note(FactOperation.SUPERSEDE, "black")
    await note(FactOperation.SUPERSEDE, "white", certain=False)
    await note(FactOperation.CONTRADICT, "Black")  # less certain than it was
    assert [(fact.value, fact.certain) for fact in await service.facts("ann")] == [("black", True), ("white", False)]
    await note(FactOperation.SUPERSEDE, "green")
    assert values(await service.facts("ann")) == ["green"]


async def test_what_is_added_holds_beside_the_others_and_is_taken_back_alone(service: EngramService, note: Any) -> None:
    for value in ("nuts", "penicillin", "Nuts"):
        await note(FactOperation.ADD, value, "allergy")
    assert [(fact.value, fact.added) for fact in await service.facts("ann")] == [("penicillin", True), ("Nuts", True)]
    await note(FactOperation.RETRACT, "nuts", "allergy")
    assert values(await service.facts("ann")) == ["penicillin"]
    await note(FactOperation.RETRACT, "eggs", "allergy")
    assert values(await service.facts("ann")) == ["penicillin"]


async def test_facts_are_exported_with_their_history(service: EngramService, say: Any, exported: Any) -> None:
    await service.supersede(await say("black", 10.0))
    await service.supersede(await say("white", 20.0))
    lines = await exported(service, "ann")
    assert [(line["value"], line["superseded_at"]) for line in lines if line["kind"] == "fact"] == [
        ("black", 20.0), ("white", None),
    ]  # fmt: skip


Make = Callable[..., EngramDraft]


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
