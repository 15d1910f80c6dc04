"""Where a turn stands in the line for its model: before everybody, or behind whatever a user waits for."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from local.agents.leases import Leases

T = TypeVar("T")


class Priority(Protocol):
    """One turn's way to its model."""

    def turn(self) -> AbstractContextManager[None]:
        """Hold this for as long as the turn runs."""

    async def call(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """What `work()`, one call of the model, returns or raises. It may be cut off and called again."""


@dataclass(frozen=True, slots=True)
class UsersTurn:
    """A user waits for it: it asks nobody, and others make room."""

    leases: Leases
    model: str

    def turn(self) -> AbstractContextManager[None]:
        """As in `Priority`."""
        return self.leases.users_turn(self.model)

    async def call(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """As in `Priority`; `work` is called once."""
        return await work()


@dataclass(frozen=True, slots=True)
class BackgroundTurn:
    """Nobody waits for it: each call takes a lease, and gives it up when a user's turn needs the model.

    `purpose` is a word for those who watch the line.
    """

    leases: Leases
    model: str
    purpose: str

    def turn(self) -> AbstractContextManager[None]:
        """As in `Priority`."""
        return nullcontext()

    async def call(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """As in `Priority`."""
        return await self.leases.in_background(self.model, self.purpose, work)
