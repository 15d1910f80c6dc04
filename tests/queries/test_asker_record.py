"""An asker and the record: accepted is what is on it, and what was missed is found there."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from local.bus.envelope import Envelope
from local.bus.message import ErrorInfo, Message
from local.bus.messages import ConversationRequest, ConversationResult, QueryAccepted, QueryFailed, ResponseGeneration
from local.journal.client import messages_on_record
from local.journal.messages import JournalRead, JournalRedact, JournalRedacted
from local.queries.asker import Asker, AskTimeouts, LiveQuery, Unavailable, query_envelope_id
from local.queries.errors import GeneratorSilent, NobodyAnswers, NotAccepted, QueryRefused

HASTY = AskTimeouts(first_look=0.01, last_look=0.02, while_silent=0.1)
EAGER = AskTimeouts(first_look=0.01)

Stage = Any  # of conftest.py


async def on_record(stage: Stage, kind: type[Message]) -> list[tuple[Message, Envelope]]:
    bus = await stage.bus("reader")
    await bus.ready()
    return await messages_on_record(bus, "q", [kind], 30)


async def outcome(query: LiveQuery) -> ResponseGeneration:
    return await asyncio.wait_for(query.outcome(), 30)


async def test_the_same_id_with_another_text_at_another_door_ends_only_that_one(stage: Stage) -> None:
    ours, theirs = await stage.asker(), await stage.asker()
    first = ours.ask("really?", query_id="q")
    await asyncio.wait_for(first.accepted(), 30)
    second = theirs.ask("why?", query_id="q")
    with pytest.raises(QueryRefused, match="take a new one"):
        await outcome(second)
    await stage.generator.answers(await stage.generator.hears())
    assert (await outcome(first)).answer == "Yes."


async def test_a_query_is_accepted_when_the_journal_has_it_and_is_sent_in_one_envelope_until_then(
    bare_stage: Stage,
) -> None:
    asker, stage = await bare_stage.asker(), bare_stage
    query = asker.ask("really?", query_id="q")
    first, again = await stage.generator.hears(), await stage.generator.hears()
    assert first.id == again.id == query_envelope_id("q")
    assert not query.is_accepted
    await stage.journal()
    await asyncio.wait_for(query.accepted(), 30)


async def test_a_query_that_is_on_record_is_not_sent_again(stage: Stage) -> None:
    asker = await stage.asker(HASTY)
    query = asker.ask("really?")
    await asyncio.wait_for(query.accepted(), 30)
    while not stage.generator.heard.empty():  # what was said until then
        await stage.generator.hears()
    with pytest.raises(GeneratorSilent):
        await outcome(query)
    assert stage.generator.heard.empty()


@pytest.mark.parametrize("end", ["answer", "failure"])
async def test_an_end_that_was_lost_on_its_way_is_found_on_record(stage: Stage, end: str) -> None:
    asker = await stage.asker(EAGER, deaf_to=(b"response.generation", b"query.failed"))
    query = asker.ask("really?")
    heard = await stage.generator.hears()
    if end == "answer":
        await stage.generator.answers(heard)
        assert (await outcome(query)).answer == "Yes."
    else:
        failure = QueryFailed(query_id=query.query_id, error=ErrorInfo(kind="busy", message="too many"))
        await stage.generator.says(heard, failure)
        with pytest.raises(QueryRefused, match="too many"):
            await outcome(query)


async def test_an_answer_from_before_this_door_is_given_at_once(stage: Stage) -> None:
    earlier = await stage.asker()
    first = earlier.ask("really?", query_id="q", session_id="s")
    await stage.generator.answers(await stage.generator.hears())
    await outcome(first)
    later = (await stage.asker()).ask("really?", query_id="q")
    assert (await outcome(later)).answer == "Yes."
    assert later.view.session_id == "s"


async def test_a_query_that_nobody_confirms_is_given_up_and_can_be_asked_again(bare_stage: Stage) -> None:
    asker, stage = await bare_stage.asker(AskTimeouts(until_accepted=0.1)), bare_stage
    with pytest.raises(NotAccepted, match=r"not confirmed within 0\.1 s; ask again with the same query_id"):
        await outcome(asker.ask("really?", query_id="q"))
    await stage.journal()
    patient = await stage.asker()
    query = patient.ask("really?", query_id="q")
    await asyncio.wait_for(query.accepted(), 30)
    await stage.generator.answers(await stage.generator.hears())
    assert (await outcome(query)).answer == "Yes."


async def test_a_generator_that_falls_silent_for_good_is_not_waited_for(stage: Stage) -> None:
    asker = await stage.asker(HASTY)
    query = asker.ask("really?")
    await stage.generator.says(await stage.generator.hears(), QueryAccepted(query_id=query.query_id))
    with pytest.raises(GeneratorSilent, match="the query is on record"):
        await outcome(query)


async def test_who_waits_is_told_when_nobody_can_answer_any_more(stage: Stage) -> None:
    asker = await stage.asker(AskTimeouts(first_look=0.2))
    query = asker.ask("really?")
    await stage.generator.hears()
    asker.absence = Unavailable("generator", "the generator has failed (no room)")
    with pytest.raises(NobodyAnswers, match=r"has failed \(no room\); the query is on record"):
        await outcome(query)


@pytest.mark.parametrize(
    "said",
    [
        {"value": {"query": "really?", "status": "open"}},
        {"error": ErrorInfo(kind="store_full", message="the disk is full; free some space and try again")},
    ],
    ids=["it is open", "its record cannot be read"],
)
async def test_a_generator_that_thinks_for_long_is_waited_for_as_long_as_it_says_that_it_does(
    stage: Stage, said: dict[str, Any]
) -> None:
    asker = await stage.asker(AskTimeouts(first_look=0.01, while_silent=0.05))
    bus = await stage.bus("record")
    looks: asyncio.Queue[Envelope] = asyncio.Queue()
    bus.subscribe(ConversationRequest.subject + "query", looks.put_nowait)
    await bus.ready()
    query = asker.ask("really?")
    heard = await stage.generator.hears()
    for _ in range(4):
        look = await asyncio.wait_for(looks.get(), 30)
        await bus.publish(ConversationResult(verb="query", **said), look.trace(), in_reply_to=look.id)
    await stage.generator.answers(heard)
    assert (await outcome(query)).answer == "Yes."


async def test_a_record_of_another_query_under_the_same_id_is_a_conflict(stage: Stage) -> None:
    """As when the journal was lost and the generator's record was not."""
    asker = await stage.asker(EAGER)
    bus = await stage.bus("record")
    looks: asyncio.Queue[Envelope] = asyncio.Queue()
    bus.subscribe(ConversationRequest.subject + "query", looks.put_nowait)
    await bus.ready()
    query = asker.ask("really?", query_id="q")
    look = await asyncio.wait_for(looks.get(), 30)
    record = ConversationResult(verb="query", value={"query": "why?", "status": "answered"})
    await bus.publish(record, look.trace(), in_reply_to=look.id)
    with pytest.raises(QueryRefused, match="used for another query"):
        await outcome(query)


async def test_an_answer_that_the_journal_has_lost_and_the_generator_cannot_tell_is_not_open(stage: Stage) -> None:
    asker, bus = await stage.asker(), await stage.bus("record")
    looks: asyncio.Queue[Envelope] = asyncio.Queue()
    bus.subscribe(ConversationRequest.subject + "query", looks.put_nowait)
    await bus.ready()
    query = asker.ask("really?", query_id="q")
    await stage.generator.answers(await stage.generator.hears(), "Yes, of course.")
    await outcome(query)
    assert (await bus.request(JournalRedact(mentioned='"Yes, of course."'), JournalRedacted, 5)).count == 1
    recalling = asyncio.create_task(asker.recall("q"))
    for _ in range(2):  # with what is in the journal, and alone
        look = await asyncio.wait_for(looks.get(), 30)
        failure = ConversationResult(verb="query", error=ErrorInfo(kind="store_failed", message="the disk is broken"))
        await bus.publish(failure, look.trace(), in_reply_to=look.id)
    with pytest.raises(QueryRefused, match="the disk is broken"):
        await asyncio.wait_for(recalling, 30)


async def test_looks_at_the_record_become_rarer(stage: Stage) -> None:
    patience = AskTimeouts(first_look=0.02, last_look=0.04, while_silent=0.5)
    asker = await stage.asker(patience)
    looks: list[Envelope] = []
    bus = await stage.bus("watcher")
    bus.subscribe(JournalRead.subject, looks.append)
    await bus.ready()
    with pytest.raises(GeneratorSilent):
        await outcome(asker.ask("really?"))
    assert 1 <= len(looks) <= 14  # without longer pauses it would be 25; how few there are depends on the machine


async def test_a_refusal_that_is_on_record_is_told_again(stage: Stage, asker: Asker) -> None:
    busy = QueryFailed(query_id="q", error=ErrorInfo(kind="busy", message="later, under a new id"))
    first = asker.ask("really?", query_id="q")
    await stage.generator.says(await stage.generator.hears(), busy)
    with pytest.raises(QueryRefused, match="later"):
        await outcome(first)
    second = asker.ask("really?", query_id="q")
    assert second is not first
    with pytest.raises(QueryRefused, match="later"):
        await outcome(second)


async def test_a_cancel_is_published_until_it_is_on_record(bare_stage: Stage) -> None:
    asker = await bare_stage.asker()
    cancelling = asyncio.create_task(asker.cancel("q"))
    first, again = await bare_stage.generator.hears(), await bare_stage.generator.hears()
    assert (first.subject, first.correlation_id, again.id) == ("query.cancel", "q", first.id)
    assert not cancelling.done()
    await bare_stage.journal()
    await asyncio.wait_for(cancelling, 30)
