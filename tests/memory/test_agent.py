"""The memory over the bus: every answer stored once, annotated, found, pinned and exported, each user's apart."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from agent_stage.served import Wire

from local.bus.envelope import Trace
from local.bus.messages import QueryReceived
from local.core import failpoints
from local.core.errors import StoreFailed
from local.critic.messages import CritiqueResult, PairwiseResult, UserFeedback
from local.memory import agent as memory_agent
from local.memory.messages import MemoryAnnotated, MemoryIngested, MemoryRecalled, UserFacts, engram_id
from local.memory.service import EngramService
from local.memory.store import EngramDraft, Ingested

pytestmark = pytest.mark.usefixtures("stage")
IN_S = Trace("q", None, "s", None)


async def test_an_answer_is_stored_at_once_and_found(remembering: Any) -> None:
    await remembering.serve()
    await remembering.answered("q", "I like zebras", "So do I.")
    ingested = await remembering.frontend.hears(MemoryIngested)
    assert (ingested.engram_id, ingested.query_id) == (engram_id("q", "A"), "q")
    result = await remembering.ask("search", query="zebras")
    (hit,) = result.hits
    assert (hit.query, hit.answer, hit.origin, hit.parts["words"]) == (
        "I like zebras", "So do I.", "assistant", 1.0,
    )  # fmt: skip
    assert result.degraded  # only the words were searched
    nothing = await remembering.ask("search", query="zebra lion camel horse bear wolf cat dog hen cow")
    assert [(near.engram_id, near.relevance < near.parts["threshold"]) for near in nothing.nearest] == [
        (ingested.engram_id, True)
    ]
    assert (await remembering.ask("search", query="zebras", not_session="s")).hits == ()
    assert (await remembering.ask("search", query="zebras", user="bob")).hits == ()


async def test_whoever_has_an_answer_finds_it_in_the_memory(remembering: Any) -> None:
    await remembering.serve()
    for number, word in enumerate(("zebras", "lions", "camels")):
        await remembering.answered(f"q{number}", f"I like {word}")
        (hit,) = (await remembering.ask("search", query=word)).hits
        assert hit.query == f"I like {word}"
        assert len((await remembering.ask("list")).engrams) == number + 1


async def test_a_memory_that_is_behind_answers_with_what_it_has_and_says_so(
    remembering: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_agent, "CATCH_UP_SECONDS", 0.01)
    gate, ingest = asyncio.Event(), EngramService.ingest

    async def held(service: EngramService, exchange: EngramDraft, *findings: Any) -> Ingested:
        await gate.wait()
        return await ingest(service, exchange, *findings)

    monkeypatch.setattr(EngramService, "ingest", held)
    await remembering.serve()
    await remembering.answered("q", "I like zebras")
    behind = await remembering.ask("search", query="zebras")
    assert behind.hits == () and memory_agent.BEHIND in behind.degraded
    monkeypatch.setattr(memory_agent, "CATCH_UP_SECONDS", 10.0)
    gate.set()
    await remembering.frontend.hears(MemoryIngested)
    current = await remembering.ask("search", query="zebras")
    assert current.hits and memory_agent.BEHIND not in current.degraded


async def test_what_is_stored_is_told_though_the_process_dies_before_anybody_has_heard_it(
    remembering: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = await remembering.serve()
    with monkeypatch.context() as patch:
        send = Wire.send
        patch.setattr(Wire, "send", lambda wire, frame: frame.startswith(b"memory.ingested") or send(wire, frame))
        await remembering.answered("q", "I like zebras")
        while not (await remembering.ask("list")).engrams:
            pass
        await served.kill()
    await remembering.serve()
    await remembering.frontend.hears(MemoryIngested, query_id="q")


async def test_each_answer_is_stored_once_however_often_it_is_delivered(remembering: Any) -> None:
    served = await remembering.serve()
    for number in range(8):
        await remembering.answered(f"q{number}", f"Number {number}", session=f"s{number % 3}")
    await remembering.frontend.hears(MemoryIngested, 3)
    await served.kill()  # what it had in hand is given to the next one again
    await remembering.serve()
    await remembering.frontend.until(
        lambda: len({each.query_id for each in remembering.frontend.of(MemoryIngested)}) == 8
    )
    await remembering.answered("q3", "Number 3")  # the same envelope again
    engrams = (await remembering.ask("list", limit=200)).engrams
    assert sorted(engram.query_id for engram in engrams) == sorted(f"q{number}" for number in range(8))


async def test_judgements_are_noted_with_their_history(remembering: Any) -> None:
    await remembering.serve()
    for respondent_id in "AB":
        await remembering.answered("q", "Tea?", respondent_id=respondent_id)
    for judgement in (
        CritiqueResult(query_id="q", score=4, expected=4.25, status="graded"),
        CritiqueResult(query_id="q", respondent_id="B", score=2, status="graded"),
        PairwiseResult(query_id="q", winner="A", status="graded"),
        UserFeedback(query_id="q", rating=1, rated_at=20.0),
        UserFeedback(query_id="q", rating=-1, rated_at=10.0),
    ):
        await remembering.publish(judgement, IN_S)
    await remembering.frontend.hears(MemoryAnnotated, what="sentiment")
    await remembering.answered("last", "Coffee?")
    await remembering.frontend.hears(MemoryIngested, query_id="last")  # so all of them have been dealt with
    said = [(each.respondent_id, each.what, each.value) for each in remembering.frontend.of(MemoryAnnotated)]
    assert said == [
        ("A", "score", 4.25), ("B", "score", 2.0), ("A", "winner", "A"), ("B", "winner", "A"), ("A", "sentiment", 1.0),
    ]  # fmt: skip
    result = await remembering.ask("get", engram_id=engram_id("q", "A"))
    (engram,) = result.engrams
    assert (engram.score, engram.sentiment, engram.winner) == (4.25, 1, "A")
    assert [change.what for change in result.changes] == ["score", "winner", "sentiment"]


@pytest.mark.parametrize("killed", [False, True])
async def test_a_rating_that_is_on_record_before_its_answer_is_noted_when_that_comes(
    remembering: Any, monkeypatch: pytest.MonkeyPatch, killed: bool
) -> None:
    served, passed = await remembering.serve(), list[str]()

    def reach(name: str) -> None:
        passed.append(name)
        if killed and name == "memory.told" and passed.count(name) == 1:
            served.die()
            raise asyncio.CancelledError  # before the rating is told

    monkeypatch.setattr(failpoints, "reach", reach)
    await remembering.publish(UserFeedback(query_id="q", rating=-1, rated_at=10.0), IN_S)
    await remembering.answered("q", "Tea?")
    if killed:
        await served.dead()
        await remembering.serve()
    await remembering.frontend.hears(MemoryAnnotated)
    await remembering.answered("last", "Coffee?")
    await remembering.frontend.hears(MemoryIngested, query_id="last")
    assert [(each.what, each.value) for each in remembering.frontend.of(MemoryAnnotated)] == [("sentiment", -1.0)]
    result = await remembering.ask("get", engram_id=engram_id("q", "A"))
    assert (result.engrams[0].sentiment, [change.what for change in result.changes]) == (-1, ["sentiment"])


async def test_pins_become_lines_and_everybody_hears_of_each_change(remembering: Any) -> None:
    served = await remembering.serve()
    await remembering.answered("q", "I like zebras", user="ann")
    ingested = await remembering.frontend.hears(MemoryIngested)
    pinned = await remembering.ask("pin", user="ann", engram_id=ingested.engram_id)
    assert pinned.engrams[0].pinned
    facts = await remembering.frontend.hears(UserFacts)
    assert facts.of_user == "ann"
    assert (await remembering.ask("facts", user="ann")).lines == ("I like zebras",)
    assert (await remembering.ask("facts")).lines == ()
    await served.stop()
    await remembering.serve()
    await remembering.frontend.hears(UserFacts, 2, of_user="ann")  # as it announces itself
    await remembering.ask("unpin", user="ann", engram_id=ingested.engram_id)
    await remembering.frontend.hears(UserFacts, 3, of_user="ann")
    assert (await remembering.ask("facts", user="ann")).lines == ()


LAMP, WHICH_LAMP = "We choose the green enamel lamp for the hallway", "Which enamel lamp did we choose for the hallway?"


async def test_an_exchange_of_another_conversation_is_recalled_where_it_clearly_fits(remembering: Any) -> None:
    await remembering.serve()
    await remembering.answered("q", LAMP, "Green enamel it is.", user="ann")
    await remembering.frontend.hears(MemoryIngested)
    (hit,) = await remembering.recalled(WHICH_LAMP, user="ann")
    assert (hit.engram_id, hit.query, hit.answer) == (engram_id("q", "A"), LAMP, "Green enamel it is.")
    assert (hit.origin, hit.tainted) == ("assistant", False) and hit.asked_at > 0
    for others in ({"query": "Suggest a cake for my birthday"}, {"session": "s"}, {"user": "bob"}):
        assert await remembering.recalled(**{"query": WHICH_LAMP, "user": "ann"} | others) == ()
    for private in ({"incognito": True}, {"history": ()}):
        asked = QueryReceived(query_id="private", query=WHICH_LAMP, **private)
        await remembering.publish(asked, Trace("private", None, "private", "ann"))
    await remembering.ask("delete", engram_id=hit.engram_id, user="ann")
    assert await remembering.recalled(WHICH_LAMP, user="ann") == ()
    assert "private" not in {each.query_id for each in remembering.frontend.of(MemoryRecalled)}


async def test_while_many_ask_exchanges_are_recalled_by_their_words_alone(
    remembering: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    recall, patience = EngramService.recall, list[float | None]()

    async def noted(service: EngramService, *what: Any, **options: Any) -> Any:
        patience.append(options["seconds"])
        return await recall(service, *what, **options)

    monkeypatch.setattr(EngramService, "recall", noted)
    monkeypatch.setattr(memory_agent, "MANY_SECONDS", 3600)
    await remembering.serve()
    await remembering.answered("q", LAMP)
    await remembering.frontend.hears(MemoryIngested)
    for _ in range(memory_agent.MANY_ASKED):
        assert await remembering.recalled(WHICH_LAMP)
    monkeypatch.setattr(memory_agent, "MANY_SECONDS", 0)
    assert await remembering.recalled(WHICH_LAMP)
    assert patience == [None] * (memory_agent.MANY_ASKED - 1) + [0, None]


async def test_a_recall_that_fails_is_told_to_have_found_nothing(
    remembering: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def failing(service: EngramService, *what: Any, **options: Any) -> Any:
        raise StoreFailed("the disk is away")

    monkeypatch.setattr(EngramService, "recall", failing)
    await remembering.serve()
    assert await remembering.recalled(WHICH_LAMP) == ()


async def test_what_cannot_be_answered_is_an_error_that_says_why(remembering: Any) -> None:
    await remembering.serve()
    await remembering.answered("q", "I like zebras", user="ann")
    ingested = await remembering.frontend.hears(MemoryIngested)
    for verb in ("get", "pin", "unpin", "delete"):
        error = (await remembering.ask(verb, engram_id=ingested.engram_id, user="bob")).error
        assert (error.kind, error.message) == ("not_found", f"there is no engram {ingested.engram_id}")
    for verb in ("export", "list"):
        error = (await remembering.ask(verb, cursor="nonsense")).error
        assert (error.kind, "nonsense" in error.message) == ("invalid", True)


async def test_long_texts_are_cut_so_that_a_page_travels_in_a_frame_and_the_last_page_says_so(remembering: Any) -> None:
    await remembering.serve()
    for number in range(15):
        await remembering.answered(f"q{number}", f"Zebra {number}", "ö" * 40_000, session=f"s{number}")
    await remembering.frontend.hears(MemoryIngested, 15)
    pages = [await remembering.ask("list", limit=100)]
    while (before := pages[-1].more_before) is not None:
        pages.append(await remembering.ask("list", limit=3, before=before))
        assert pages[-1] == await remembering.ask("list", limit=3, cursor=pages[-2].cursor)
    listed = [engram for page in pages for engram in page.engrams]
    assert [engram.query for engram in listed] == [f"Zebra {number}" for number in reversed(range(15))]
    assert 10 < len(pages[0].engrams) < 15 and pages[-1].cursor == ""
    assert listed[0].answer.endswith("ö … (cut)")
    (whole,) = (await remembering.ask("get", engram_id=listed[0].engram_id)).engrams
    assert len(listed[0].answer) < len(whole.answer) < 32_000
    assert (listed[0].cut, whole.cut) == (True, True)
    exported = json.loads((await remembering.ask("export")).lines[0])
    assert exported["answer"] == "ö" * 40_000
