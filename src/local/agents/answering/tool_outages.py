"""Which tools nobody answers for, as the supervisor says: given up until the next try, or no participant any more."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from local.protocol.messages import ChildStatus

GIVEN_UP = "failed"  # one that is about to be started again is no outage: it still gets its calls


class ToolOutages:
    """The supervisor names children, and tools name themselves, and say what the supervisor calls them."""

    def __init__(self) -> None:
        self._children: dict[str, ChildStatus] = {}  # by name
        self._child_of: dict[str, str] = {}  # by tool's participant, the latest
        self._gone: set[str] = set()  # children that there were
        self._changed = asyncio.Event()

    def heard(self, sender: str, child: str) -> None:
        """A tool's participant lives, as a child of the supervisor or, without a name, by hand."""
        self._child_of[sender] = child

    def supervised(self, children: Iterable[ChildStatus]) -> None:
        """The supervisor says how its children are."""
        before, self._children = self._children.keys(), {child.name: child for child in children}
        self._gone = (self._gone | before) - self._children.keys()
        self._changed.set()
        self._changed = asyncio.Event()

    def reason(self, sender: str) -> str | None:
        """Why a tool's participant answers nothing; None if it is not known to be away."""
        name = self._child_of.get(sender, "")
        if name in self._gone:
            return "it was taken out of the settings"
        child = self._children.get(name)
        if child is None or child.state != GIVEN_UP:
            return None
        return f"its process cannot live ({child.detail})"

    async def begins(self, sender: str) -> str:
        """Wait until a tool's participant is given up; returns why."""
        while (why := self.reason(sender)) is None:
            await self._changed.wait()
        return why
