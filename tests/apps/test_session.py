"""A door's session against a generator that is played by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import pytest

from local.apps import session as module
from local.apps.exchange import Exchange, QueryRefused
from local.apps.session import DoorStopping, LoCALSession, NotAccepted, Patience
from local.bus.bus import Bus
from local.bus.memory import MemoryHub
from local.errors import FrameTooLarge
from local.protocol.envelope import Envelope
from local.protocol.messages import (
    ErrorInfo,
    Message,
    QueryAccepted,
    QueryCancel,
    QueryFailed,
    QueryReceived,
    ResponseGeneration,
)

EAGER = Patience(first_resend=0.01, last_resend=0.02, until_accepted=0.1, while_silent=0.1)


class Generator:
    """Queues what it hears; the test says what it answers."""

    def __init__(self, bus: Bus) -> None:
        self._bus = bus
        self.heard: asyncio.Queue[Envelope] = asyncio.Queue()
        for subject in (QueryReceived.subject, QueryCancel.subject):
            bus.subscribe(subject, self.heard.put_nowait)

    async def hears(self) -> Envelope:
        """The next query or cancel."""
        return await asyncio.wait_for(self.heard.get(), 5)

    async def says(self, to: Envelope, *messages: Message) -> None:
        """Answer it."""
        for message in messages:
            await self._bus.publish(message, to.trace())

    async def answers(self, to: Envelope, text: str = "Yes.") -> None:
        """Accept and answer it."""
        asked = QueryReceived.decode(to.payload)
        response = ResponseGeneration(query_id=asked.query_id, status="answered", query=asked.query, answer=text)
        await self.says(to, QueryAccepted(query_id=asked.query_id), response)


class Stage:
    """A hub with a generator; sessions are added."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self.hub, self._stack = MemoryHub(), stack
        self.generator: Generator

    async def bus(self, name: str) -> Bus:
        """A bus that lives as long as the stage."""
        return await self._stack.enter_async_context(Bus(name, self.hub.transport()))

    async def session(self, patience: Patience | None = None) -> LoCALSession:
        """A session that is ready."""
        bus = await self.bus("door")
        session = await self._stack.enter_async_context(LoCALSession(bus, patience=patience))
        await bus.ready()
        return session


@pytest.fixture
async def stage() -> AsyncIterator[Stage]:
    async with AsyncExitStack() as stack:
        stage = Stage(stack)
        bus = await stage.bus("generator")
        stage.generator = Generator(bus)
        await bus.ready()
        yield stage


@pytest.fixture
async def session(stage: Stage) -> LoCALSession:
    return await stage.session()


async def outcome(exchange: Exchange) -> ResponseGeneration:
    return await asyncio.wait_for(exchange.outcome(), 5)


async def test_a_query_is_published_and_its_answer_collected(stage: Stage, session: LoCALSession) -> None:
    exchange = session.ask("really?", session_id="s", user_id="u", history=[{"role": "user", "content": "hi"}])
    heard = await stage.generator.hears()
    asked = QueryReceived.decode(heard.payload)
    assert (asked.query, asked.history) == ("really?", ({"role": "user", "content": "hi"},))
    assert (heard.correlation_id, heard.session_id, heard.user_id) == (exchange.query_id, "s", "u")
    await stage.generator.answers(heard)
    assert (await outcome(exchange)).answer == "Yes."


async def test_a_query_without_a_session_is_one_of_its_own(session: LoCALSession) -> None:
    assert session.ask("really?", query_id="q").session_id == "q"


async def test_the_same_id_joins_the_query_while_it_runs_and_after_it(stage: Stage, session: LoCALSession) -> None:
    first = session.ask("really?", query_id="q")
    assert session.ask("really?", query_id="q") is first
    await stage.generator.answers(await stage.generator.hears())
    await outcome(first)
    assert session.ask("really?", query_id="q") is first
    assert stage.generator.heard.empty()


async def test_the_same_id_with_another_text_is_refused_here(session: LoCALSession) -> None:
    session.ask("really?", query_id="q")
    with pytest.raises(QueryRefused) as refused:
        session.ask("why?", query_id="q")
    assert refused.value.kind == "conflict"


async def test_the_same_id_with_another_text_at_another_door_ends_only_that_one(stage: Stage) -> None:
    ours, theirs = await stage.session(), await stage.session()
    first = ours.ask("really?", query_id="q")
    heard = await stage.generator.hears()
    await stage.generator.says(heard, QueryAccepted(query_id="q"))
    await asyncio.wait_for(first.accepted(), 5)
    second = theirs.ask("why?", query_id="q")
    conflict = QueryFailed(query_id="q", error=ErrorInfo(kind="conflict", message="take a new one"))
    await stage.generator.says(await stage.generator.hears(), conflict)
    with pytest.raises(QueryRefused, match="take a new one"):
        await outcome(second)
    await stage.generator.answers(heard)
    assert (await outcome(first)).answer == "Yes."


async def test_a_lost_query_is_sent_again_in_the_same_envelope(stage: Stage) -> None:
    session = await stage.session(EAGER)
    exchange = session.ask("really?")
    first, again = await stage.generator.hears(), await stage.generator.hears()
    assert (first.id, first.seq) == (again.id, again.seq)
    await stage.generator.answers(again)
    await outcome(exchange)


async def test_silence_after_acceptance_makes_it_ask_again_so_that_a_lost_answer_is_told_once_more(
    stage: Stage,
) -> None:
    session = await stage.session(EAGER)
    exchange = session.ask("really?", query_id="q")
    await stage.generator.says(await stage.generator.hears(), QueryAccepted(query_id="q"))
    await stage.generator.answers(await stage.generator.hears())
    await outcome(exchange)


async def test_a_query_that_nobody_takes_is_given_up(stage: Stage) -> None:
    session = await stage.session(EAGER)
    with pytest.raises(NotAccepted, match=r"no generator accepted the query within 0\.1 s"):
        await outcome(session.ask("really?"))


async def test_a_generator_that_falls_silent_for_good_is_not_waited_for(stage: Stage) -> None:
    session = await stage.session(EAGER)
    exchange = session.ask("really?", query_id="q")
    await stage.generator.says(await stage.generator.hears(), QueryAccepted(query_id="q"))
    with pytest.raises(NotAccepted, match="the query is stored"):
        await outcome(exchange)


async def test_repeats_become_rarer(stage: Stage) -> None:
    patience = Patience(first_resend=0.02, last_resend=0.04, until_accepted=0.5, while_silent=0.5)
    session = await stage.session(patience)
    with pytest.raises(NotAccepted):
        await outcome(session.ask("really?"))
    assert 2 <= stage.generator.heard.qsize() <= 14


async def test_a_refused_query_can_be_asked_again(stage: Stage, session: LoCALSession) -> None:
    busy = QueryFailed(query_id="q", error=ErrorInfo(kind="busy", message="later"))
    first = session.ask("really?", query_id="q")
    await stage.generator.says(await stage.generator.hears(), busy)
    with pytest.raises(QueryRefused, match="later"):
        await outcome(first)
    second = session.ask("really?", query_id="q")
    assert second is not first
    await stage.generator.answers(await stage.generator.hears())
    assert (await outcome(second)).answer == "Yes."
    assert session.exchange("q") is second


async def test_a_query_asked_again_at_once_is_not_put_away_with_the_refused_one(
    stage: Stage, session: LoCALSession
) -> None:
    first = session.ask("really?", query_id="q")
    await stage.generator.hears()
    first.refuse(QueryRefused("busy", "later"))
    second = session.ask("really?", query_id="q")
    await stage.generator.answers(await stage.generator.hears())
    assert (await outcome(second)).answer == "Yes."


async def test_a_query_too_large_for_the_bus_is_refused(session: LoCALSession) -> None:
    with pytest.raises(FrameTooLarge):
        await outcome(session.ask("x" * 1_100_000))


async def test_a_bus_that_breaks_before_the_query_left_delays_it(stage: Stage, session: LoCALSession) -> None:
    stage.hub.down()
    exchange = session.ask("really?")
    stage.hub.up()
    await stage.generator.answers(await stage.generator.hears())
    await outcome(exchange)


async def test_cancel_is_published(stage: Stage, session: LoCALSession) -> None:
    await session.cancel("q")
    heard = await stage.generator.hears()
    assert (heard.subject, heard.correlation_id) == ("query.cancel", "q")


async def test_stopping_tells_everybody_who_waits_and_takes_nothing_more(session: LoCALSession) -> None:
    exchange = session.ask("really?")
    session.stop()
    with pytest.raises(DoorStopping):
        await outcome(exchange)
    with pytest.raises(DoorStopping):
        session.ask("why?")


async def test_only_the_last_ended_queries_are_kept(
    stage: Stage, session: LoCALSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "KEPT_ENDED", 2)
    running = session.ask("really?", query_id="running")
    await stage.generator.hears()
    for query_id in ("a", "b", "c"):
        exchange = session.ask("really?", query_id=query_id)
        await stage.generator.answers(await stage.generator.hears())
        await outcome(exchange)
    next_one = session.ask("really?", query_id="d")  # by the time it is heard, the others have been put away
    await stage.generator.hears()
    assert [session.exchange(query_id) is not None for query_id in "abc"] == [False, True, True]
    assert session.exchange("d") is next_one
    assert session.exchange("running") is running


async def test_too_many_open_queries_are_refused(session: LoCALSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_OPEN", 1)
    session.ask("really?")
    with pytest.raises(QueryRefused) as refused:
        session.ask("why?")
    assert refused.value.kind == "busy"


async def test_a_malformed_answer_is_counted_and_the_session_goes_on(stage: Stage, session: LoCALSession) -> None:
    exchange = session.ask("really?", query_id="q")
    heard = await stage.generator.hears()
    bad: Any = heard._replace(
        subject="generation.token", id="bad", payload=b'{"query_id": 7}', sender="x", instance="x"
    )
    stage.hub.forward(bad.encode())
    await stage.generator.answers(heard)
    await outcome(exchange)
    assert session._bus.counters["malformed"] == 1
