"""A state machine with a transition table, and the publication of its changes on the bus."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping
from enum import StrEnum
from typing import Generic, TypeVar

from local.bus.message import MAIN_RESPONDENT
from local.bus.messages import AgentTransition
from local.core.errors import IllegalTransition

S = TypeVar("S", bound=StrEnum)
A = TypeVar("A", bound=StrEnum)

Table = Mapping[S, Mapping[A, S]]


class Machine(Generic[S, A]):
    """A state machine from a literal table. `advance` is the only way to another state; an action that the table does
    not allow raises and changes nothing.
    """

    def __init__(self, table: Table[S, A], start: S, on_change: Callable[[S, A, S], None] | None = None) -> None:
        """`on_change(from, action, to)` is called for every change; an action that leads back to the same state is not
        a change.
        """
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


def changes(told: AgentTransition) -> Iterator[AgentTransition]:
    """Return the changes in one message, each as a separate message."""
    before = told.from_state
    for change in ({"action": told.action, "to": told.to_state}, *told.then):
        after = change["to"]
        told = told.model_copy(update={"from_state": before, "action": change["action"], "to_state": after, "then": ()})
        yield told
        before = after


class TransitionLog:
    """The publisher of one machine's changes. Changes at the same moment are sent as one message.

    A `Machine` calls `note`. A change is sent in the event loop's next round, or after `hold_seconds` if no client
    follows closely, or with `flush`, which must be called before publishing something that depends on the change. A
    change into a `passing` state, which ends immediately, waits for the next change.
    """

    publishes = (AgentTransition,)

    def __init__(
        self,
        post: Callable[[AgentTransition], object],
        agent: str,
        query_id: str,
        respondent_id: str = MAIN_RESPONDENT,
        passing: Collection[StrEnum] = (),
        hold_seconds: float = 0.0,
    ) -> None:
        self._post, self._passing, self._hold_seconds = post, passing, hold_seconds
        self._agent, self._query_id, self._respondent_id = agent, query_id, respondent_id
        self._from: StrEnum | None = None  # the state before the first change that has not left
        self._changes: list[dict[str, str]] = []

    def note(self, before: StrEnum, action: StrEnum, after: StrEnum) -> None:
        """The machine has changed its state."""
        if not self._changes:
            self._from = before
        if after not in self._passing:
            self._leave()
        self._changes.append({"action": action, "to": after})

    def flush(self) -> None:
        """Publish the changes that were not sent yet."""
        if not self._changes:
            return
        (first, *then), before = self._changes, self._from
        self._changes = []
        self._post(
            AgentTransition(
                agent=self._agent,
                query_id=self._query_id,
                respondent_id=self._respondent_id,
                from_state=str(before),
                action=first["action"],
                to_state=first["to"],
                then=tuple(then),
            )
        )

    def _leave(self) -> None:
        loop = asyncio.get_running_loop()
        if self._hold_seconds:
            loop.call_later(self._hold_seconds, self.flush)
        else:
            loop.call_soon(self.flush)
