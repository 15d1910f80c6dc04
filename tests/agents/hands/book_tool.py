"""A tool that enters something into a ledger, with arguments in arguments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict

from local.runtime.participant import Resources, Settingless
from local.tools.tool import Tool


class Number(BaseModel):
    """Of an account."""

    model_config = ConfigDict(extra="forbid")
    number: str


class Entry(BaseModel):
    """What is entered."""

    model_config = ConfigDict(extra="forbid")
    account: Number
    lines: list[dict[str, int]]


class BookTool(Tool):
    """Enter something into the ledger."""

    name = "book"
    effect = "write"

    def __init__(self, folder: Path) -> None:
        super().__init__(Settingless())
        self.with_record(Resources(folder))
        self.entries: list[str] = []

    async def run(self, entry: Annotated[Entry, "What to enter"]) -> str:
        self.entries.append(entry.account.number)
        return "Entered."
