"""Tools served on an in-process bus, all of whose calls are granted."""

from tests.tools.conftest import granted, serve

__all__ = ["granted", "serve"]
