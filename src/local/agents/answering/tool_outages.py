"""Which tools nobody answers for, as the supervisor says: their process was given up until its next try."""

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
        self._changed = asyncio.Event()

    def heard(self, sender: str, child: str) -> None:
        """A tool's participant lives, as a child of the supervisor or, without a name, by hand."""
        self._child_of[sender] = child

    def supervised(self, children: Iterable[ChildStatus]) -> None:
        """The supervisor says how its children are."""
        self._children = {child.name: child for child in children}
        self._changed.set()
        self._changed = asyncio.Event()

    def reason(self, sender: str) -> str | None:
        """Why a tool's participant answers nothing; None if it is not known to be away."""
        child = self._children.get(self._child_of.get(sender, ""))
        if child is None or child.state != GIVEN_UP:
            return None
        return f"its process cannot live ({child.detail})"

    async def begins(self, sender: str) -> str:
        """Wait until a tool's participant is given up; returns why."""
        while (why := self.reason(sender)) is None:
            await self._changed.wait()
        return why
