"""The command line of the tap: `local2 tap [echo] | list | hz | bw | delay | graph | info | pub`."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from local.cli.tap import echo, pub
from local.cli.tap_stats import bw, delay, graph, hz, info, list_subjects


class _EchoByDefault(TyperGroup):
    """A command group that reads `tap --subject tool.` as `tap echo --subject tool.`."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        if not args or args[0] not in {*self.commands, *ctx.help_option_names}:
            args = ["echo", *args]
        return super().parse_args(ctx, args)

    def format_options(self, ctx: typer.Context, formatter: Any) -> None:  # type: ignore[override]
        """Show the group's help with the options of echo, the default command."""
        super().format_options(ctx, formatter)
        command = self.commands["echo"]
        of_echo = typer.Context(command, parent=ctx, info_name="echo")
        with formatter.section("Options of echo, which may be left out"):
            formatter.write_dl(
                [line for each in command.get_params(of_echo) if (line := each.get_help_record(of_echo))]
            )


tap_app = typer.Typer(
    cls=_EchoByDefault,
    help="Watch the bus: echo (the default), list, hz, bw, delay, graph, info. Publish a message: pub.",
)
tap_app.command("echo")(echo)
tap_app.command("list")(list_subjects)
tap_app.command("hz")(hz)
tap_app.command("bw")(bw)
tap_app.command("delay")(delay)
tap_app.command("graph")(graph)
tap_app.command("info")(info)
tap_app.command("pub")(pub)
