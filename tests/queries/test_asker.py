"""What an asker makes of queries: one live query for each, joined, kept and refused."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from local.bus.envelope import Envelope
from local.bus.messages import QueryReceived, ResponseGeneration
from local.core.errors import FrameTooLarge
from local.permissions.messages import ApprovalDecision, ApprovalRequest
from local.queries import asker as live_query
from local.queries import asker as module
from local.queries.asker import Asker, LiveQuery
from local.queries.errors import AskerStopping, QueryRefused

Stage = Any  # of conftest.py


async def outcome(query: LiveQuery) -> ResponseGeneration:
    return await asyncio.wait_for(query.outcome(), 5)


async def test_a_query_is_published_and_its_answer_collected(stage: Stage, asker: Asker) -> None:
    query = asker.ask("really?", session_id="s", user_id="u", history=[{"role": "user", "content": "hi"}])
    heard = await stage.generator.hears()
    asked = QueryReceived.decode(heard.payload)
    assert (asked.query, asked.history) == ("really?", ({"role": "user", "content": "hi"},))
    assert (heard.correlation_id, heard.session_id, heard.user_id) == (query.query_id, "s", "u")
    await stage.generator.answers(heard)
    assert (await outcome(query)).answer == "Yes."


async def test_a_query_without_a_session_is_one_of_its_own(asker: Asker) -> None:
    assert asker.ask("really?", query_id="q").view.session_id == "q"


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
    monkeypatch.setattr(live_query, "KEPT_ENDED", 2)
    running = asker.ask("really?")
    await stage.generator.hears()
    ended = []
    for _ in range(3):
        query = asker.ask("really?")
        ended.append(query.query_id)
        await stage.generator.answers(await stage.generator.hears())
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
