"""Serving one participant from its start to its end."""

import asyncio
from typing import Any

import pytest

from local.bus.zeromq import MemoryHub
from local.runtime import runner as runner_module


async def test_a_life_is_connect_announce_serve_and_leave_in_this_order(life: Any, witness: Any) -> None:
    assert life.worker.life == ["enter", "announce"]
    await witness.say("go", "one")
    await witness.say("reply", "two")
    await witness.hears("query.accepted")
    await life.end()
    assert life.worker.done == ["one", "two"]
    assert life.worker.life == ["enter", "announce", "leave"]


async def test_stopping_finishes_what_is_in_hand_and_takes_no_more(life: Any, witness: Any) -> None:
    await witness.say("wait", "in hand")
    await life.is_at_work()
    life.stop.set()
    await witness.status("stopping")
    await witness.say("go", "too late")
    await witness.hears("answer.dialog", 2)
    await life.end()
    assert life.worker.done == ["in hand"]
    assert life.worker.life[-1] == "leave"


async def test_stopping_does_not_wait_for_ever(life: Any, witness: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner_module, "STOP_SECONDS", 0.01)
    await witness.say("wait", "stuck")
    await life.is_at_work()
    life.stop.set()
    await asyncio.wait_for(life.task, life.seconds)
    assert life.worker.done == []


async def test_the_status_says_who_it_is_what_it_does_and_what_it_sent(life: Any, witness: Any) -> None:
    ready = await witness.status("ready")
    assert (ready.name, ready.kind, ready.instance) == ("worker", "observer", life.bus.instance)
    assert ready.details == {"model": "gemma"}
    assert ready.counters["pages"] == 7
    assert ready.subscriptions == {"answer.dialog": "", "tool.request.": ""}
    await witness.say("reply")
    await witness.hears("query.accepted")
    await witness.say("wait")
    await life.is_at_work()
    life.stop.set()
    stopping = await witness.status("stopping")
    assert stopping.inflight == 1
    assert stopping.last_seq["query.accepted"] == 1
    assert stopping.counters["handled"] == 2


async def test_after_a_reconnection_it_announces_itself_again(hub: MemoryHub, life: Any) -> None:
    await asyncio.wait_for(life.worker.announces.acquire(), life.seconds)
    hub.down()
    hub.up()
    await asyncio.wait_for(life.worker.announces.acquire(), life.seconds)
    assert life.worker.life == ["enter", "announce", "announce"]
