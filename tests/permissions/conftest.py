"""A generator on an in-process bus; `tests/agents/agent_stage` has the parts of it."""

from tests.agents.conftest import dice, large_model, stage

__all__ = ["dice", "large_model", "stage"]
