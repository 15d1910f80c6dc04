"""The command line of the tap: `local2 tap [echo] | list | hz`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperGroup

from local.apps.tap.echo import echo
from local.apps.tap.hz import WINDOW, hz
from local.apps.tap.subject_list import list_subjects

DataDir = Annotated[Path | None, typer.Option("--data-dir", help="Where the running system keeps its data.")]
BusOption = Annotated[str | None, typer.Option("--bus", metavar="PUB,SUB", help="A bus by its two addresses.")]
Json = Annotated[bool, typer.Option("--json", help="JSON, for programs.")]
Many = list[str] | None


class _EchoByDefault(TyperGroup):
    """Takes `tap --subject tool.` for `tap echo --subject tool.`."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        if not args or args[0] not in {*self.commands, *ctx.help_option_names}:
            args = ["echo", *args]
        return super().parse_args(ctx, args)


tap_app = typer.Typer(cls=_EchoByDefault, help="Watch the bus: echo (the default), list, hz.")


@tap_app.command("echo")
def echo_command(
    subject: Annotated[
        Many, typer.Option(help="A subject, a family ('tool.') or a pattern ('tool.*'). '*' is all, upkeep included.")
    ] = None,
    session: Annotated[str | None, typer.Option(metavar="ID", help="Only this session.")] = None,
    query: Annotated[str | None, typer.Option(metavar="ID", help="Only what this query caused.")] = None,
    field: Annotated[Many, typer.Option(metavar="PATH", help="Only this field, such as payload.answer.")] = None,
    json: Json = False,
    count: Annotated[int | None, typer.Option(min=1, help="End after so many lines.")] = None,
    no_payload: Annotated[bool, typer.Option("--no-payload", help="Headers only.")] = False,
    no_fold: Annotated[bool, typer.Option("--no-fold", help="A line for each token, not for each sentence.")] = False,
    data_dir: DataDir = None,
    bus: BusOption = None,
) -> None:
    """Show every message, one on a line."""
    echo(
        data_dir=data_dir,
        bus=bus,
        subjects=subject or (),
        session_id=session,
        query_id=query,
        fields=field or (),
        as_json=json,
        count=count,
        show_payload=not no_payload,
        fold=not no_fold,
    )


@tap_app.command("list")
def list_command(
    seconds: Annotated[float, typer.Option(min=0.1, help="How long to listen.")] = 5.0,
    json: Json = False,
    data_dir: DataDir = None,
    bus: BusOption = None,
) -> None:
    """Show which subjects are in use: count, rate, bytes, publishers."""
    list_subjects(data_dir=data_dir, bus=bus, seconds=seconds, as_json=json)


@tap_app.command("hz")
def hz_command(
    subject: Annotated[str, typer.Argument(help="A subject, a family or a pattern.")],
    window: Annotated[int, typer.Option(min=1, help="How many intervals to look back.")] = WINDOW,
    seconds: Annotated[float | None, typer.Option(min=0.1, help="End after so long.")] = None,
    data_dir: DataDir = None,
    bus: BusOption = None,
) -> None:
    """Show how often and how regularly something is said."""
    hz(subject=subject, data_dir=data_dir, bus=bus, window=window, seconds=seconds)
