"""Facts: a new value supersedes the old, contradictions stay side by side, and nobody but the user states any."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from local.core.errors import NotOnRecord, UntrustedFact
from local.memory.facts import Classified, FactFinding, FactOperation
from local.memory.service import EngramService
from local.memory.store import EngramDraft, Origin, StatedFact, Statement

Make = Callable[..., EngramDraft]
SLOT = "coffee, how taken"
WAYS = {"=": FactOperation.SUPERSEDE, "+": FactOperation.ADD, "?": FactOperation.CONTRADICT, "-": FactOperation.RETRACT}


def found(value: str, way: FactOperation = FactOperation.SUPERSEDE, slot: str = SLOT, **fields: Any) -> Classified:
    return Classified(True, "statement", ("coffee",), (FactFinding(way, slot, value, **fields),))


def values(facts: list[StatedFact]) -> list[str]:
    return [fact.value for fact in facts]


@pytest.fixture
def say(service: EngramService, exchange: Make) -> Callable[..., Any]:
    """Ingests an exchange and makes the statement of it."""

    async def make(value: str, stated_at: float, slot: str = SLOT, text: str = "") -> Statement:
        said = exchange(text or f"I take my coffee {value}")
        await service.ingest(said)
        return Statement(said.engram_id, slot, value, stated_at, Origin.USER)

    return make


@pytest.fixture
def note(service: EngramService, exchange: Make) -> Callable[..., Any]:
    """Ingests an exchange and notes what was found in it."""

    async def make(classified: Classified, **fields: Any) -> EngramDraft:
        said = exchange("I take my coffee so", **fields)
        await service.ingest(said)
        await service.classify(said.engram_id, classified)
        return said

    return make


@pytest.mark.parametrize(
    ("story", "holds"),
    [
        ("=black =white", ["white"]),
        ("=black =white ?green", ["white", "green"]),
        ("=black ?white =cream", ["cream"]),
        ("=black =Black", ["Black"]),
        ("=black -", []),
        ("=black ~white", ["black", "white"]),  # what is not certain replaces nothing
        ("=black ~white =green", ["green"]),
        ("=black ?Black", ["black"]),  # less certain than it was
        ("+nuts +eggs +Nuts", ["eggs", "Nuts"]),
        ("+nuts +eggs -nuts", ["eggs"]),
        ("+nuts -milk", ["nuts"]),
        # A number deletes the exchange in that place.
        ("=black =white 2", ["black"]),
        ("=black =white =green 2", ["green"]),
        ("=black =white =green 2 3", ["black"]),
        ("=black - 2", ["black"]),
        ("=black - =white 2", ["white"]),
        ("=black - =white 2 3", ["black"]),
        ("=black =white - 2", []),
    ],
)
async def test_what_holds_after_what_was_said_and_deleted(
    service: EngramService, note: Any, story: str, holds: list[str]
) -> None:
    said: list[EngramDraft] = []
    for step in story.split():
        if step.isdigit():
            await service.delete("ann", said[int(step) - 1].engram_id)
        else:
            way = WAYS.get(step[0], FactOperation.SUPERSEDE)
            said.append(await note(found(step[1:], way, certain=step[0] != "~")))
    assert values(await service.facts("ann")) == holds
    assert await service.facts("bob") == []


async def test_the_history_says_what_replaced_a_value_and_when(service: EngramService, say: Any, exported: Any) -> None:
    old = await service.supersede(await say("black", 10.0))
    new = await service.supersede(await say("with milk", 20.0))
    first, second = await service.fact_history("ann")
    assert (first.fact_id, first.superseded_by, first.superseded_at) == (old.fact_id, new.fact_id, 20.0)
    assert second == new
    assert (await service.supersede(await say("late", 15.0))).superseded_at == 20.0  # stated earlier, noted later
    lines = [line for line in await exported(service, "ann") if line["kind"] == "fact"]
    assert {line["value"]: line["superseded_at"] for line in lines} == {"black": 20.0, "with milk": None, "late": 20.0}


async def test_only_the_users_own_word_is_a_fact(service: EngramService, say: Any) -> None:
    statement = await say("black", 10.0)
    for origin in (Origin.WEB, Origin.TOOL, Origin.ASSISTANT):
        for store in (service.supersede, service.contradict):
            with pytest.raises(UntrustedFact, match=f"content from {origin} is not a fact about the user"):
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
    again, coffee, home = await say("Black", 15.0), await say("white", 20.0), await say("Lisbon", 30.0, slot="home")
    for later, successor in ((again, None), (coffee, None), (home, home.engram_id)):
        await service.supersede(later)
        assert (await service.get("ann", statement.engram_id)).superseded_by == successor
    await service.delete("ann", home.engram_id)
    assert (await service.get("ann", statement.engram_id)).superseded_by is None


async def test_a_deleted_session_leaves_what_was_before_it(service: EngramService, note: Any) -> None:
    await note(found("black"))
    for classified in (found("white"), found("green"), found("green", FactOperation.RETRACT)):
        await note(classified, session_id="doomed")
    await service.delete_session("doomed")
    assert values(await service.facts("ann")) == ["black"]


async def test_exchanges_are_classified_oldest_first_once_and_those_of_other_respondents_and_jobs_never(
    service: EngramService, exchange: Make
) -> None:
    first, second = exchange("One"), exchange("Two")
    for each in (exchange("Zero", respondent_id="B"), exchange("Job", by_user=False), first, second):
        await service.ingest(each)
    for expected in (first, second):
        (pending,) = await service.unclassified(1)
        assert pending.engram_id == expected.engram_id
        await service.classify(pending.engram_id, found("black") if expected is first else Classified(False))
    assert await service.unclassified(1) == []
    status = await service.status()
    assert (status.unclassified, status.unparsed) == (0, 1)
    assert values(await service.classify(first.engram_id, found("white"))) == ["black"]
    engram = await service.get("ann", first.engram_id)
    assert (engram.intent, engram.entities) == ("statement", ("coffee",))
    await service.delete("ann", first.engram_id)
    with pytest.raises(NotOnRecord, match="it may have been deleted"):
        await service.classify(first.engram_id, found("black"))


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


async def test_an_answer_made_of_an_old_fact_is_marked_when_that_is_replaced_or_taken_back(
    service: EngramService, note: Any
) -> None:
    said = await note(found("black"))
    echo = await note(Classified(True), answer="It was zebrablack", recalled=(said.engram_id,))
    for classified, now in ((found("white"), ("white",)), (found("", FactOperation.RETRACT), ())):
        await note(classified)
        hits = (await service.search("ann", "zebrablack")).hits
        (outdated,) = next(hit.outdated for hit in hits if hit.engram.engram_id == echo.engram_id)
        assert (outdated.value, outdated.values) == ("black", now)
