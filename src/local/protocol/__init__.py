"""The messages of the bus by the paths that extensions import them from: part of the public API."""
