"""One line on stderr for each log record: time, level, participant, query, message."""

from __future__ import annotations

import logging
import sys
from contextvars import ContextVar

from local.errors.base import without_passwords

query_id_var: ContextVar[str] = ContextVar("query_id", default="-")
"""The query that the running task works for; set it where a message is handled and every log line below carries it."""

# Text from the web or a model must neither break the line nor reach the terminal as a control sequence.
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))} | {9: "\t", 10: "\\n", 13: "\\r"}
# They report each request at level info, which the bus already shows.
_CHATTY = ("httpx", "httpcore")


def one_line(text: str) -> str:
    """A text of any origin without line breaks and control characters."""
    return text.translate(_CONTROL)


class LineFormatter(logging.Formatter):
    """`HH:MM:SS.mmm level participant query_id message` in local time; a traceback, if there is one, follows."""

    def __init__(self, participant: str) -> None:
        super().__init__()
        self._participant = participant

    def format(self, record: logging.LogRecord) -> str:
        """The line without its end."""
        at = f"{self.formatTime(record, '%H:%M:%S')}.{int(record.msecs):03d}"
        message = one_line(record.getMessage())
        line = f"{at} {record.levelname.lower()} {self._participant} {query_id_var.get()} {message}"
        whole = f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line
        return without_passwords(whole)


def configure_logging(name: str, level: str) -> None:
    """Send all logging of this process to stderr under the participant's `name`.

    `level` is a name of the logging module in any case; another raises ValueError. Replaces what was configured before.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(LineFormatter(name))
    logging.basicConfig(handlers=[handler], force=True)
    _set_level(logging.getLogger(), level.upper())
    for chatty in _CHATTY:
        _set_level(logging.getLogger(chatty), "NOTSET" if level.upper() == "DEBUG" else "WARNING")


def _set_level(logger: logging.Logger, level: str) -> None:
    # Setting one writes to every logger there is: half a megabyte that a child shared with its template until then.
    if logging.getLevelName(logger.level) != level:
        logger.setLevel(level)
