"""The shell on an in-process bus."""

from tests.tools.conftest import granted, serve  # noqa: F401 - fixtures
