"""Whether another participant lives, on a clock of our own."""

from __future__ import annotations

import asyncio

from local.bus.messages import ParticipantStatus
from local.runtime.runner import BEAT_SECONDS, SILENT_SECONDS, Presence, StatusBeat


def status(name: str = "memory", state: str = "ready") -> ParticipantStatus:
    return ParticipantStatus.model_validate({"name": name, "kind": "agent", "pid": 1, "instance": "i", "state": state})


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_participant_lives_until_it_is_silent_too_long_or_says_goodbye() -> None:
    clock = Clock()
    presence = Presence("memory", clock)
    assert not presence.lives
    assert not presence.update(status("critic"))
    assert not presence.lives
    assert presence.update(status())
    clock.now += SILENT_SECONDS
    assert presence.lives
    clock.now += 0.1
    assert not presence.lives
    presence.update(status())
    presence.update(status(state="stopping"))
    assert not presence.lives


async def test_who_waits_goes_on_as_soon_as_it_is_heard_and_not_for_a_goodbye() -> None:
    presence = Presence("memory")
    waiting = asyncio.create_task(presence.lives_within(30))
    presence.update(status(state="stopping"))
    await asyncio.sleep(0)
    assert not waiting.done()
    presence.update(status())
    async with asyncio.timeout(5):
        assert await waiting


def test_what_is_new_is_told_at_the_next_look_and_the_rest_every_five_seconds() -> None:
    beat = StatusBeat()
    assert beat.is_due(status(), 0)
    assert not beat.is_due(status(), BEAT_SECONDS - 0.1)
    assert beat.is_due(status(), BEAT_SECONDS)
    assert beat.is_due(status(state="stopping"), BEAT_SECONDS + 0.1)
    of_beats = {"counters": {"published": 2, "received": 30}, "last_seq": {"participant.status": 2}}
    assert not beat.is_due(status(state="stopping").model_copy(update=of_beats), BEAT_SECONDS + 0.2)
    assert beat.is_due(
        status(state="stopping").model_copy(update={"last_seq": {"query.failed": 1}}), BEAT_SECONDS + 0.3
    )
