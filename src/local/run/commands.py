"""`local2 run`: the whole system."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from local.cli.main import OFF, ConfigDir, DataDir, LogFileOption, LogLevel, WorkspaceOption


def run(
    headless: Annotated[
        bool, typer.Option("--headless", help="Open no window, and start no API unless --api is given.")
    ] = False,
    desktop: Annotated[
        bool, typer.Option("--desktop", help="Open the desktop window, and offer to install it if it is missing.")
    ] = False,
    api: Annotated[bool, typer.Option("--api", help="Serve the HTTP API.")] = False,
    api_host: Annotated[str | None, typer.Option(help="Address that the API listens on (default: 127.0.0.1).")] = None,
    api_port: Annotated[
        int | None, typer.Option(help="Port of the API (default: 8765); 0 chooses a free one.", min=0, max=65535)
    ] = None,
    model: Annotated[str | None, typer.Option(help="The model that answers (default: gemma4:12b).")] = None,
    prompt: Annotated[str | None, typer.Option(help="A prompt variant from generator.yaml.")] = None,
    respondent_b: Annotated[
        bool,
        typer.Option(
            "--respondent-b", help="Start a second respondent, whose answers are compared with the first one's."
        ),
    ] = False,
    model_b: Annotated[str | None, typer.Option(help="Model of the second respondent; implies --respondent-b.")] = None,
    temperature_b: Annotated[
        float | None, typer.Option(help="Temperature of the second respondent; implies --respondent-b.", min=0.0)
    ] = None,
    backend: Annotated[
        str | None, typer.Option(help="Kind of model server: auto, ollama, openai, google_genai, llama_server …")
    ] = None,
    workspace: WorkspaceOption = None,
    config_dir: ConfigDir = None,
    data_dir: DataDir = None,
    log_level: LogLevel = "info",
    log_file: LogFileOption = None,
    starter: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Start the system and serve until Ctrl-C. Without --headless, it opens the desktop window if PySide6 and a display
    are there, and else prints the address of the page.
    """
    from local.cli.main import Flags
    from local.run.run import run as run_system
    from local.runtime.logs import configure_logging, hold_warnings

    configure_logging("supervisor", log_level)
    hold_warnings()
    to_file = False if log_file == OFF else log_file
    flags = Flags(
        api=api,
        headless=headless,
        desktop=desktop,
        config_dir=config_dir,
        data_dir=data_dir,
        log_level=log_level,
        system=_given(api_host=api_host, api_port=api_port, backend=backend, log_file=to_file, workspace=workspace),
        generator=_given(model=model, prompt=prompt),
        respondent_b=_of_b(respondent_b, model=model_b, temperature=temperature_b),
        starter=starter,
    )
    raise typer.Exit(run_system(flags))


def _of_b(is_wanted: bool, **values: Any) -> dict[str, Any] | None:
    given = _given(**values)
    return given if is_wanted or given else None


def _given(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


# `local2 backup`, `restore` and `rebuild`: copies of the stored data.


def backup(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that does not exist yet.")],
    data_dir: DataDir = None,
) -> None:
    """Copy all stored data to a new folder. The system may be running."""
    from local.run.upkeep import run_backup

    run_backup(folder, data_dir, typer.echo)


def restore(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that `local2 backup` wrote.")],
    force: Annotated[bool, typer.Option("--force", help="Move existing data aside.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Replace the data directory with a backup. The system must not be running."""
    from local.run.upkeep import run_restore

    run_restore(folder, data_dir, typer.echo, replace=force)


def rebuild(
    what: Annotated[
        str, typer.Argument(metavar="WHAT", help="conversation, conversation_b, engrams, ratings or all.")
    ] = "all",
    data_dir: DataDir = None,
) -> None:
    """Rebuild the conversations, the memory or the ratings from the journal. The system must not be running."""
    from local.run.upkeep import run_rebuild

    run_rebuild(what, data_dir, typer.echo)
