from __future__ import annotations

import asyncio
from enum import StrEnum

from local.bus.messages import AgentTransition
from local.runtime.machine import TransitionLog, changes


class Light(StrEnum):
    RED = "RED"
    GREEN = "GREEN"


class Switch(StrEnum):
    GO = "GO"
    STOP = "STOP"


def log_into(told: list[AgentTransition]) -> TransitionLog:
    return TransitionLog(told.append, "light", "q", "B")


async def test_changes_that_happen_in_one_go_leave_as_one_message_soon() -> None:
    told: list[AgentTransition] = []
    log = log_into(told)
    log.note(Light.RED, Switch.GO, Light.GREEN)
    log.note(Light.GREEN, Switch.STOP, Light.RED)
    assert told == []
    await asyncio.sleep(0)
    (only,) = told
    assert (only.agent, only.query_id, only.respondent_id) == ("light", "q", "B")
    assert (only.from_state, only.action, only.to_state) == ("RED", "GO", "GREEN")
    assert only.then == ({"action": "STOP", "to": "RED"},)
    assert AgentTransition.decode(only.encode()) == only


async def test_every_change_of_a_message_can_be_had_by_itself() -> None:
    told: list[AgentTransition] = []
    log = log_into(told)
    log.note(Light.RED, Switch.GO, Light.GREEN)
    log.note(Light.GREEN, Switch.STOP, Light.RED)
    log.flush()
    apart = [(each.from_state, each.action, each.to_state, each.then) for each in changes(told[0])]
    assert apart == [("RED", "GO", "GREEN", ()), ("GREEN", "STOP", "RED", ())]


async def test_a_change_into_a_passing_state_leaves_with_the_next_one() -> None:
    told: list[AgentTransition] = []
    log = TransitionLog(told.append, "light", "q", passing={Light.GREEN})
    log.note(Light.RED, Switch.GO, Light.GREEN)
    await asyncio.sleep(0)
    assert told == []
    log.note(Light.GREEN, Switch.STOP, Light.RED)
    await asyncio.sleep(0)
    assert [each.to_state for each in changes(told[0])] == ["GREEN", "RED"]
