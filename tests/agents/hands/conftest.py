"""An attacked assistant in its household, with a web and a name server that record leaks."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from agent_stage.hostile_web import HostileWeb
from agent_stage.stage import Stage

from tests.agents.hands.attacked_assistant import AttackedAssistant
from tests.agents.hands.household import Household
from tests.agents.hands.name_server import NameServer


@pytest.fixture
def household(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Household:
    made = Household(tmp_path_factory.mktemp("household"), tmp_path)
    monkeypatch.setenv("HOME", str(made.home))
    return made


@pytest.fixture
async def attacked(stage: Stage, household: Household) -> AsyncIterator[AttackedAssistant]:
    with HostileWeb() as web, NameServer() as names:
        yield AttackedAssistant(stage, web, names, household)
