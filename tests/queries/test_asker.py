"""An asker against a real journal and a generator that is played by hand: queries, their outcomes, and the record."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from local.bus.envelope import Envelope
from local.bus.message import ErrorInfo
from local.bus.messages import (
    ConversationRequest,
    ConversationResult,
    QueryAccepted,
    QueryFailed,
    QueryReceived,
    ResponseGeneration,
)
from local.core.errors import FrameTooLarge, RequestTimeout
from local.critic.messages import UserFeedback
from local.journal.client import messages_on_record
from local.journal.messages import JournalRedact, JournalRedacted
from local.permissions.messages import ApprovalDecision, ApprovalRequest
from local.queries import asker as module
from local.queries.asker import Asker, AskTimeouts, LiveQuery, Unavailable, query_envelope_id
from local.queries.errors import AskerStopping, GeneratorSilent, NobodyAnswers, NotAccepted, QueryDeleted, QueryRefused
from local.queries.session import LoCALSession

HASTY = AskTimeouts(first_look=0.01, last_look=0.02, while_silent=0.1)
EAGER = AskTimeouts(first_look=0.01)

Stage = Any  # of conftest.py


async def outcome(query: LiveQuery) -> ResponseGeneration:
    return await asyncio.wait_for(query.outcome(), 90)


async def test_a_query_is_published_and_its_answer_collected(stage: Stage, asker: Asker) -> None:
    query = asker.ask("really?", session_id="s", user_id="u", history=[{"role": "user", "content": "hi"}])
    heard = await stage.generator.hears()
    asked = QueryReceived.decode(heard.payload)
    assert (asked.query, asked.history) == ("really?", ({"role": "user", "content": "hi"},))
    assert (heard.correlation_id, heard.session_id, heard.user_id) == (query.query_id, "s", "u")
    await stage.generator.answers(heard)
    assert (await outcome(query)).answer == "Yes."


async def test_the_same_id_joins_the_query_while_it_runs_and_after_it(stage: Stage, asker: Asker) -> None:
    first = asker.ask("really?", query_id="q")
    assert asker.ask("really?", query_id="q") is first
    await stage.generator.answers(await stage.generator.hears())
    await outcome(first)
    while not stage.generator.heard.empty():  # a busy machine may have had it said again until then
        await stage.generator.hears()
    assert asker.ask("really?", query_id="q") is first
    assert stage.generator.heard.empty()


async def test_the_same_id_with_another_text_is_refused_here(asker: Asker) -> None:
    asker.ask("really?", query_id="q")
    with pytest.raises(QueryRefused) as refused:
        asker.ask("why?", query_id="q")
    assert refused.value.kind == "conflict"


async def test_a_query_asked_again_at_once_is_not_put_away_with_the_refused_one(stage: Stage, asker: Asker) -> None:
    first = asker.ask("really?", query_id="q")
    await stage.generator.hears()
    first.refuse(QueryRefused("busy", "later"))
    second = asker.ask("really?", query_id="q")
    await stage.generator.answers(await stage.generator.hears())
    assert (await outcome(second)).answer == "Yes."


async def test_a_query_too_large_for_the_bus_is_refused(asker: Asker) -> None:
    with pytest.raises(FrameTooLarge):
        await outcome(asker.ask("x" * 1_100_000))


async def test_a_bus_that_breaks_before_the_query_left_delays_it(stage: Stage, asker: Asker) -> None:
    stage.hub.down()
    query = asker.ask("really?")
    stage.hub.up()
    await stage.generator.answers(await stage.generator.hears())
    await outcome(query)


async def test_stopping_tells_everybody_who_waits_and_takes_nothing_more(asker: Asker) -> None:
    query = asker.ask("really?")
    asker.stop()
    with pytest.raises(AskerStopping):
        await outcome(query)
    with pytest.raises(AskerStopping):
        asker.ask("why?")


async def test_only_the_last_ended_queries_are_kept(
    stage: Stage, asker: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "KEPT_ENDED", 2)
    running = asker.ask("really?")
    await stage.generator.hears()
    ended = []
    for _ in range(3):
        query = asker.ask("really?")
        ended.append(query.query_id)
        await stage.generator.answers(await stage.generator.hears(query.query_id))
        await outcome(query)
    for _ in range(2):  # commits: by the second one the asker of the last has put it away
        await asker.cancel("none")
    assert [asker.live(query_id) is not None for query_id in ended] == [False, True, True]
    assert asker.live(running.query_id) is running


async def test_too_many_open_queries_are_refused(asker: Asker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_OPEN", 1)
    asker.ask("really?")
    with pytest.raises(QueryRefused) as refused:
        asker.ask("why?")
    assert refused.value.kind == "busy"


async def test_a_malformed_answer_is_counted_and_the_session_goes_on(stage: Stage, asker: Asker) -> None:
    query = asker.ask("really?", query_id="q")
    heard = await stage.generator.hears()
    bad: Any = heard._replace(
        subject="generation.token", id="bad", payload=b'{"query_id": 7}', sender="x", instance="x"
    )
    stage.hub.forward(bad.encode())
    await stage.generator.answers(heard)
    await outcome(query)
    assert asker._bus.counters["malformed"] == 1


async def test_a_query_is_told_what_its_agents_ask_and_what_was_decided_and_no_other_user_s(
    stage: Stage, asker: Asker
) -> None:
    query = asker.ask("really?", query_id="q", user_id="u")
    heard = await stage.generator.hears()
    told = {"query_id": "task", "call_id": "task:0:0", "session_id": "agent", "tool": "write_file"}
    asked = ApprovalRequest(
        **told, args={}, level="L1", agent="builder", root_query_id="q", root_session_id="q", asked_at=1, expires_at=2
    )
    decided = ApprovalDecision(**told, decision="deny", by="page", decided_at=2)
    for user_id in ("another", "u"):
        await stage.generator.says(Envelope("", "", "", "", 1, "task", b"", user_id=user_id), asked, decided)
    await stage.generator.answers(heard)
    await outcome(query)
    names = [event.kind for event in query.events.after(0)]
    assert [name for name in names if name in ("approval", "decision")] == ["approval", "decision"]


# The record


async def test_the_same_id_with_another_text_at_another_frontend_ends_only_that_one(stage: Stage) -> None:
    ours, theirs = await stage.asker(), await stage.asker()
    first = ours.ask("really?", query_id="q")
    await asyncio.wait_for(first.accepted(), 90)
    second = theirs.ask("why?", query_id="q")
    with pytest.raises(QueryRefused, match="choose a new one"):
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
    await asyncio.wait_for(query.accepted(), 90)


async def test_a_query_that_is_on_record_is_not_sent_again(stage: Stage) -> None:
    asker = await stage.asker(HASTY)
    query = asker.ask("really?")
    await asyncio.wait_for(query.accepted(), 90)
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


async def test_an_answer_from_before_this_frontend_is_given_at_once(stage: Stage) -> None:
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
    await asyncio.wait_for(query.accepted(), 90)
    await stage.generator.answers(await stage.generator.hears())
    assert (await outcome(query)).answer == "Yes."


async def test_a_generator_that_falls_silent_is_not_waited_for_though_the_query_is_on_record(stage: Stage) -> None:
    asker, bus = await stage.asker(AskTimeouts(first_look=0.01, while_silent=0.1)), await stage.bus("record")
    unknown = ConversationResult(verb="query", error=ErrorInfo(kind="not_found", message="no such query"))

    async def answer(look: Envelope) -> None:
        await bus.publish(unknown, look.trace(), in_reply_to=look.id)

    answers: list[asyncio.Task[None]] = []
    bus.subscribe(ConversationRequest.subject + "query", lambda look: answers.append(asyncio.create_task(answer(look))))
    await bus.ready()
    query = asker.ask("really?")
    await stage.generator.says(await stage.generator.hears(), QueryAccepted(query_id=query.query_id))
    with pytest.raises(GeneratorSilent, match="the query is recorded"):
        await outcome(query)
    await asyncio.gather(*answers)


async def test_a_deleted_query_is_not_answered_again_under_its_id(stage: Stage) -> None:
    earlier, bus = await stage.asker(), await stage.bus("record")
    await bus.ready()
    first = earlier.ask("really?", query_id="q", session_id="s")
    await stage.generator.answers(await stage.generator.hears())
    await outcome(first)
    assert (await bus.request(JournalRedact(session_id="s"), JournalRedacted, 5)).count
    with pytest.raises(QueryDeleted):
        await outcome((await stage.asker()).ask("really?", query_id="q", session_id="s"))


async def test_who_waits_is_told_when_nobody_can_answer_any_more(stage: Stage) -> None:
    asker = await stage.asker(AskTimeouts(first_look=0.2))
    query = asker.ask("really?")
    await stage.generator.hears()
    asker.absence = Unavailable("generator", "the generator has failed (no room)")
    with pytest.raises(NobodyAnswers, match=r"has failed \(no room\); the query is recorded"):
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
        look = await asyncio.wait_for(looks.get(), 90)
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
    look = await asyncio.wait_for(looks.get(), 90)
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
        look = await asyncio.wait_for(looks.get(), 90)
        failure = ConversationResult(verb="query", error=ErrorInfo(kind="store_failed", message="the disk is broken"))
        await bus.publish(failure, look.trace(), in_reply_to=look.id)
    with pytest.raises(QueryRefused, match="the disk is broken"):
        await asyncio.wait_for(recalling, 90)


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
    await asyncio.wait_for(cancelling, 90)


# Ratings


async def test_an_answer_that_this_frontend_has_given_is_rated_though_it_is_not_on_record_yet(
    bare_stage: Stage,
) -> None:
    stage, asker = bare_stage, await bare_stage.asker(kind=LoCALSession)
    query = asker.ask("really?", query_id="q", session_id="s", user_id="ann")
    asked = await stage.generator.hears()
    await stage.generator.answers(asked)
    await asyncio.wait_for(query.outcome(), 90)
    await stage.journal()
    await asyncio.wait_for(asker.rate("q", 1), 90)
    reader = await stage.bus("reader")
    await reader.ready()
    ((feedback, envelope),) = await messages_on_record(reader, "q", [UserFeedback], 30)
    assert (feedback.rating, envelope.session_id, envelope.user_id) == (1, "s", "ann")
    assert await messages_on_record(reader, "q", [ResponseGeneration], 5) == []


async def test_while_the_record_cannot_be_read_a_rating_is_put_off_and_not_refused(bare_stage: Stage) -> None:
    asker = await bare_stage.asker(AskTimeouts(last_look=0.02), kind=LoCALSession)
    with pytest.raises(RequestTimeout):
        await asker.rate("q", 1)
