"""A user's tool whose effect shows outside: a line in a file."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Annotated

from local.core.config import Settings
from local.tools.tool import Tool


class StampSettings(Settings):
    """`log` is the file that gets a line for each effect."""

    log: Path


class StampTool(Tool):
    """Press a seal."""

    name = "stamp"
    effect = "write"
    trusted = True  # it says what it was told: its results taint no session, in which it could not be called again
    Config = StampSettings

    def __init__(self, config: StampSettings) -> None:
        super().__init__(config)
        self._log = config.log

    async def run(self, card: Annotated[str, "Which one"]) -> str:
        """One line, written at once or not at all."""
        await asyncio.to_thread(_append, self._log, card)
        return f"stamped: {card}"


def _append(log: Path, line: str) -> None:
    file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, f"{line}\n".encode())
    finally:
        os.close(file)
