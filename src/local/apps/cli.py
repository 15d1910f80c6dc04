"""The command line: `local2 run | ask | chat | sessions | memory | status | logs | tap | journal | model | …`."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Annotated, Any

import typer

from local.apps.command_line import OFF, ConfigDir, DataDir, JsonOption, LogFileOption, LogLevel, exit_status, new_app
from local.environment import environment
from local.errors import StartInterrupted

app = new_app()
_HIDDEN = ("repl", "pull")  # other names of chat, and of model pull
_GROUPS = {
    "journal": "local.apps.journal.commands:journal_app",
    "memory": "local.apps.memory_commands:memory_app",
    "model": "local.apps.model_commands:model_app",
    "sessions": "local.apps.session_commands:session_app",
    "tap": "local.apps.tap.commands:tap_app",
    "user": "local.apps.user_commands:user_app",
}
_COMMANDS = {
    "ask": ("local.apps.console.commands", "ask_once"),
    "chat": ("local.apps.console.commands", "chat"),
    "repl": ("local.apps.console.commands", "chat"),
    "completion": ("local.apps.completion_command", "completion"),
    "logs": ("local.apps.log_command", "logs"),
    "status": ("local.apps.status_command", "status"),
    "trace": ("local.apps.console.commands", "trace"),
    "pull": ("local.apps.model_commands", "pull"),
    "participant": ("local.apps.participant_cli", "participant"),
    "restart": ("local.apps.restart_command", "restart"),
}

prompt_app = typer.Typer(help="What the model is told.")
app.add_typer(prompt_app, name="prompt")


def _tell_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"local2 {version('local2')}")
        raise typer.Exit


@app.callback()
def local2(
    version: Annotated[
        bool, typer.Option("--version", help="Tell the version.", callback=_tell_version, is_eager=True)
    ] = False,
) -> None:
    """A local assistant whose every thought is on a bus you can watch."""


@app.command()
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
    config_dir: ConfigDir = None,
    data_dir: DataDir = None,
    log_level: LogLevel = "info",
    log_file: LogFileOption = None,
) -> None:
    """Start everything and serve until Ctrl-C."""
    from local.apps.flags import Flags
    from local.apps.run import run as run_system
    from local.runtime.logs import configure_logging, hold_warnings

    configure_logging("supervisor", log_level)
    hold_warnings()
    of_b = _given(model=model_b, temperature=temperature_b)
    flags = Flags(
        api=api,
        headless=headless,
        config_dir=config_dir,
        data_dir=data_dir,
        log_level=log_level,
        system=_given(
            api_host=api_host, api_port=api_port, backend=backend, log_file=False if log_file == OFF else log_file
        ),
        generator=_given(model=model, prompt=prompt),
        respondent_b=of_b if respondent_b or of_b else None,
    )
    raise typer.Exit(run_system(flags))


@app.command()
def stories(
    names: Annotated[list[str] | None, typer.Argument(help="S1, S2 … or files (default: all).")] = None,
    api: Annotated[str | None, typer.Option(help="Address of a running system (default: one is started).")] = None,
    live: Annotated[bool, typer.Option("--live", help="Use the real model and the real web.")] = False,
    model: Annotated[str | None, typer.Option(help="The model that answers.")] = None,
) -> None:
    """Play the acceptance stories and check what happens."""
    from local.apps.stories import run_stories

    raise typer.Exit(run_stories(names or [], api=api, live=live, model=model, show=typer.echo))


@app.command()
def doctor(
    as_json: JsonOption = False,
    config_dir: ConfigDir = None,
    data_dir: DataDir = None,
) -> None:
    """Look for what keeps LoCAL2 from working, and say what to do."""
    from local.apps.doctor.checkup import run as examine

    raise typer.Exit(examine(config_dir=config_dir, data_dir=data_dir, as_json=as_json))


@app.command()
def backup(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder that is not there yet.")],
    data_dir: DataDir = None,
) -> None:
    """Copy everything that is kept, also while the system runs."""
    from local.apps.upkeep import run_backup

    run_backup(folder, data_dir, typer.echo)


@app.command()
def restore(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="What `backup` has written.")],
    force: Annotated[bool, typer.Option("--force", help="Move aside what is there.")] = False,
    data_dir: DataDir = None,
) -> None:
    """Put a backup in the place of the data directory, while no system runs on it."""
    from local.apps.upkeep import run_restore

    run_restore(folder, data_dir, typer.echo, replace=force)


@app.command()
def rebuild(
    what: Annotated[str, typer.Argument(metavar="WHAT", help="conversation(_b), engrams, ratings or all.")] = "all",
    data_dir: DataDir = None,
) -> None:
    """Make a record, the memory or the ratings anew from the journal, while no system runs on it."""
    from local.apps.upkeep import run_rebuild

    run_rebuild(what, data_dir, typer.echo)


@prompt_app.callback()
def prompt_callback() -> None:
    """What the model is told."""


@prompt_app.command("show")
def show_prompt(
    prompt: Annotated[str | None, typer.Option(metavar="NAME", help="A variant of generator.yaml.")] = None,
    session: Annotated[
        str | None, typer.Option(metavar="ID", help="With this session of a running system; its beginning will do.")
    ] = None,
    config_dir: ConfigDir = None,
    data_dir: DataDir = None,
) -> None:
    """Print what the model gets before a question."""
    from local.apps.prompt import show

    typer.echo(show(prompt, session, config_dir, data_dir))


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point. Exit status 2, with one line, for whatever the user can mend."""
    os.umask(0o077)  # what is written is for this user's eyes; the template and all children inherit it
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    if arguments[:1] == ["run"]:
        _end_when_told()
        _warm_up()
    _add_groups(_completed_command() or (arguments[0] if arguments else ""))
    sys.exit(exit_status(app, arguments or ["--help"], "local2"))


def _end_when_told() -> None:
    """With one line, at once, from now on; whoever has more to do at its end says so later. With nohup, the terminal's
    end is none."""
    signal.signal(signal.SIGINT, _end)
    signal.signal(signal.SIGTERM, _end)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, _end)


def _end(number: int, frame: FrameType | None) -> None:
    os.write(2, f"{StartInterrupted()}\n".encode())
    os._exit(128 + number)


def _completed_command() -> str:
    """The command whose options or arguments a shell asks for at the Tab key; empty if it asks for none."""
    words = environment().completed_words
    if not words:
        return ""
    from typer.completion import completion_init  # type: ignore[attr-defined] # re-exported on purpose

    completion_init()
    return words[1] if len(words) > 2 else ""


def _add_groups(command: str) -> None:
    """The commands of other modules, or only the one that `command` names: their imports would hold up the others."""
    own = {info.callback.__name__ for info in app.registered_commands if info.callback}
    known = {*own, *_COMMANDS, *_GROUPS, "prompt"}
    for name, (module, function) in _COMMANDS.items():
        if command == name or command not in known:
            app.command(name, hidden=name in _HIDDEN)(getattr(importlib.import_module(module), function))
    for name, target in _GROUPS.items():
        if command == name or command not in known:
            module, _, group = target.partition(":")
            app.add_typer(getattr(importlib.import_module(module), group), name=name)


def _warm_up() -> None:
    """The template imports what the children share while this process is still reading its flags."""
    from local.apps.warm_up import PRELOAD
    from local.runtime.template import prepare_template

    with suppress(OSError):  # the start itself says what is wrong
        prepare_template(PRELOAD)


def _given(**values: Any) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


if __name__ == "__main__":
    main()
