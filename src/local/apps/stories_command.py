"""`local2 stories`: the acceptance stories."""

from __future__ import annotations

from typing import Annotated

import typer


def stories(
    names: Annotated[list[str] | None, typer.Argument(help="S1, S2 … or files (default: all).")] = None,
    api: Annotated[str | None, typer.Option(help="Address of a running system (default: one is started).")] = None,
    live: Annotated[bool, typer.Option("--live", help="Use the real model and the real web.")] = False,
    model: Annotated[str | None, typer.Option(help="The model that answers.")] = None,
) -> None:
    """Play the acceptance stories and check what happens."""
    from local.apps.stories import run_stories

    raise typer.Exit(run_stories(names or [], api=api, live=live, model=model, show=typer.echo))
