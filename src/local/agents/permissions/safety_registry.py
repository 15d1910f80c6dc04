"""What tools have said of their dangers, by themselves: nobody else is believed."""

from __future__ import annotations

import asyncio

from local.protocol.messages import ToolSchema
from local.protocol.safety import UNDECLARED_CATEGORY, UNDECLARED_SAFETY, Category, Safety

PATIENCE_SECONDS = 2.0  # for a tool that has not been heard yet: just after a start


class SafetyRegistry:
    """Use `heard` for whatever a tool says of itself."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Safety, Category]] = {}
        self._news = asyncio.Event()

    def heard(self, schema: ToolSchema) -> None:
        """A tool says what it is."""
        self._known[schema.tool] = schema.safety, schema.category
        self._news.set()

    async def of(self, tool: str) -> tuple[Safety, Category]:
        """The level and the category of a tool; of one that says nothing in time, the highest."""
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while tool not in self._known:
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            return UNDECLARED_SAFETY, UNDECLARED_CATEGORY
        return self._known[tool]
