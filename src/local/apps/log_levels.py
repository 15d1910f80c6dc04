"""The levels of log messages, by the names that users give them."""

LEVELS = ("debug", "info", "warning", "error")
