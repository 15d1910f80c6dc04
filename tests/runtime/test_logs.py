"""What a log line looks like."""

import logging
import re
import sys
from collections.abc import Iterator

import pytest

from local.runtime.logs import LineFormatter, configure_logging, query_id_var


def line(message: str, *args: object) -> str:
    record = logging.LogRecord("local.tools.dice", logging.WARNING, __file__, 1, message, args, None)
    return LineFormatter("dice").format(record)


def test_a_line_has_the_time_the_level_the_participant_the_query_and_the_message() -> None:
    token = query_id_var.set("q-17")
    try:
        assert re.fullmatch(r"\d\d:\d\d:\d\d\.\d\d\d warning dice q-17 rolled 6", line("rolled %d", 6))
    finally:
        query_id_var.reset(token)


def test_a_line_outside_any_query_has_a_dash_in_its_place() -> None:
    assert line("ready").endswith(" dice - ready")


def test_a_message_can_neither_break_the_line_nor_send_controls_to_the_terminal() -> None:
    assert line("%s", "a\nb\x1b[2Jc\x9bd").endswith(r" a\nb\x1b[2Jc\x9bd")


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
    logging.getLogger("httpx").info("nor this")

    assert root_logger.handlers[0].stream is sys.stderr  # type: ignore[attr-defined]
    assert [text.split(" ", 1)[1] for text in capsys.readouterr().err.splitlines()] == ["info dice - thrown"]


@pytest.fixture
def chatty() -> Iterator[logging.Logger]:
    logger = logging.getLogger("httpx")
    before = logger.level
    yield logger
    logger.setLevel(before)


def test_a_level_that_is_set_already_is_left_alone_as_setting_it_writes_to_every_logger(
    root_logger: logging.Logger, chatty: logging.Logger, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure_logging("template", "info")
    written: list[object] = []
    monkeypatch.setattr(logging.Logger, "setLevel", lambda logger, level: written.append(level))
    configure_logging("dice", "info")
    assert written == []


def test_a_child_that_debugs_hears_what_its_template_did_not_want_to(
    root_logger: logging.Logger, chatty: logging.Logger
) -> None:
    configure_logging("template", "info")
    configure_logging("dice", "debug")
    assert chatty.isEnabledFor(logging.DEBUG)
