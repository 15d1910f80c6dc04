"""A transition table and a current state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Generic, TypeVar

from local.errors import IllegalTransition

S = TypeVar("S", bound=StrEnum)
A = TypeVar("A", bound=StrEnum)

Table = Mapping[S, Mapping[A, S]]


class Machine(Generic[S, A]):
    """`advance` is the only way to another state; what the table does not name raises and changes nothing."""

    def __init__(self, table: Table[S, A], start: S, on_change: Callable[[S, A, S], None] | None = None) -> None:
        """`on_change(from, action, to)` hears of every change; an action that leads back to the same state is none."""
        self._table = table
        self._state = start
        self._on_change = on_change

    @property
    def state(self) -> S:
        """The current state."""
        return self._state

    def allows(self, action: A) -> bool:
        """Whether `advance(action)` would succeed now."""
        return action in self._table[self._state]

    def advance(self, action: A) -> S:
        """Take the transition and return the new state. Raises `IllegalTransition`."""
        before = self._state
        if not self.allows(action):
            raise IllegalTransition(before, action)
        self._state = self._table[before][action]
        if self._state is not before and self._on_change is not None:
            self._on_change(before, action, self._state)
        return self._state
