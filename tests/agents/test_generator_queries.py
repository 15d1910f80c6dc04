"""Queries that are repeated, mistaken, too many, or ask for the record."""

import asyncio
from typing import Any

import pytest

from local.errors import PublishTimeout, StoreFailed
from local.protocol.messages import (
    AgentTransition,
    BusDead,
    ConversationRequest,
    ConversationResult,
    Message,
    QueryAccepted,
    QueryFailed,
    QueryReceived,
    ResponseGeneration,
)


async def test_a_query_seen_again_while_it_runs_is_accepted_again_and_not_started_twice(stage: Any) -> None:
    await stage.generator()
    slow = asyncio.Event()
    stage.model.will_say(slow, "Yes.")
    await stage.door.ask("Well?", "q1")
    await stage.door.hears(QueryAccepted)
    again = await stage.door.ask("Well?", "q1")
    await stage.door.hears(QueryAccepted, 2)
    slow.set()
    await stage.door.hears(ResponseGeneration)
    assert stage.door.envelopes(QueryAccepted)[1].cause_id == again.id
    assert len(stage.model.asked) == 1


async def test_two_copies_that_arrive_together_are_one_turn(stage: Any) -> None:
    await stage.generator()
    stage.model.will_say("Yes.")
    await asyncio.gather(stage.door.ask("Well?", "q1"), stage.door.ask("Well?", "q1"))
    await stage.door.hears(QueryAccepted, 2)
    await stage.door.hears(ResponseGeneration)
    assert len(stage.model.asked) == 1


async def test_an_answered_query_is_answered_again_from_the_record_under_the_same_envelope_id(stage: Any) -> None:
    await stage.generator()
    stage.model.will_say("Yes.")
    await stage.door.ask("Well?", "q1")
    first = await stage.door.hears(ResponseGeneration)
    await stage.door.ask("Well?", "q1")
    assert await stage.door.hears(ResponseGeneration, 2) == first
    one, two = stage.door.envelopes(ResponseGeneration)
    assert one.id == two.id
    assert len(stage.model.asked) == 1


async def test_the_id_of_another_query_is_a_conflict_caused_by_the_one_who_took_it(stage: Any) -> None:
    await stage.generator()
    slow = asyncio.Event()
    stage.model.will_say(slow, "Yes.")
    await stage.door.ask("Well?", "q1")
    await stage.door.hears(QueryAccepted)
    mistaken = [await stage.door.ask("Something else?", "q1")]
    await stage.door.hears(QueryFailed)
    slow.set()
    await stage.door.hears(ResponseGeneration)
    mistaken.append(await stage.door.ask("Something else?", "q1"))
    await stage.door.hears(QueryFailed, 2)
    assert [failed.error.kind for failed in stage.door.of(QueryFailed)] == ["conflict", "conflict"]
    assert [envelope.cause_id for envelope in stage.door.envelopes(QueryFailed)] == [asked.id for asked in mistaken]


async def test_over_the_bound_a_query_is_refused_and_may_come_again(stage: Any) -> None:
    await stage.generator(max_waiting_turns=1)
    slow = asyncio.Event()
    stage.model.will_say(slow, "one", to="first")
    stage.model.will_say("two", to="second")
    stage.model.will_say("three", to="third")
    for query_id, query in (("q1", "first"), ("q2", "second"), ("q3", "third")):
        await stage.door.ask(query, query_id)
    refused = await stage.door.hears(QueryFailed)
    assert (refused.query_id, refused.error.kind) == ("q3", "busy")
    slow.set()
    await stage.door.hears(ResponseGeneration, 2)
    await stage.door.ask("third", "q3")
    assert (await stage.door.hears(ResponseGeneration, query_id="q3")).answer == "three"


async def test_an_answered_query_is_answered_again_even_when_its_session_has_no_room(stage: Any) -> None:
    await stage.generator(max_waiting_turns=0)
    stage.model.will_say("Yes.", to="first")
    stage.model.will_say(asyncio.Event(), to="second")
    await stage.door.ask("first", "q1")
    await stage.door.hears(AgentTransition, to_state="IDLE")  # the line is free only now
    await stage.door.ask("second", "q2")
    await stage.door.hears(QueryAccepted, query_id="q2")
    await stage.door.ask("first", "q1")
    await stage.door.hears(ResponseGeneration, 2, query_id="q1")


async def test_a_query_that_cannot_be_stored_is_told_so_and_can_be_asked_again(
    stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = await stage.generator()
    conversation = served.participant._conversation
    works = conversation.accept

    async def fails(asked: object) -> object:
        raise StoreFailed("conversation.db: disk is full")

    monkeypatch.setattr(conversation, "accept", fails)
    await stage.door.ask("Well?", "q1")
    failed = await stage.door.hears(QueryFailed)
    assert (failed.error.kind, failed.error.message) == ("store_failed", "conversation.db: disk is full")
    monkeypatch.setattr(conversation, "accept", works)
    stage.model.will_say("Yes.")
    await stage.door.ask("Well?", "q1")
    assert (await stage.door.hears(ResponseGeneration)).answer == "Yes."


async def test_a_turn_whose_end_cannot_be_stored_is_told_and_asked_again_it_ends(
    stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = await stage.generator()
    conversation = served.participant._conversation
    works = conversation.finish

    async def fails(*record: object) -> None:
        raise StoreFailed("conversation.db: disk is full")

    monkeypatch.setattr(conversation, "finish", fails)
    stage.model.will_say("Yes.")
    await stage.door.ask("Well?", "q1")
    assert (await stage.door.hears(QueryFailed)).error.kind == "store_failed"
    assert stage.door.of(ResponseGeneration) == []
    monkeypatch.setattr(conversation, "finish", works)
    stage.model.will_say("Yes.")
    await stage.door.ask("Well?", "q1")
    assert (await stage.door.hears(ResponseGeneration)).answer == "Yes."


async def test_a_query_whose_acceptance_could_not_be_told_is_answered_and_never_called_failed(
    stage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = await stage.generator()
    publish = served.bus.publish

    async def publish_no_acceptance(message: Message, *arguments: Any, **options: Any) -> Any:
        if isinstance(message, QueryAccepted):
            raise PublishTimeout(message.subject, 5.0)
        return await publish(message, *arguments, **options)

    monkeypatch.setattr(served.bus, "publish", publish_no_acceptance)
    slow = asyncio.Event()
    stage.model.will_say(slow, "Yes.")
    await stage.door.ask("Well?", "q1")
    assert (await stage.door.hears(BusDead)).error.kind == "publish_timeout"
    slow.set()
    assert (await stage.door.hears(ResponseGeneration)).answer == "Yes."
    assert stage.door.of(QueryFailed) == []


async def test_the_record_is_shown_to_whoever_asks(stage: Any) -> None:
    await stage.generator()
    stage.model.will_say("Yes.")
    await stage.door.ask("Well?", "q1")
    await stage.door.hears(ResponseGeneration)

    async def look_up(verb: Any, key: str = "") -> Any:
        return await stage.door.bus.request(ConversationRequest(verb=verb, key=key), ConversationResult, 5.0)

    assert [entry["title"] for entry in (await look_up("sessions")).value["sessions"]] == ["Well?"]
    assert (await look_up("query", "q1")).value["outcome"]["answer"] == "Yes."
    nothing = await look_up("session", "nowhere")
    assert (nothing.value, nothing.error.kind) == (None, "not_found")


async def test_what_is_no_query_is_counted_and_harms_nobody(stage: Any) -> None:
    served = await stage.generator()

    class Nonsense(QueryReceived):
        query: int  # type: ignore[assignment]

    await stage.door.bus.publish(Nonsense(query_id="q0", query=1))
    stage.model.will_say("Yes.")
    await stage.door.ask("Well?", "q1")
    await stage.door.hears(ResponseGeneration)
    assert served.bus.counters["malformed"] == 1
