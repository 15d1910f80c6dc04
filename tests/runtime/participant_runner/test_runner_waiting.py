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


async def test_what_is_said_anew_anyway_and_was_missed_is_published_and_no_warning(
    begin: Begin, witness: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(runner_module, "LOOK_SECONDS", 0.001)
    life = await begin()
    missed = [
        BusGap(observer="worker", instance="i", sender="api", missed_subject=subject, missed=2)
        for subject in ("participant.status", "journal.attach", "answer.dialog")
    ]
    monkeypatch.setattr(life.bus, "take_gaps", lambda: [missed.pop(0)] if missed else [])
    await witness.hears("bus.gap", 3)
    await life.end()
    assert [each.getMessage() for each in caplog.records if each.levelname == "WARNING"] == [
        "missed 2 of answer.dialog from api"
    ]


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


async def test_what_waits_for_a_place_side_by_side_can_expire_too(
    begin: Begin, witness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(subscription, "Inbox", lambda: Inbox(clock=lambda: now[0]))
    life = await begin()
    for number in range(2):
        await witness.call(f"c{number}")
        await life.is_at_work()
    await witness.call("stale", ttl_ms=1000)
    await witness.hears("tool.request.good", 3)
    now[0] += 2
    await witness.call("fresh", ttl_ms=1000)
    life.worker.gate.set()
    await witness.hears("tool.result.good", 3)
    assert life.worker.done == ["c0", "c1", "fresh"]
