"""The memory over the bus: every answer stored once, annotated, found, pinned and exported, each user's apart."""

from __future__ import annotations

import asyncio
import json
import math
from typing import Any

import pytest
from agent_stage.served import Wire

from local.bus.envelope import Trace
from local.core import failpoints
from local.critic.messages import CritiqueResult, PairwiseResult, UserFeedback
from local.memory import agent as memory_request_handler
from local.memory.messages import MemoryAnnotated, MemoryIngested, UserFacts
from local.memory.service import EngramService
from local.memory.store import EngramDraft, Ingested, engram_id

pytestmark = pytest.mark.usefixtures("stage")
IN_S = Trace("q", None, "s", None)


async def test_an_answer_is_stored_at_once_and_found(remembering: Any) -> None:
    await remembering.serve()
    await remembering.answered("q", "I like zebras", "So do I.")
    ingested = await remembering.door.hears(MemoryIngested)
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
    monkeypatch.setattr(memory_request_handler, "CATCH_UP_SECONDS", 0.01)
    gate, ingest = asyncio.Event(), EngramService.ingest

    async def held(service: EngramService, exchange: EngramDraft, *findings: Any) -> Ingested:
        await gate.wait()
        return await ingest(service, exchange, *findings)

    monkeypatch.setattr(EngramService, "ingest", held)
    await remembering.serve()
    await remembering.answered("q", "I like zebras")
    behind = await remembering.ask("search", query="zebras")
    assert behind.hits == () and memory_request_handler.BEHIND in behind.degraded
    monkeypatch.setattr(memory_request_handler, "CATCH_UP_SECONDS", 10.0)
    gate.set()
    await remembering.door.hears(MemoryIngested)
    current = await remembering.ask("search", query="zebras")
    assert current.hits and memory_request_handler.BEHIND not in current.degraded


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
    await remembering.door.hears(MemoryIngested, query_id="q")


async def test_each_answer_is_stored_once_however_often_it_is_delivered(remembering: Any) -> None:
    served = await remembering.serve()
    for number in range(20):
        await remembering.answered(f"q{number}", f"Number {number}", session=f"s{number % 3}")
    await remembering.door.hears(MemoryIngested, 5)
    await served.kill()  # what it had in hand is given to the next one again
    await remembering.serve()
    await remembering.door.until(lambda: len({each.query_id for each in remembering.door.of(MemoryIngested)}) == 20)
    await remembering.answered("q3", "Number 3")  # the same envelope again
    engrams = (await remembering.ask("list", limit=200)).engrams
    assert sorted(engram.query_id for engram in engrams) == sorted(f"q{number}" for number in range(20))


async def test_another_respondents_answer_is_stored_and_not_shown(remembering: Any) -> None:
    await remembering.serve()
    await remembering.answered("q", "I like zebras", respondent_id="B")
    ingested = await remembering.door.hears(MemoryIngested, respondent_id="B")
    assert (await remembering.ask("search", query="zebras")).hits == ()
    assert (await remembering.ask("list")).engrams == ()
    assert (await remembering.ask("get", engram_id=ingested.engram_id)).engrams[0].respondent_id == "B"


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
    await remembering.door.hears(MemoryAnnotated, what="sentiment")
    await remembering.answered("last", "Coffee?")
    await remembering.door.hears(MemoryIngested, query_id="last")  # so all of them have been dealt with
    said = [(each.respondent_id, each.what, each.value) for each in remembering.door.of(MemoryAnnotated)]
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
    await remembering.door.hears(MemoryAnnotated)
    await remembering.answered("last", "Coffee?")
    await remembering.door.hears(MemoryIngested, query_id="last")
    assert [(each.what, each.value) for each in remembering.door.of(MemoryAnnotated)] == [("sentiment", -1.0)]
    result = await remembering.ask("get", engram_id=engram_id("q", "A"))
    assert (result.engrams[0].sentiment, [change.what for change in result.changes]) == (-1, ["sentiment"])


async def test_a_pin_is_on_record_with_the_answer_that_it_is_of(remembering: Any) -> None:
    await remembering.serve()
    await remembering.answered("q", "Tea?")
    await remembering.door.hears(MemoryIngested)
    for verb in ("pin", "unpin"):
        await remembering.ask(verb, engram_id=engram_id("q", "A"))
    said = [(each.what, each.value) for each in remembering.door.of(MemoryAnnotated)]
    assert said == [("pinned", 1.0), ("pinned", 0.0)]
    assert {envelope.correlation_id for envelope in remembering.door.envelopes(MemoryAnnotated)} == {"q"}


async def test_a_judgement_without_a_result_and_one_of_an_unknown_answer_change_nothing(remembering: Any) -> None:
    await remembering.serve()
    await remembering.answered("q", "Tea?")
    for judgement in (
        CritiqueResult(query_id="q", score=None, status="unparsed"),
        PairwiseResult(query_id="q", winner=None, status="failed"),
        UserFeedback(query_id="unknown", rating=1, rated_at=20.0),
    ):
        await remembering.publish(judgement, IN_S)
    await remembering.publish(UserFeedback(query_id="q", rating=1, rated_at=20.0), IN_S)
    await remembering.publish(UserFeedback(query_id="q", rating=None, rated_at=30.0), IN_S)
    await remembering.door.hears(MemoryAnnotated, 2)
    assert [each.value for each in remembering.door.of(MemoryAnnotated)] == [1.0, None]


async def test_pins_become_lines_and_everybody_hears_of_each_change(remembering: Any) -> None:
    served = await remembering.serve()
    await remembering.answered("q", "I like zebras", user="ann")
    ingested = await remembering.door.hears(MemoryIngested)
    pinned = await remembering.ask("pin", user="ann", engram_id=ingested.engram_id)
    assert pinned.engrams[0].pinned
    facts = await remembering.door.hears(UserFacts)
    assert facts.of_user == "ann"
    assert (await remembering.ask("facts", user="ann")).lines == ("I like zebras",)
    assert (await remembering.ask("facts")).lines == ()
    await served.stop()
    await remembering.serve()
    await remembering.door.hears(UserFacts, 2, of_user="ann")  # as it announces itself
    await remembering.ask("unpin", user="ann", engram_id=ingested.engram_id)
    await remembering.door.hears(UserFacts, 3, of_user="ann")
    assert (await remembering.ask("facts", user="ann")).lines == ()


async def test_a_pin_for_which_there_is_no_room_is_a_conflict_and_nobody_hears_of_it(remembering: Any) -> None:
    await remembering.serve()
    for number in range(7):
        await remembering.answered(f"q{number}", f"{number} {'x' * 400}")
    await remembering.door.hears(MemoryIngested, 7)
    *fitting, last = [
        await remembering.ask("pin", engram_id=engram_id(f"q{number}", "A")) for number in range(7)
    ]  # fmt: skip
    assert [result.error for result in fitting] == [None] * 6
    assert (last.error.kind, last.error.message[:8]) == ("conflict", "no room:")
    await remembering.door.hears(UserFacts, 6)
    facts = await remembering.ask("facts")
    assert (len(facts.lines), facts.left_out) == (6, ())
    assert len(remembering.door.of(UserFacts)) == 6


async def test_an_export_is_everything_in_pages(remembering: Any) -> None:
    await remembering.serve()
    for number in range(30):
        await remembering.answered(f"q{number}", f"Number {number}", "x" * 4_000, session=f"s{number}")
    await remembering.door.hears(MemoryIngested, 30)
    lines, cursor, pages = list[str](), "", 0
    while cursor or not pages:
        page = await remembering.ask("export", cursor=cursor)
        lines, cursor, pages = [*lines, *page.lines], page.cursor, pages + 1
        assert sum(map(len, page.lines)) < 60_000
    assert len({json.loads(line)["query_id"] for line in lines}) == len(lines) == 30
    assert pages > 2


async def test_long_texts_are_cut_so_that_a_result_travels_in_a_frame(remembering: Any) -> None:
    await remembering.serve()
    for number in range(40):
        await remembering.answered(f"q{number}", f"Zebra {number}", "ö" * 40_000, session=f"s{number}")
    await remembering.door.hears(MemoryIngested, 40)
    page = await remembering.ask("list", limit=100)
    listed = page.engrams
    assert 10 < len(listed) < 40
    assert page.more_before == listed[-1].asked_at
    assert listed[0].answer.endswith("ö … (cut)")
    (whole,) = (await remembering.ask("get", engram_id=listed[0].engram_id)).engrams
    assert len(listed[0].answer) < len(whole.answer) < 32_000
    assert (listed[0].cut, whole.cut) == (True, True)
    exported = json.loads((await remembering.ask("export")).lines[0])
    assert exported["answer"] == "ö" * 40_000


@pytest.mark.parametrize("limit", [1, 2, 3, 10])
async def test_the_last_page_says_that_it_is_the_last(remembering: Any, limit: int) -> None:
    await remembering.serve()
    for number in range(3):
        await remembering.answered(f"q{number}", f"Zebra {number}")
        await remembering.door.hears(MemoryIngested, number + 1)
    pages = [await remembering.ask("list", limit=limit)]
    while (before := pages[-1].more_before) is not None:
        pages.append(await remembering.ask("list", limit=limit, before=before))
        assert pages[-1] == await remembering.ask("list", limit=limit, cursor=pages[-2].cursor)
    assert pages[-1].cursor == ""
    assert [engram.query for page in pages for engram in page.engrams] == ["Zebra 2", "Zebra 1", "Zebra 0"]
    assert len(pages) == math.ceil(3 / limit)


async def test_a_cursor_that_is_none_is_an_error_that_says_so(remembering: Any) -> None:
    await remembering.serve()
    error = (await remembering.ask("list", cursor="yesterday")).error
    assert error is not None and (error.kind, "yesterday" in error.message) == ("invalid", True)


async def test_what_cannot_be_answered_is_an_error_that_says_why(remembering: Any) -> None:
    await remembering.serve()
    await remembering.answered("q", "I like zebras", user="ann")
    ingested = await remembering.door.hears(MemoryIngested)
    for verb in ("get", "pin", "unpin", "delete"):
        error = (await remembering.ask(verb, engram_id=ingested.engram_id, user="bob")).error
        assert error is not None
        assert (error.kind, error.message) == ("not_found", f"there is no engram {ingested.engram_id}")
    error = (await remembering.ask("export", cursor="nonsense")).error
    assert error is not None
    assert error.kind == "invalid"


LAMP, WHICH_LAMP = "We choose the green enamel lamp for the hallway", "Which enamel lamp did we choose for the hallway?"


async def test_an_exchange_of_another_conversation_is_recalled_where_it_clearly_fits(remembering: Any) -> None:
    await remembering.serve()
    await remembering.answered("q", LAMP, "Green enamel it is.", user="ann")
    await remembering.door.hears(MemoryIngested)
    (hit,) = (await remembering.ask("recall", query=WHICH_LAMP, limit=3, user="ann")).hits
    assert (hit.engram_id, hit.query, hit.answer) == (engram_id("q", "A"), LAMP, "Green enamel it is.")
    assert (hit.origin, hit.tainted) == ("assistant", False) and hit.asked_at > 0
    for others in ({"query": "Suggest a cake for my birthday"}, {"not_session": "s"}, {"user": "bob"}):
        assert (await remembering.ask("recall", **{"query": WHICH_LAMP, "user": "ann"} | others)).hits == ()
    await remembering.ask("delete", engram_id=hit.engram_id, user="ann")
    assert (await remembering.ask("recall", query=WHICH_LAMP, user="ann")).hits == ()


async def test_an_incognito_conversation_is_not_recalled(remembering: Any) -> None:
    await remembering.serve()
    await remembering.answered("q", LAMP, incognito=True)
    await remembering.answered("q2", "The train is late", session="t")
    await remembering.door.hears(MemoryIngested, query_id="q2")
    assert (await remembering.ask("recall", query=WHICH_LAMP)).hits == ()


async def test_a_recall_does_not_wait_for_a_memory_that_is_behind(
    remembering: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_request_handler, "CATCH_UP_SECONDS", 60)
    gate = asyncio.Event()

    async def held(service: EngramService, exchange: EngramDraft) -> Ingested:
        await gate.wait()
        return Ingested.NOT_KEPT

    monkeypatch.setattr(EngramService, "ingest", held)
    await remembering.serve()
    await remembering.answered("q", LAMP)
    assert (await remembering.ask("recall", query=WHICH_LAMP)).error is None
    gate.set()
