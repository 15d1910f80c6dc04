"""Facts: a new value supersedes the old, contradictions stay side by side, and nobody but the user states any."""

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


async def test_a_statement_noted_twice_is_one_fact(service: EngramService, say: Any) -> None:
    statement = await say("black", 10.0)
    assert await service.supersede(statement) == await service.supersede(statement)
    later = await service.supersede(await say("with milk", 20.0))
    await service.supersede(statement)
    assert await service.facts("ann") == [later]


async def test_only_the_users_own_word_is_a_fact(service: EngramService, say: Any) -> None:
    statement = await say("black", 10.0)
    for origin in (Origin.WEB, Origin.TOOL, Origin.ASSISTANT):
        for store in (service.supersede, service.contradict):
            with pytest.raises(UntrustedFact, match=f"what comes from {origin} is no fact about the user"):
                await store(Statement(statement.engram_id, SLOT, "black", 10.0, origin))
    assert await service.facts("ann") == []


async def test_a_fact_of_a_deleted_engram_is_refused(service: EngramService, say: Any) -> None:
    statement = await say("black", 10.0)
    await service.delete("ann", statement.engram_id)
    with pytest.raises(NotOnRecord, match="it may have been deleted"):
        await service.supersede(statement)


async def test_secrets_are_no_facts(service: EngramService, say: Any) -> None:
    fact = await service.supersede(await say("4111 1111 1111 1111", 10.0, slot="card"))
    assert fact.value == "[card number not stored]"


async def test_facts_belong_to_their_user(service: EngramService, say: Any) -> None:
    await service.supersede(await say("black", 10.0))
    assert await service.facts("bob") == []
    assert await service.fact_history("bob") == []


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


async def test_what_was_taken_back_holds_again_once_that_is_deleted(service: EngramService, note: Any) -> None:
    await note(FactOperation.SUPERSEDE, "black")
    taken_back = await note(FactOperation.RETRACT, "")
    assert await service.facts("ann") == []
    await service.delete("ann", taken_back)
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
