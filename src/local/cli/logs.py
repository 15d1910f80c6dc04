"""`local2 logs`: shows and follows the log file."""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from local.cli.main import LEVELS, ConfigDir, DataDir, JsonOption, Moment, moment, write_lines, write_listed
from local.core.config import layers_for, load_system
from local.core.environment import data_dir as find_data_dir
from local.core.environment import environment
from local.core.errors import ConfigError
from local.runtime.log_reader import LogFollower, LogRecord, LogSelection, read_log

# `local2 logs`: the log of all processes of the system.

LINES = 200
LOOK_SECONDS = 0.25


def logs(
    participants: Annotated[
        list[str] | None, typer.Argument(metavar="NAME", help="Only messages of these participants.")
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Show new messages as they come, until Ctrl-C.")
    ] = False,
    since: Moment = None,
    lines: Annotated[
        int | None,
        typer.Option("--lines", "-n", min=0, help=f"Number of messages (default: the last {LINES}; all with --since)."),
    ] = None,
    level: Annotated[str, typer.Option(help="The lowest level to show: debug, info, warning, error.")] = "debug",
    query: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Only messages about this query; the beginning of its id is enough."),
    ] = None,
    as_json: JsonOption = False,
    log_file: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The log file, if the system was started with --log-file.")
    ] = None,
    config_dir: ConfigDir = None,
    data_dir: DataDir = None,
) -> None:
    """Show the log of the running or last system, one message per line with tracebacks below.

    Example: local2 logs generator web_search --since 10m --follow
    """
    if level not in LEVELS:
        raise typer.BadParameter(f"{level!r} is not one of {', '.join(LEVELS)}", param_hint="--level")
    begin = None if since is None else moment(since, "--since", time.time())
    selection = LogSelection(frozenset(participants or ()), LEVELS.index(level), begin, query or "")
    path = log_file or _configured(config_dir, data_dir)
    if not follow and not path.exists():
        raise ConfigError(f"there is no log at {path}; start the system, or name its log file with --log-file")
    last = lines if lines is not None else (LINES if since is None else None)
    with LogFollower(path) as follower:  # opened before the existing lines are read, so that none is missed in between
        wanted = (record for record in read_log(path, follower.offset) if selection.wants(record))
        found = _texts(deque(wanted, last), as_json=as_json)
        if follow:
            write_lines(found)
            _follow(follower, selection, as_json=as_json)
        else:
            write_listed(found, f"no line of {path} matches")


def _follow(follower: LogFollower, selection: LogSelection, *, as_json: bool) -> None:
    try:
        while True:
            write_lines(_texts(filter(selection.wants, follower.news()), as_json=as_json))
            sys.stdout.flush()
            time.sleep(LOOK_SECONDS)  # a file does not notify of its growth
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def _texts(records: Iterator[LogRecord] | deque[LogRecord], *, as_json: bool) -> Iterator[str]:
    for record in records:
        yield json.dumps(record.as_json()) if as_json else record.text


def _configured(config_dir: Path | None, data_dir: Path | None) -> Path:
    path = load_system(layers_for(config_dir), {}, environment()).log_path(find_data_dir(data_dir))
    if path is None:
        raise ConfigError("system.yaml says `log_file: false`: nothing is logged to a file")
    return path
