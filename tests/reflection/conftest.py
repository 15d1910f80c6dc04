"""Reflection at night, beside a memory and a holder of skills."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from local.reflection import routine
from tests.memory import conftest as memory  # before what it puts on the path

# isort: split

from agent_stage.night import Night
from agent_stage.skill_holder import SkillHolder

if TYPE_CHECKING:
    from tests.memory.conftest import Remembering

stage, remembering = memory.stage, memory.remembering


@pytest.fixture
async def night(remembering: Remembering, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Night:
    monkeypatch.setattr(routine, "LOOK_SECONDS", 0.01)
    await remembering.serve()
    await remembering.stage.serve(SkillHolder(tmp_path / "settings"))
    return Night(remembering, tmp_path)
