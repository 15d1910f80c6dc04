"""`local2 stories`: the acceptance stories."""

from __future__ import annotations

from typing import Annotated

import typer


def stories(
    names: Annotated[list[str] | None, typer.Argument(help="S1, S2 … or files (default: all).")] = None,
    api: Annotated[str | None, typer.Option(help="Address of a running system (default: one is started).")] = None,
    live: Annotated[bool, typer.Option("--live", help="Use the real model and the real web.")] = False,
    own_web: Annotated[
        bool, typer.Option("--own-web", help="With --live: search the stories' own web instead of the real one.")
    ] = False,
    model: Annotated[str | None, typer.Option(help="The model that answers.")] = None,
) -> None:
    """Play the acceptance stories and check what happens."""
    from local.apps.stories import run_stories

    raise typer.Exit(run_stories(names or [], api=api, live=live, own_web=own_web, model=model, show=typer.echo))
