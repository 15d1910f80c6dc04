"""Messages that wait for their handler: too many, or too long."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from local.bus.messages import BusGap
from local.runtime import participant as subscription
from local.runtime import runner as runner_module
from local.runtime.participant import Inbox

Begin = Callable[..., Awaitable[Any]]


async def test_an_overflow_is_counted_and_published_as_a_gap(
    begin: Begin, witness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subscription, "Inbox", lambda: Inbox(max_envelopes=1))
    monkeypatch.setattr(runner_module, "LOOK_SECONDS", 0.001)
    life = await begin()
    await witness.say("wait", "in hand")
    await life.is_at_work()
    for answer in ("kept", "lost", "lost"):
        await witness.say("go", answer)
    gap = BusGap.decode((await witness.hears("bus.gap")).payload)
    assert (gap.observer, gap.sender, gap.missed_subject, gap.missed) == ("worker", "witness", "answer.dialog", 2)
    await life.end()
    assert life.worker.done == ["in hand", "kept"]
    assert life.bus.counters["overflow"] == 2


async def test_a_message_that_waited_longer_than_its_ttl_is_dropped_and_counted(
    begin: Begin, witness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(subscription, "Inbox", lambda: Inbox(clock=lambda: now[0]))
    life = await begin()
    await witness.say("wait", "in hand")
    await life.is_at_work()
    await witness.say("go", "fresh", ttl_ms=5000)
    await witness.say("go", "stale", ttl_ms=4000)
    await witness.say("reply", "lasting")
    await witness.hears("answer.dialog", 4)  # what the witness has heard the worker has received
    now[0] += 4.5
    life.worker.gate.set()
    await witness.hears("query.accepted")
    await life.end()
    assert life.worker.done == ["in hand", "fresh", "lasting"]
    assert (await witness.goodbye()).counters["expired"] == 1
