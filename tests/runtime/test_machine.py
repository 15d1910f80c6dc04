"""A transition table and a current state."""

from enum import StrEnum

import pytest

from local.core.errors import IllegalTransition
from local.runtime.machine import Machine, Table


class Light(StrEnum):
    RED = "RED"
    GREEN = "GREEN"


class Press(StrEnum):
    GO = "GO"
    STAY = "STAY"


TABLE: Table[Light, Press] = {Light.RED: {Press.GO: Light.GREEN, Press.STAY: Light.RED}, Light.GREEN: {}}


def test_an_action_of_the_table_leads_to_its_state() -> None:
    machine = Machine(TABLE, Light.RED)
    assert machine.advance(Press.GO) is Light.GREEN
    assert machine.state is Light.GREEN


def test_an_action_that_is_not_in_the_table_raises_and_changes_nothing() -> None:
    changes: list[object] = []
    machine = Machine(TABLE, Light.GREEN, lambda *change: changes.append(change))
    with pytest.raises(IllegalTransition) as caught:
        machine.advance(Press.GO)
    assert (caught.value.state, caught.value.action) == (Light.GREEN, Press.GO)
    assert machine.state is Light.GREEN
    assert changes == []


def test_every_change_is_told_and_staying_is_none() -> None:
    changes: list[tuple[Light, Press, Light]] = []
    machine = Machine(TABLE, Light.RED, lambda *change: changes.append(change))
    machine.advance(Press.STAY)
    machine.advance(Press.GO)
    assert changes == [(Light.RED, Press.GO, Light.GREEN)]
