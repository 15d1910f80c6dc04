"""A stage with a journal and a frontend, as for the agents."""

from tests.agents.conftest import stage

__all__ = ["stage"]
