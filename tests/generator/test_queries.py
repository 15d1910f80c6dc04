"""Queries that are repeated, mistaken, too many, or ask for the record."""

import asyncio
from typing import Any

import pytest

from local.bus.envelope import Envelope, Trace
from local.bus.message import Message
from local.bus.messages import (
    AgentTransition,
    AnswerDialog,
    BusDead,
    ConversationRequest,
    ConversationResult,
    QueryAccepted,
    QueryFailed,
    QueryReceived,
    ResponseGeneration,
)
from local.journal.messages import JournalAck, JournalConfirmed, JournalDeliver


async def test_its_figures_tell_how_many_turns_run_and_how_many_of_them_wait_for_the_model(stage: Any) -> None:
    generator = await stage.generator(max_concurrent_turns=1)
    slow = asyncio.Event()
    stage.model.will_say(slow, "Yes.")
    stage.model.will_say("Yes.")
    for number in (1, 2):
        await stage.frontend.ask("Well?", f"q{number}", session=f"s{number}")
    await stage.frontend.until(lambda: generator.participant.metrics()["turns_with_model"] == 1)
    await stage.frontend.hears(QueryAccepted, times=2)
    told = {"turns_running": 1, "turns_at_most": 1, "turns_with_model": 1, "turns_waiting": 1, "turns_load": 0}
    await stage.frontend.until(lambda: generator.participant.metrics() == told)
    slow.set()
    await stage.end_of("q2")
    await stage.frontend.until(lambda: generator.participant.metrics()["turns_running"] == 0)


async def test_a_query_is_acknowledged_when_its_outcome_is_on_record(stage: Any) -> None:
    await stage.generator()
    stage.model.will_say("Yes.")
    await stage.frontend.ask("Well?", "q1")
    await stage.end_of("q1")
    [outcome] = stage.frontend.envelopes(ResponseGeneration)
    said = [envelope.subject.split(".")[1] for envelope in stage.frontend.heard if names_the_end(envelope, outcome.id)]
    assert list(dict.fromkeys(said)) == ["generation", "confirmed", "ack"]  # a busy machine may have one said again


async def test_a_query_is_acknowledged_when_its_acceptance_is_on_record_too(
    stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = await stage.generator()
    publish, may_be_told = served.bus.publish, asyncio.Event()

    async def publish_the_acceptance_late(message: Message, *arguments: Any, **options: Any) -> Any:
        if isinstance(message, QueryAccepted):
            await may_be_told.wait()
        return await publish(message, *arguments, **options)

    monkeypatch.setattr(served.bus, "publish", publish_the_acceptance_late)
    stage.model.will_say("Yes.")
    await stage.frontend.ask("Well?", "q1")
    await stage.frontend.hears(AgentTransition, to_state="IDLE")
    assert len(await stage.on_record("q1", ResponseGeneration)) == 1
    assert stage.acknowledged() == set()
    may_be_told.set()
    await stage.end_of("q1")
    assert len(await stage.on_record("q1", QueryAccepted)) == 1


def names_the_end(envelope: Envelope, outcome_id: str) -> bool:
    """Whether it is the outcome, its confirmation, or the acknowledgement of a query."""
    if envelope.subject.startswith(JournalConfirmed.subject):
        return outcome_id in JournalConfirmed.decode(envelope.payload).ids
    return envelope.id == outcome_id or envelope.subject == JournalAck.subject


async def test_a_query_that_a_session_has_refused_is_no_turn_of_it_and_stays_refused(stage: Any) -> None:
    await stage.generator()
    stage.model.will_say("Noted.")
    await stage.frontend.ask("My cat is called Mau.", "q1")
    await stage.end_of("q1")

    async def look_up(verb: Any, key: str = "") -> Any:
        request = ConversationRequest(verb=verb, key=key)
        return (await stage.frontend.bus.request(request, ConversationResult, 5.0)).value

    session, sessions = await look_up("session", "s"), await look_up("sessions")
    intruding = QueryReceived(query_id="q2", query="What was said here?")
    for times in (1, 2):
        await stage.frontend.bus.publish(intruding, Trace("q2", None, "s", "somebody else"))
        failed = await stage.frontend.hears(QueryFailed, times, query_id="q2")
        assert (failed.error.kind, "another user" in failed.error.message) == ("conflict", True)
    assert (await look_up("session", "s"), await look_up("sessions")) == (session, sessions)
    assert (await look_up("query", "q2"))["status"] == "failed"
    assert len(stage.model.asked) == 1


async def test_over_the_bound_a_query_is_refused_for_good_and_another_may_be_asked(stage: Any) -> None:
    await stage.generator(max_waiting_turns=1)
    slow = asyncio.Event()
    stage.model.will_say(slow, "one", to="first")
    stage.model.will_say("two", to="second")
    stage.model.will_say("three", to="third")
    for query_id, query in (("q1", "first"), ("q2", "second"), ("q3", "third")):
        await stage.frontend.ask(query, query_id)
    refused = await stage.frontend.hears(QueryFailed)
    assert (refused.query_id, refused.error.kind) == ("q3", "busy")
    slow.set()
    await stage.end_of("q2")
    await stage.frontend.ask("third", "q3")
    assert await stage.frontend.hears(QueryFailed, 2) == refused
    assert await stage.end_of("q3") == refused
    await stage.frontend.ask("third", "q4")
    assert (await stage.end_of("q4")).answer == "three"


async def test_what_is_no_query_is_counted_and_harms_nobody(stage: Any) -> None:
    served = await stage.generator()

    class Nonsense(QueryReceived):
        query: int  # type: ignore[assignment]

    await stage.frontend.bus.publish(Nonsense(query_id="q0", query=1))
    stage.model.will_say("Yes.")
    await stage.frontend.ask("Well?", "q1")
    await stage.frontend.hears(ResponseGeneration)
    assert served.bus.counters["malformed"] == 2  # as it was heard, and as it was delivered


async def test_payloads_name_session_and_agent_and_a_payload_s_session_counts(stage: Any) -> None:
    """As the first plan has them, for clients that know its payloads and not our header."""
    await stage.generator()
    for number in (1, 2):
        stage.model.will_say(f"Yes {number}.")
        query = QueryReceived(query_id=f"q{number}", query=f"Well {number}?", session_id="of the payload")
        sealed = stage.frontend.bus.seal(query, Trace(f"q{number}"))
        assert sealed.session_id is None
        await stage.frontend.bus.send(sealed)
        response = await stage.frontend.hears(ResponseGeneration, query_id=f"q{number}")
        assert (response.session_id, response.generator_id) == ("of the payload", "GeneratorAgent")
        dialog = await stage.frontend.hears(AnswerDialog, query_id=f"q{number}")
        assert (dialog.session_id, dialog.respondent_id) == ("of the payload", "A")
    assert [message["content"] for message in stage.model.asked[1].messages[1:]] == ["Well 1?", "Yes 1.", "Well 2?"]


async def test_a_query_seen_again_while_it_runs_is_not_started_twice_and_has_the_same_end_also_afterwards(
    stage: Any,
) -> None:
    await stage.generator(max_waiting_turns=0)
    slow = asyncio.Event()
    stage.model.will_say(slow, "Yes.")
    await asyncio.gather(*(stage.frontend.ask("Well?", "q1", envelope_id=each) for each in ("e1", "e1", "e2")))
    first, second = (entry.number for entry in await stage.on_record("q1", QueryReceived))
    await stage.frontend.hears(JournalDeliver, number=second)
    assert stage.acknowledged() == set()
    slow.set()
    end = await stage.end_of("q1")
    assert end.answer == "Yes."
    await stage.frontend.until(lambda: stage.acknowledged() == {first, second})
    stage.model.will_say(asyncio.Event(), to="second")  # from now on its session has no room
    await stage.frontend.ask("second", "q2")
    await stage.frontend.hears(QueryAccepted, query_id="q2")
    before = len(stage.frontend.of(ResponseGeneration))
    await stage.frontend.ask("Well?", "q1")
    assert await stage.frontend.hears(ResponseGeneration, before + 1) == end
    assert len({envelope.id for envelope in stage.frontend.envelopes(ResponseGeneration)}) == 1
    assert len(stage.model.asked) == 2


async def test_the_id_of_another_query_is_a_conflict_caused_by_the_one_who_took_it(stage: Any) -> None:
    await stage.generator()
    slow = asyncio.Event()
    stage.model.will_say(slow, "Yes.")
    await stage.frontend.ask("Well?", "q1")
    mistaken = [await stage.frontend.ask("Something else?", "q1")]
    await stage.frontend.hears(BusDead)
    slow.set()
    assert (await stage.end_of("q1")).answer == "Yes."
    mistaken.append(await stage.frontend.ask("Something else?", "q1"))
    await stage.frontend.hears(BusDead, 2)
    letters = stage.frontend.of(BusDead)
    assert [(dead.error.kind, dead.dead_subject) for dead in letters] == [("conflict", "query.received")] * 2
    assert [dead.envelope_id for dead in letters] == [asked.id for asked in mistaken]
    assert [envelope.cause_id for envelope in stage.frontend.envelopes(BusDead)] == [asked.id for asked in mistaken]
    assert [asked.query for asked in stage.model.asked] == ["Well?"]
