"""What a log line looks like."""

import asyncio
import logging
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from local.core.environment import secrets
from local.runtime.logs import (
    MOST_CHARS,
    ONLY_IN_FILE,
    LineFormatter,
    configure_logging,
    hold_warnings,
    log_to_file,
    participant_var,
    query_id_var,
    release_warnings,
)


def line(message: str, *args: object) -> str:
    record = logging.LogRecord("local.tools.dice", logging.WARNING, __file__, 1, message, args, None)
    return LineFormatter("dice").format(record)


def test_a_line_has_the_time_the_level_the_participant_the_query_and_the_message() -> None:
    token = query_id_var.set("q-17")
    try:
        assert re.fullmatch(r"\d\d:\d\d:\d\d\.\d\d\d warning dice q-17 rolled 6", line("rolled %d", 6))
    finally:
        query_id_var.reset(token)


def test_a_message_can_neither_break_the_line_nor_send_controls_to_the_terminal() -> None:
    assert line("%s", "a\nb\x1b[2Jc\x9bd").endswith(r" a\nb\x1b[2Jc\x9bd")


def test_a_long_message_and_a_long_traceback_are_cut_off_and_no_part_of_a_secret_is_left() -> None:
    secret = "opensesame" * 20
    text = "x" * (MOST_CHARS - 30) + secret + "y" * 10_000_000
    try:
        raise ValueError(text)
    except ValueError:
        record = logging.LogRecord("dice", logging.ERROR, __file__, 1, "%s", (text,), sys.exc_info())
    formatted = LineFormatter("dice", hidden=(secret,)).format(record)
    assert len(formatted) < 2 * MOST_CHARS + 200
    assert "opensesame"[:3] not in formatted
    assert formatted.count("cut off") == 2 and "Traceback" in formatted


@pytest.fixture
def root_logger() -> Iterator[logging.Logger]:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    root.handlers.clear()  # basicConfig closes those it replaces, and pytest's are still needed
    yield root
    root.handlers[:], level = before
    root.setLevel(level)


def test_configured_logging_goes_to_stderr_from_the_level_on(
    root_logger: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logging("dice", "info")
    logging.getLogger("my_tools").info("thrown")
    logging.getLogger("my_tools").debug("not this")
    for chatty in ("httpx", "httpx2", "mcp.server.streamable_http_manager"):
        logging.getLogger(chatty).info("nor this")

    assert root_logger.handlers[0].stream is sys.stderr  # type: ignore[attr-defined]
    assert [text.split(" ", 1)[1] for text in capsys.readouterr().err.splitlines()] == ["info dice - thrown"]


@pytest.fixture
def chatty() -> Iterator[logging.Logger]:
    logger = logging.getLogger("httpx")
    before = logger.level
    yield logger
    logger.setLevel(before)


def test_no_secret_is_in_a_line() -> None:
    hidden = secrets(
        {"BRAVE_API_KEY": "BSA-123456", "LOCAL2_API_TOKEN": "t0psecret", "A_KEY": "short", "HOME": "/home/me"}
    )
    record = logging.LogRecord(
        "x", logging.INFO, __file__, 1, "%s", ("BSA-123456 short http://me:pw@home/ Bearer abc /home/me",), None
    )
    line = LineFormatter("dice", hidden=hidden).format(record)
    assert line.endswith("*** short http://…@home/ Bearer *** /home/me") and "t0psecret" in hidden


def test_the_file_has_what_the_terminal_has_with_the_date_and_more(
    root_logger: logging.Logger, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logging("dice", "info")
    file = log_to_file("dice", tmp_path / "logs" / "local2.log")
    assert file is not None
    log = logging.getLogger("my_tools")
    log.info("starts", extra=ONLY_IN_FILE)
    log.warning("thrown")
    configure_logging("coin", "info", file)
    log.warning("tossed")
    assert [line.split(" ", 1)[1] for line in capsys.readouterr().err.splitlines()] == [
        "warning dice - thrown", "warning coin - tossed",
    ]  # fmt: skip
    said = [re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} (.*)", line) for line in file.read_text().splitlines()]
    assert [line and line[1] for line in said] == [
        "info dice - starts",
        "warning dice - thrown",
        "warning coin - tossed",
    ]


def test_an_error_comes_before_the_warnings_that_were_held(
    root_logger: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logging("supervisor", "info")
    hold_warnings()
    log = logging.getLogger("local")
    for say, text in ((log.warning, "first"), (log.error, "second"), (log.info, "third")):
        say(text)
    assert [line.split()[-1] for line in capsys.readouterr().err.splitlines()] == ["second"]
    release_warnings()
    release_warnings()
    log.warning("fourth")
    assert [line.split()[-1] for line in capsys.readouterr().err.splitlines()] == ["first", "third", "fourth"]


async def test_a_line_that_was_held_names_the_participant_and_the_query_of_its_task(
    root_logger: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logging("cron+swarm", "info")
    hold_warnings()

    async def warn() -> None:
        participant_var.set("swarm")
        query_id_var.set("q-17")
        logging.getLogger("local").warning("waits")

    await asyncio.create_task(warn())
    release_warnings()
    assert capsys.readouterr().err.split()[1:] == ["warning", "swarm", "q-17", "waits"]
