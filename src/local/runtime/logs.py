"""One line for each log record, on stderr and in the log file: time, level, participant, query, message."""

from __future__ import annotations

import atexit
import fcntl
import logging
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import Context, ContextVar, copy_context
from pathlib import Path
from typing import TextIO

from local.core.environment import secrets
from local.core.errors import LocalError, without_passwords
from local.core.secrets import secret_mask

# The log as a file, to which every process of a system appends.

MAX_BYTES = 5 * 1024 * 1024
KEPT = 3  # files beside the one that is written
MODE = 0o600
FLAGS = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


class LogFileHandler(logging.Handler):
    """A log handler that appends to a file which several processes share.

    Each line is one write, so lines do not mix. The process that finds the file full moves it aside (`.1` is the
    newest copy); the others notice and continue in the new file. It creates no folder, because a missing folder may be
    a data directory that was moved away. A line that cannot be written is dropped, and stderr reports that once until
    writing works again: logging never blocks.
    """

    def __init__(self, path: Path, *, max_bytes: int = MAX_BYTES, kept: int = KEPT) -> None:
        super().__init__()
        self._path, self._max_bytes, self._kept = path, max_bytes, kept
        self._file: int | None = None
        self._is_failing = False

    def emit(self, record: logging.LogRecord) -> None:
        """Append a line; never raises."""
        try:
            data = f"{self.format(record)}\n".encode(errors="backslashreplace")
            self._follow_name()
            if self._file is not None:
                self._make_room(self._file)
            if self._file is not None:
                os.write(self._file, data)
            self._is_failing = False
        except OSError as error:
            self._complain(error)

    def close(self) -> None:
        """Close the file."""
        self._leave()
        super().close()

    def _follow_name(self) -> None:
        """Open the file that now has the name; if it cannot be opened, continue with the old one."""
        if self._file is not None and self._is_current(self._file):
            return
        try:
            new = os.open(self._path, FLAGS, MODE)
        except OSError:
            if self._file is None:
                raise
            return
        os.fchmod(new, MODE)
        self._leave()
        self._file = new

    def _make_room(self, file: int) -> None:
        """Move a full file aside, unless another process does so at this moment."""
        if os.fstat(file).st_size < self._max_bytes:
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return
        try:
            if self._is_current(file):
                for number in range(self._kept, 0, -1):
                    with suppress(FileNotFoundError):
                        self._aside(number - 1).replace(self._aside(number))
        finally:
            fcntl.flock(file, fcntl.LOCK_UN)
        self._follow_name()

    def _aside(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number}") if number else self._path

    def _is_current(self, file: int) -> bool:
        try:
            return os.path.samestat(self._path.stat(), os.fstat(file))
        except FileNotFoundError:
            return False

    def _leave(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _complain(self, error: OSError) -> None:
        if not self._is_failing:
            self._is_failing = True
            with suppress(OSError, ValueError):
                sys.stderr.write(f"the log file {self._path} cannot be written: {error.strerror}\n")


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
"""The `extra` of a record that is only for the log file, not for the terminal."""

# They report each request at level info, which the bus already shows; of mcp also the ids of sessions, which are keys.
_CHATTY = ("httpx", "httpcore", "httpx2", "httpcore2", "mcp")


def one_line(text: str) -> str:
    """A text of any origin without line breaks and control characters."""
    return text.translate(_CONTROL)


class LineFormatter(logging.Formatter):
    """A formatter of log lines: `HH:MM:SS.mmm level participant query_id message` in local time; a traceback, if there
    is one, follows. Both are cut off where they are too long. With `with_date` the date comes first. Passwords in
    addresses, bearer tokens, `hidden` texts and known secrets of the store are masked.
    """

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
        """Return the masked text. A text that is too long is cut before a secret that would be split."""
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
    """The log handler of the terminal. It omits records that are only for the file, and while it holds back shows only
    errors.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._held: list[tuple[Context, logging.LogRecord]] | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Show a record, now or later."""
        if hasattr(record, "is_only_in_file"):
            return
        if self._held is not None and record.levelno < logging.ERROR:
            self._held.append((copy_context(), record))  # the line names the task's query
        else:
            super().emit(record)

    def hold_back(self) -> None:
        """Hold back records below the level error from now on."""
        self._held = self._held or []

    def show_held(self) -> None:
        """Show the held records, and all later ones. Callable from any thread."""
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
        log.warning("the log file cannot be opened: %s: %s", file, error.strerror)
        return None
    _add_file(name, file)
    return file


@contextmanager
def logged_to_file(name: str, file: Path | None) -> Iterator[Path | None]:
    """Log also to a file while a program runs, with lines at its start and end, and the error if there is one. Yields
    the file, if there is one.
    """
    made = log_to_file(name, file) if file else None
    log.info("starts as process %d", os.getpid(), extra=ONLY_IN_FILE)
    try:
        yield made
    except LocalError as error:
        log.error("%s", error, extra=ONLY_IN_FILE)  # the terminal gets it from the code that ends the program
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
    """Show the held records, and all later ones."""
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
