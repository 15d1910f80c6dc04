"""`local2 model list | pull | use`: list models, pull them, and choose the one that answers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from local.cli.client import running_system
from local.cli.main import ApiOption, ConfigDir, DataDir, JsonOption, sized, visible
from local.core.config import layers_for, load_system
from local.core.data_dir import NotRunning, RunDirectory
from local.core.environment import data_dir as find_data_dir
from local.core.environment import environment
from local.core.errors import ConfigError, NoAnswer, NoApi
from local.core.routing import ModelsConfig
from local.models.hub import FOLDER, ModelStock, PullStep
from local.models.servers import require_program
from local.models.settings import answering_model, any_ollama_url, choose_model, chosen_model, gguf_files, load_models

Name = Annotated[str, typer.Argument(metavar="NAME", help="As `list` shows it, or the path of a GGUF file.")]
Wanted = Annotated[
    str,
    typer.Argument(
        metavar="NAME", help="gemma4:12b of Ollama; hf.co/OWNER/NAME[:Q4_K_M], or the address of a GGUF file."
    ),
]

model_app = typer.Typer(help="Models: list, pull, and choose the one that answers.")


@model_app.command("list")
def listing(
    as_json: JsonOption = False, api: ApiOption = None, config_dir: ConfigDir = None, data_dir: DataDir = None
) -> None:
    """Show the models of the running system, or those that are here; the one that answers has a *."""
    models, note = _of_system(api, data_dir) if config_dir is None else None, ""
    if models is None:
        models, note = _of_stock(layers_for(config_dir), data_dir)
    if as_json:
        typer.echo(json.dumps({"models": models, "note": note}, ensure_ascii=False, indent=2))
        return
    for model in models:
        size = "" if model["size"] is None else sized(model["size"])
        mark = "*" if model["current"] else " "
        typer.echo(f"{mark} {visible(model['name'])}  {visible(model['server'])}  {size}".rstrip())
    if not models:
        typer.echo("no model is here; `local2 model pull NAME` gets one", err=True)
    if note:
        typer.echo(visible(note), err=True)


def _of_system(api: str | None, data_dir: Path | None) -> list[dict[str, Any]] | None:
    """The models that the running system can use; None if none runs."""
    try:
        told = running_system(api, data_dir).request("GET", "/models")
    except (NotRunning, NoApi, NoAnswer):
        return None
    return [
        {**{name: each[name] for name in ("name", "server", "size", "path")}, "current": each["default"]}
        for each in told["models"]
    ]


def _of_stock(layers: list[Path], data_dir: Path | None) -> tuple[list[dict[str, Any]], str]:
    models, note = asyncio.run(stock_of(layers, data_dir).models())
    chosen = answering_model(layers)
    entries = [
        {
            "name": model.name,
            "server": model.kind,
            "size": model.size,
            "path": str(model.path) if model.path else None,
            "current": model.name == chosen,
        }
        for model in models
    ]
    return entries, note


@model_app.command()
def pull(model: Wanted, config_dir: ConfigDir = None, data_dir: DataDir = None) -> None:
    """Fetch a model and show how far it is; run it again to resume an interrupted download."""
    stock = stock_of(layers_for(config_dir), data_dir)
    try:
        asyncio.run(pull_and_show(stock, model, typer.echo))
    except KeyboardInterrupt:
        typer.echo("\nstopped; run the same command again to resume", err=True)
        raise typer.Exit(130) from None


@model_app.command()
def use(model: Name, config_dir: ConfigDir = None, data_dir: DataDir = None) -> None:
    """Have a model answer by default; it is written into your models.yaml.

    A system that runs follows at once where one of its servers has the model, else at its next start.
    """
    if config_dir is None and (told := _choose_in_running(model, data_dir)):
        typer.echo(told)
        return
    layers = layers_for(config_dir)
    found = asyncio.run(stock_of(layers, data_dir).find(model))
    path = choose_model(layers, found.kind, found.name, found.path)
    typer.echo(f"{chosen_model(layers)} answers from the next start on, as {path} says now")
    if found.kind == "llama_server":
        _warn_of_missing(load_models(layers))


def _choose_in_running(model: str, data_dir: Path | None) -> str:
    """Return a message on the change in the running system; empty if none answers."""
    try:
        client = running_system(None, data_dir)
        found = client.request("PUT", "/models/current", {"name": _whole_path(model)})
    except (NotRunning, NoApi):
        return ""
    except NoAnswer as error:
        if error.status is None or error.status in (401, 503):  # it is ending, or has no model manager
            return ""
        raise
    name = visible(str(found["current"]))
    if found["restart_needed"]:
        return f"{name} answers from the next start on: no server that runs now has it; stop LoCAL2 and start it again"
    return f"{name} answers from now on, in conversations that have not chosen another model"


def _whole_path(model: str) -> str:
    """A file is found from wherever the system runs."""
    path = Path(model).expanduser()
    return str(path.resolve()) if model.lower().endswith(".gguf") and path.is_file() else model


async def pull_and_show(stock: ModelStock, model: str, show: Callable[[str], object]) -> None:
    """Fetch a model; `show` is given each step and each full percent. Raises `ModelError`."""
    shown = ""
    async with aclosing(stock.pull(model)) as steps:
        async for step in steps:
            line = describe(step)
            if line != shown:
                show(visible(line))
            shown = line


def describe(step: PullStep) -> str:
    """Return one line for a step: `pulling 3fa… 45 % of 8.1 GB`."""
    if not step.total:
        return step.status
    return f"{step.status} {100 * (step.completed or 0) // step.total} % of {sized(step.total)}"


def stock_of(layers: list[Path], data_dir: Path | None) -> ModelStock:
    """The models of this machine, by the settings and the data directory of a command."""
    variables = environment()
    system, models = load_system(layers, {}, variables), load_models(layers)
    directory = RunDirectory(find_data_dir(data_dir))
    directory.make_data_dir()
    folder = directory.data_dir / FOLDER
    return ModelStock(
        folder, any_ollama_url(system, models), models.hub_url, variables.hf_token or "", partial(gguf_files, layers)
    )


def _warn_of_missing(models: ModelsConfig) -> None:
    """A model of llama.cpp is of no use without llama.cpp."""
    for name, provider in models.providers.items():
        if provider.kind == "llama_server" and provider.model:
            try:
                require_program(name, provider)
            except ConfigError as error:
                typer.echo(f"but {visible(str(error))}", err=True)
