"""A generator on an in-process bus, and participants served beside a caller."""

from tests.agents.conftest import dice, large_model, stage
from tests.tools.conftest import serve

__all__ = ["dice", "large_model", "serve", "stage"]
