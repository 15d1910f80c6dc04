"""The real API on a real socket, for the routes of this capability."""

from tests.api.conftest import bare_system, client, events_of, system

__all__ = ["bare_system", "client", "events_of", "system"]
