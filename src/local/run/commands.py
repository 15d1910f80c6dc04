"""`local2 run`: the whole system."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from local.cli.main import OFF, ConfigDir, DataDir, LogFileOption, LogLevel, WorkspaceOption


def run(
    headless: Annotated[bool, typer.Option("--headless", help="Only what is asked for: no API without --api.")] = False,
    api: Annotated[bool, typer.Option("--api", help="Serve the HTTP API.")] = False,
    api_host: Annotated[str | None, typer.Option(help="Where the API listens (127.0.0.1).")] = None,
    api_port: Annotated[int | None, typer.Option(help="Its port (8765); 0 takes a free one.", min=0, max=65535)] = None,
    model: Annotated[str | None, typer.Option(help="The model that answers (gemma4:12b).")] = None,
    prompt: Annotated[str | None, typer.Option(help="The variant of the prompt in generator.yaml.")] = None,
    respondent_b: Annotated[
        bool, typer.Option("--respondent-b", help="Have a second respondent answer too, to compare the two.")
    ] = False,
    model_b: Annotated[str | None, typer.Option(help="Its model, if it is another one; implies it.")] = None,
    temperature_b: Annotated[float | None, typer.Option(help="Its temperature; implies it.", min=0.0)] = None,
    backend: Annotated[str | None, typer.Option(help="auto, ollama, openai, google_genai, llama_server …")] = None,
    workspace: WorkspaceOption = None,
    config_dir: ConfigDir = None,
    data_dir: DataDir = None,
    log_level: LogLevel = "info",
    log_file: LogFileOption = None,
    starter: Annotated[int | None, typer.Option(hidden=True)] = None,
) -> None:
    """Start everything and serve until Ctrl-C."""
    from local.cli.main import Flags
    from local.run.run import run as run_system
    from local.runtime.logs import configure_logging, hold_warnings

    configure_logging("supervisor", log_level)
    hold_warnings()
    to_file = False if log_file == OFF else log_file
    flags = Flags(
        api=api,
        headless=headless,
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


# `local2 backup`, `restore` and `rebuild`: what is stored, copied, restored and rebuilt.


def backup(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that does not exist yet.")],
    data_dir: DataDir = None,
) -> None:
    """Copy all stored data, also while the system runs."""
    from local.run.upkeep import run_backup

    run_backup(folder, data_dir, typer.echo)


def restore(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What `backup` has written.")],
    force: Annotated[bool, typer.Option("--force", help="Move the present data aside.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Replace the data directory with a backup, while no system runs on it."""
    from local.run.upkeep import run_restore

    run_restore(folder, data_dir, typer.echo, replace=force)


def rebuild(
    what: Annotated[str, typer.Argument(metavar="WHAT", help="conversation(_b), engrams, ratings or all.")] = "all",
    data_dir: DataDir = None,
) -> None:
    """Rebuild a record, the memory or the ratings from the journal, while no system runs on it."""
    from local.run.upkeep import run_rebuild

    run_rebuild(what, data_dir, typer.echo)
