"""Tools that take no time: what remains is the way there and back."""

from __future__ import annotations

from typing import Annotated

from local.tools.tool import Tool


def reverse(text: str) -> str:
    """The tool as a function, for the bare loop."""
    return text[::-1]


class InstantTool(Tool):
    """Write a text backwards."""

    name = "instant"
    safety = "L0"

    async def run(self, text: Annotated[str, "The text"]) -> str:
        """See `reverse`."""
        return reverse(text)


class InstantChangeTool(Tool):
    """Write a text backwards, where that has to be allowed."""

    name = "instant_change"
    safety = "L1"

    async def run(self, text: Annotated[str, "The text"]) -> str:
        """See `reverse`."""
        return reverse(text)
