"""A stage with a journal and a frontend, as for the agents; its model is large enough for the tools for agents."""

from __future__ import annotations

import pytest

from local.models import leases
from tests.agents.conftest import dice, large_model, stage

__all__ = ["dice", "large_model", "stage"]


@pytest.fixture(autouse=True)
def no_wait_for_an_arbiter(monkeypatch: pytest.MonkeyPatch) -> None:
    """Background calls go ahead by themselves soon where a test serves no arbiter."""
    monkeypatch.setattr(leases, "ALONE_SECONDS", 0.01)
    monkeypatch.setattr(leases, "BEAT_SECONDS", 0.02)
