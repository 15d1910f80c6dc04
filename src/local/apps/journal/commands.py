"""The command line of the journal: `local2 journal list | show | dead | redeliver | export | play`."""

from __future__ import annotations

import functools
import time
from pathlib import Path
from typing import Annotated

import typer

from local.apps.command_line import BusOption, DataDir, Moment, Subject, moment
from local.apps.journal.journal_player import at_once as without_pause
from local.apps.journal.journal_player import play, refuse_own_system, spaced, stepwise
from local.apps.journal.journal_record import read_export
from local.apps.journal.journal_source import open_source
from local.apps.journal.play_filter import PlayFilter
from local.apps.journal.redelivery import redeliver
from local.apps.journal.show import list_dead_letters, list_sessions, show_conversation, show_messages
from local.apps.tap.selection import Selection
from local.apps.terminal import STANDARD_OUTPUT, terminal_width, write_lines, write_listed
from local.environment import data_dir as find_data_dir

journal_app = typer.Typer(help="What is on record: list, show, dead, redeliver, export, play.")


@journal_app.command("list")
def list_command(data_dir: DataDir = None) -> None:
    """Show the sessions: first query, number of messages, first and last time."""
    with open_source(data_dir) as source:
        write_lines(list_sessions(source, terminal_width()))


@journal_app.command("show")
def show_command(
    key: Annotated[str, typer.Argument(metavar="ID", help="A session or a query.")],
    messages: Annotated[bool, typer.Option("--messages", help="Every message on a line, instead.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Show what was asked, thought, called and answered."""
    with open_source(data_dir) as source:
        records = source.find(key)
        write_lines(show_messages(records) if messages else show_conversation(source, records))


@journal_app.command("dead")
def dead_command(data_dir: DataDir = None) -> None:
    """Show the messages that a participant could not handle and is given no more, and why."""
    with open_source(data_dir) as source:
        write_listed(list_dead_letters(source), "there are no dead letters")


@journal_app.command("redeliver")
def redeliver_command(
    numbers: Annotated[list[int] | None, typer.Argument(metavar="NUMBER...", help="As `dead` shows them.")] = None,
    consumer: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Only to this one; without numbers, all."),
    ] = None,
    data_dir: DataDir = None,
    bus: BusOption = None,
) -> None:
    """Have dead letters given to their participant again, when what they were due to is mended.

    The system has to run, the participant need not: it gets them when it does. What was deleted meanwhile is given to
    nobody. A query that was given up has had its answer, that it failed: ask it again instead.
    """
    if not numbers and consumer is None:
        raise typer.BadParameter("give the NUMBERs of dead letters, or --consumer NAME for all that it has")
    write_lines(redeliver(numbers or (), consumer, data_dir=data_dir, addresses=bus))


@journal_app.command("export")
def export_command(
    session: Annotated[str | None, typer.Option(metavar="ID", help="Only this session.")] = None,
    since: Moment = None,
    until: Moment = None,
    subject: Subject = None,
    output: Annotated[Path | None, typer.Option(metavar="FILE", help="Instead of the standard output.")] = None,
    data_dir: DataDir = None,
) -> None:
    """Write messages as JSON lines, one object for each."""
    now = time.time()
    selection = Selection(tuple(subject or ()), session_id=session)
    begin = None if since is None else moment(since, "--since", now)
    end = None if until is None else moment(until, "--until", now)
    with open_source(data_dir) as source:
        records = source.select(selection, begin, end)
        write_lines((record.as_json(source.blobs) for record in records), output or STANDARD_OUTPUT)


@journal_app.command("play")
def play_command(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What `export` has written.")],
    rate: Annotated[float | None, typer.Option(min=0.001, help="How many times as fast as it was.")] = None,
    step: Annotated[bool, typer.Option("--step", help="Wait for Enter before each message.")] = False,
    at_once: Annotated[bool, typer.Option("--at-once", help="Without any pause.")] = False,
    subject: Subject = None,
    include_queries: Annotated[
        bool, typer.Option("--include-queries", help="Also what makes the system work: queries are asked again.")
    ] = False,
    same_ids: Annotated[bool, typer.Option("--same-ids", help="Keep the ids of the messages.")] = False,
    twice_on_record: Annotated[
        bool, typer.Option("--twice-on-record", help="On a system that will have it on record a second time.")
    ] = False,
    data_dir: DataDir = None,
    bus: BusOption = None,
) -> None:
    """Say an export again on a bus: one of its own (--bus), or that of a running system.

    For whoever listens and for user interfaces: queries, tool calls and cancellations are left out unless you ask for
    them, because a living system would answer, carry out and obey them again. A running system puts what is played on
    record a second time, unless it has it under the same ids (--same-ids): say that you want that (--twice-on-record).
    """
    if (rate is not None) + step + at_once > 1:
        raise typer.BadParameter("--rate, --step and --at-once exclude each other; give one of them")
    make_pace = without_pause if at_once else stepwise if step else functools.partial(spaced, rate or 1.0)
    play_filter = PlayFilter(Selection(tuple(subject or ("*",))), include_queries=include_queries)
    records = list(play_filter.choose(read_export(file)))
    if not (same_ids or twice_on_record):
        refuse_own_system(find_data_dir(data_dir), bus)
    play(records, play_filter.left_out, make_pace, keeps_ids=same_ids, data_dir=data_dir, addresses=bus)
