"""A generator and a journal on an in-process bus, a model that plays a script, and a frontend that receives
everything.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from local.bus.bus import Bus
from local.bus.zeromq import MemoryHub
from local.core import failpoints
from local.journal import client as journal_client
from local.journal.client import JournalClient

sys.path.insert(0, str(Path(__file__).parent))  # for the package `agent_stage` beside this file

from agent_stage.dice import Dice
from agent_stage.frontend import Frontend
from agent_stage.stage import Stage


@pytest.fixture
async def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Stage]:
    monkeypatch.setattr(journal_client, "FLUSH_SECONDS", 0.0)  # the last messages are not read
    hub = MemoryHub()
    async with AsyncExitStack() as stack:
        bus = await stack.enter_async_context(Bus("frontend", hub.transport(), durability=JournalClient()))
        frontend = Frontend(bus)
        await bus.ready()
        made = Stage(hub, frontend, tmp_path / "conversation.db")
        monkeypatch.setattr(failpoints, "reach", made.reach)
        stack.push_async_callback(made.end)
        await made.journal()
        yield made


@pytest.fixture
def dice() -> Dice:
    return Dice()


@pytest.fixture
def large_model(stage: Stage) -> None:
    """The model is so large that all tools are on its list."""
    stage.model.parameters = 70.0
