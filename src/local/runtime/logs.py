"""One line for each log record, on stderr and in the log file: time, level, participant, query, message."""

from __future__ import annotations

import atexit
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from pathlib import Path
from typing import TextIO

from local.environment import secrets
from local.errors import LocalError
from local.errors.base import without_passwords
from local.runtime.log_file_handler import LogFileHandler
from local.secrets.secret_mask import secret_mask

log = logging.getLogger(__name__)

query_id_var: ContextVar[str] = ContextVar("query_id", default="-")
"""The query that the running task works for; set it where a message is handled and every log line below carries it."""

participant_var: ContextVar[str] = ContextVar("participant", default="")
"""The participant that the running task belongs to, in a process that several share."""

# Text from the web or a model must neither break the line nor reach the terminal as a control sequence.
_CONTROL = {code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))} | {9: "\t", 10: "\\n", 13: "\\r"}
_BEARER = re.compile(r"(?<=\bBearer )\S+")
MASK = "***"
MOST_CHARS = 20_000  # of a message, and of a traceback
LONGEST_SECRET = 1000
ONLY_IN_FILE = {"is_only_in_file": True}
"""The `extra` of a record that is for whoever reads the file later, not for the terminal."""

# They report each request at level info, which the bus already shows; of mcp also the ids of sessions, which are keys.
_CHATTY = ("httpx", "httpcore", "httpx2", "httpcore2", "mcp")


def one_line(text: str) -> str:
    """A text of any origin without line breaks and control characters."""
    return text.translate(_CONTROL)


class LineFormatter(logging.Formatter):
    """`HH:MM:SS.mmm level participant query_id message` in local time; a traceback, if there is one, follows. Both
    are cut off where they are too long. With `with_date` the date comes first. Passwords in addresses, bearer tokens
    and `hidden` texts are masked, and secrets of the store that this process knows."""

    def __init__(self, participant: str, *, with_date: bool = False, hidden: tuple[str, ...] = ()) -> None:
        super().__init__()
        self._participant, self._hidden = participant, hidden
        self._time = "%Y-%m-%d %H:%M:%S" if with_date else "%H:%M:%S"

    def format(self, record: logging.LogRecord) -> str:
        """The line without its end."""
        at = f"{self.formatTime(record, self._time)}.{int(record.msecs):03d}"
        message = self._readable(record.getMessage(), one_line)
        line = f"{at} {record.levelname.lower()} {self._who()} {query_id_var.get()} {message}"
        return f"{line}\n{self._readable(self.formatException(record.exc_info))}" if record.exc_info else line

    def _who(self) -> str:
        return participant_var.get() or self._participant

    def _readable(self, text: str, made: Callable[[str], str] = str) -> str:
        """What `made` makes of the text, masked. One that is too long loses its end, and with that any half secret."""
        if len(text) <= MOST_CHARS:
            return self._masked(made(text))
        begun = self._masked(made(text[:MOST_CHARS]))[:-LONGEST_SECRET]
        return f"{begun} … (cut off, {len(text)} characters in all)"

    def _masked(self, text: str) -> str:
        for hidden in self._hidden:
            text = text.replace(hidden, MASK)
        if secret_mask.names:
            text = secret_mask.text(text)
        return _BEARER.sub(MASK, without_passwords(text))


class TerminalHandler(logging.StreamHandler[TextIO]):
    """Shows what is not only for the file; while it holds back, errors alone."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._held: list[tuple[Context, logging.LogRecord]] | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Show a record, now or later."""
        if hasattr(record, "is_only_in_file"):
            return
        if self._held is not None and record.levelno < logging.ERROR:
            self._held.append((copy_context(), record))  # the line names whose task it was
        else:
            super().emit(record)

    def hold_back(self) -> None:
        """From now on keep what is no error."""
        self._held = self._held or []

    def show_held(self) -> None:
        """Show what was held, and all that comes. From any thread."""
        self.acquire()
        try:
            held, self._held = self._held or [], None
            for context, record in held:
                context.run(self.emit, record)
        finally:
            self.release()


def configure_logging(name: str, level: str, file: Path | None = None) -> None:
    """Send all logging of this process to stderr, and to a file if one is given, under the participant's `name`.

    `level` is a name of the logging module in any case; another raises ValueError. Replaces what was configured before.
    """
    terminal = TerminalHandler(sys.stderr)
    terminal.setFormatter(LineFormatter(name, hidden=secrets()))
    logging.basicConfig(handlers=[terminal], force=True)
    if file is not None:
        _add_file(name, file)
    _set_level(logging.getLogger(), level.upper())
    for chatty in _CHATTY:
        _set_level(logging.getLogger(chatty), "NOTSET" if level.upper() == "DEBUG" else "WARNING")


def log_to_file(name: str, file: Path) -> Path | None:
    """From now on send all logging of this process to a file, too, in a folder that is made if need be. Returns it;
    None if it cannot be: nothing waits for a log."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        log.warning("there is no log file: %s: %s", file, error.strerror)
        return None
    _add_file(name, file)
    return file


@contextmanager
def logged_to_file(name: str, file: Path | None) -> Iterator[Path | None]:
    """Log to a file, too, for as long as a program runs, and say there when that begins and ends, and of which error.
    The file is given if there is one."""
    made = log_to_file(name, file) if file else None
    log.info("starts as process %d", os.getpid(), extra=ONLY_IN_FILE)
    try:
        yield made
    except LocalError as error:
        log.error("%s", error, extra=ONLY_IN_FILE)  # the terminal gets it from whoever ends the program
        raise
    finally:
        log.info("stopped", extra=ONLY_IN_FILE)


def hold_warnings() -> None:
    """Keep warnings back from the terminal until `release_warnings`, at the latest until the end of the process: an
    error that ends a start comes first, and is not to be looked for among them."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, TerminalHandler):
            handler.hold_back()
            atexit.register(handler.show_held)


def release_warnings() -> None:
    """Show what was held, and all that comes."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, TerminalHandler):
            handler.show_held()


def _add_file(name: str, file: Path) -> None:
    handler = LogFileHandler(file)
    handler.setFormatter(LineFormatter(name, with_date=True, hidden=secrets()))
    logging.getLogger().addHandler(handler)


def _set_level(logger: logging.Logger, level: str) -> None:
    # Setting one writes to every logger there is: half a megabyte that a child shared with its template until then.
    if logging.getLevelName(logger.level) != level:
        logger.setLevel(level)
