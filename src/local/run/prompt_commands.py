"""`local2 prompt show`: the messages before a question, from a running system, else from the settings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlencode

import typer

from local.cli.client import SystemClient
from local.cli.main import ConfigDir, DataDir, JsonOption
from local.core.config import SystemConfig, layers_for, load, load_system
from local.core.data_dir import NotRunning, RunDirectory, owner_token
from local.core.environment import data_dir as data_dir_of
from local.core.environment import environment
from local.core.errors import ConfigError
from local.core.owner_texts import SourcedText, StandingTextFiles
from local.core.profiles import AssistantProfile, ProfileRegistry
from local.core.workspace import WORKSPACE
from local.generator.agent import GeneratorAgent
from local.generator.config import GeneratorConfig
from local.generator.prompt import PromptInputs, ToolLine, as_json, compose, fitting
from local.models.chat import Json
from local.models.settings import Tier, load_models, tier_of
from local.permissions.gatekeeper import GatekeeperService
from local.permissions.policy import GatekeeperConfig
from local.run.participant import find_class
from local.runtime.participant import Participant
from local.tools.group import ToolGroup
from local.tools.tool import Tool


def sections(prompt: str | None, profile: str | None, config_dir: Path | None, data_dir: Path | None) -> Json:
    """The system prompt, section by section: of the system that runs; where none does, or settings or a variant are
    named, by the settings. Raises `ConfigError`."""
    if prompt is None and config_dir is None:
        try:
            with _client(data_dir) as client:
                return client.request("GET", "/prompt" + (f"?{urlencode({'profile': profile})}" if profile else ""))
        except NotRunning:
            pass
    model, problems, inputs = configured(prompt, config_dir, data_dir)
    if profile is not None:
        found = ProfileRegistry(layers_for(config_dir)[-1], Path(inputs.workspace)).read()
        model, inputs = _as(found.find(profile), model, inputs, layers_for(config_dir))
    return {**as_json(model, inputs), "problems": problems}


def messages(prompt: str | None, session_id: str, config_dir: Path | None, data_dir: Path | None) -> Sequence[Json]:
    """Return the messages of the running system before the next question of a session; the variant changes the system
    message. Raises `ConfigError`, `NotRunning`; `NoAnswer` if the system does not know the session.
    """
    with _client(data_dir) as client:
        told: list[Json] = client.session(client.whole_id(session_id))["messages"]
    if prompt is None:
        return told
    return compose(configured(prompt, config_dir, data_dir)[2], [each for each in told if each["role"] != "system"])


def configured(
    prompt: str | None, config_dir: Path | None, data_dir: Path | None
) -> tuple[str, Sequence[str], PromptInputs]:
    """Return the model, the owner's texts that are left out, and the inputs of its prompt, from the settings. Raises
    `ConfigError`.
    """
    layers = layers_for(config_dir)
    system = load_system(layers, {}, environment())
    overrides: dict[str, Any] = {}
    tools: list[ToolLine] = []
    mode = ""
    for entry in system.participants:
        kind = find_class(entry.target, system.python_path)
        if issubclass(kind, GeneratorAgent):
            overrides |= entry.config
        if issubclass(kind, GatekeeperService):
            mode = load(GatekeeperService.name, GatekeeperConfig, layers, entry.config).mode
        tools += map(_line_of, _tools_of(kind))
    if prompt is not None:
        overrides["prompt"] = prompt
    settings = load(GeneratorAgent.name, GeneratorConfig, layers, overrides)
    workspace = _workspace(system, data_dir)
    texts = StandingTextFiles(layers[-1], workspace, partial(fitting, window=settings.num_ctx)).current()
    return (
        settings.model,
        texts.problems,
        PromptInputs(
            role=SourcedText(settings.prompt_origin, settings.instructions),
            day=date.today(),
            tier=_tier(settings.model, layers),
            tools=tuple(sorted(tools)),
            mode=mode,
            workspace=str(workspace),
            instructions=texts.instructions,
            soul=texts.soul,
        ),
    )


def _as(
    profile: AssistantProfile, model: str, inputs: PromptInputs, layers: Sequence[Path]
) -> tuple[str, PromptInputs]:
    """The model and the prompt that a profile makes of them."""
    model = profile.model or model
    tools = (tool for tool in inputs.tools if profile.tools is None or tool.name in profile.tools)
    custom = SourcedText(f"profile {profile.name}", profile.instructions)
    return model, replace(inputs, tools=tuple(tools), tier=_tier(model, layers), custom=custom)


def _tier(model: str, layers: Sequence[Path]) -> Tier:
    """Return a model's size as the owner states it, else mid-size: no server is asked here."""
    sizes = load_models(layers).sizes
    said = next((sizes[name] for name in (model, model.partition("/")[2]) if name in sizes), "mid")
    return Tier(said) if isinstance(said, str) else tier_of(said)


def as_text(told: Sequence[Json]) -> str:
    """Messages for a person."""
    return "\n\n".join(f"--- {message['role']}\n{message['content']}" for message in told)


def in_words(shown: Json) -> str:
    """Return a prompt's sections for a person, each with its origin and cost."""
    parts = [
        f"--- {each['name']} · {each['tokens']} tokens · {each['origin']}\n{each['text']}" for each in shown["sections"]
    ]
    mode = f" · mode {shown['mode']}" if shown["mode"] else ""
    parts += [f"! {problem}" for problem in shown["problems"]]
    return "\n\n".join([*parts, f"{shown['tokens']} tokens · {shown['model']} ({shown['tier']}){mode}"])


def _client(data_dir: Path | None) -> SystemClient:
    directory = data_dir_of(data_dir)
    facts = RunDirectory(directory).read()
    if facts.api_url is None:
        raise ConfigError("the system that runs has no HTTP interface to ask; start it with --api")
    return SystemClient(facts.api_url, owner_token(directory))


def _workspace(system: SystemConfig, data_dir: Path | None) -> Path:
    return system.workspace.expanduser() if system.workspace else data_dir_of(data_dir) / WORKSPACE


def _tools_of(kind: type[Participant]) -> tuple[type[Tool], ...]:
    """The tools that a participant class is to the model."""
    if issubclass(kind, ToolGroup):
        return kind.tools
    return (kind,) if issubclass(kind, Tool) else ()


def _line_of(tool: type[Tool]) -> ToolLine:
    return ToolLine(tool.name, tool.effect, tool.safety, tool.category, tool.replaces)


# `local2 prompt`: the model's prompt.

prompt_app = typer.Typer(help="Show the messages before a question.")


@prompt_app.callback()
def prompt_callback() -> None:
    """Show the model's prompt."""


@prompt_app.command("show")
def show_prompt(
    prompt: Annotated[str | None, typer.Option(metavar="NAME", help="A variant of generator.yaml.")] = None,
    session: Annotated[
        str | None, typer.Option(metavar="ID", help="With this session of a running system; its beginning will do.")
    ] = None,
    profile: Annotated[str | None, typer.Option(metavar="NAME", help="As this kind of assistant.")] = None,
    as_json: JsonOption = False,
    config_dir: ConfigDir = None,
    data_dir: DataDir = None,
) -> None:
    """Print the messages before a question, with their origin and cost: of the running system, else from the settings.
    With a session, its messages.
    """
    if session is not None:
        told = messages(prompt, session, config_dir, data_dir)
        typer.echo(json.dumps(list(told), ensure_ascii=False, indent=1) if as_json else as_text(told))
        return
    shown = sections(prompt, profile, config_dir, data_dir)
    typer.echo(json.dumps(shown, ensure_ascii=False, indent=1) if as_json else in_words(shown))
