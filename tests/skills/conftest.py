"""A journal, a frontend, and the served participants on one bus."""

from __future__ import annotations

from tests.agents import conftest as agents

stage = agents.stage
