"""A tool whose runs can be seen and held up."""

from __future__ import annotations

import asyncio
from typing import Annotated

from local.runtime.participant import Settingless
from local.tools.tool import Tool


class Dice(Tool):
    """Roll a dice."""

    name = "dice"
    safety = "L0"
    repeatable = True

    def __init__(self) -> None:
        super().__init__(Settingless())
        self.rolls: list[int] = []
        self.started = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.may_fall = asyncio.Event()
        self.may_fall.set()

    async def run(self, sides: Annotated[int, "How many sides it has"] = 6) -> str:
        self.rolls.append(sides)
        self.started.set()
        try:
            await self.may_fall.wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise
        return f"a {sides - 1} of {sides}"
