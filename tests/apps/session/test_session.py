"""What a door's session makes of queries: one exchange for each, joined, kept and refused."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from local.apps import exchanges
from local.apps import session as module
from local.apps.door_errors import DoorStopping
from local.apps.exchange import Exchange, QueryRefused
from local.apps.session import LoCALSession
from local.errors import FrameTooLarge
from local.protocol.messages import QueryReceived, ResponseGeneration

Stage = Any  # of conftest.py


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
    monkeypatch.setattr(exchanges, "KEPT_ENDED", 2)
    running = session.ask("really?")
    await stage.generator.hears()
    ended = []
    for _ in range(3):
        exchange = session.ask("really?")
        ended.append(exchange.query_id)
        await stage.generator.answers(await stage.generator.hears())
        await outcome(exchange)
    for _ in range(2):  # commits: by the second one the asker of the last has put it away
        await session.cancel("none")
    assert [session.exchange(query_id) is not None for query_id in ended] == [False, True, True]
    assert session.exchange(running.query_id) is running


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
