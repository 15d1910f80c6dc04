"""`local2 prompt show`: what the model is told before a question."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from local.agents.answering.generator_config import GeneratorConfig
from local.agents.answering.prompt_builder import compose
from local.agents.generator import GeneratorAgent
from local.apps.owner_token import owner_token
from local.apps.participant import find_class
from local.apps.run_directory import RunDirectory
from local.apps.system_client import SystemClient
from local.config import layers_for, load, load_system
from local.environment import data_dir as data_dir_of
from local.environment import environment
from local.errors import ConfigError
from local.models.chat import Json
from local.protocol.messages import ToolSchema
from local.runtime.participant import Participant
from local.tools.tool import Tool
from local.tools.tool_group import ToolGroup


def show(prompt: str | None, session_id: str | None, config_dir: Path | None, data_dir: Path | None) -> str:
    """The prompt as text: of a new conversation by the settings, or of one that a running system has.

    With a session and no variant it is what the running generator itself says. Raises `ConfigError`, `NotRunning`;
    `NoAnswer` if the system does not know the session.
    """
    history: Sequence[Json] = ()
    if session_id is not None:
        messages = _messages(session_id, data_dir)
        if prompt is None:
            return _as_text(messages)
        history = [message for message in messages if message["role"] != "system"]
    settings, tools = configured(config_dir, prompt)
    return _as_text(compose(settings.instructions, date.today(), history, tools=tools))


def configured(config_dir: Path | None, prompt: str | None) -> tuple[GeneratorConfig, list[ToolSchema]]:
    """The generator's settings, and the tools that take part, without their parameters. Raises `ConfigError`."""
    layers = layers_for(config_dir)
    system = load_system(layers, {}, environment())
    overrides: dict[str, Any] = {}
    tools: list[ToolSchema] = []
    for entry in system.participants:
        kind = find_class(entry.target, system.python_path)
        if issubclass(kind, GeneratorAgent):
            overrides |= entry.config
        for each in _tools_of(kind):
            description = inspect.cleandoc(each.__doc__ or each.name)
            tools.append(ToolSchema(tool=each.name, description=description, parameters={}, effect=each.effect))
    if prompt is not None:
        overrides["prompt"] = prompt
    tools.sort(key=lambda tool: tool.tool)
    return load(GeneratorAgent.name, GeneratorConfig, layers, overrides), tools


def _messages(session_id: str, data_dir: Path | None) -> list[Json]:
    directory = data_dir_of(data_dir)
    facts = RunDirectory(directory).facts()
    if facts.api_url is None:
        raise ConfigError("the system that runs has no HTTP interface to ask for a session; start it with --api")
    with SystemClient(facts.api_url, owner_token(directory)) as client:
        messages: list[Json] = client.session(client.whole_id(session_id))["messages"]
        return messages


def _as_text(messages: Sequence[Json]) -> str:
    return "\n\n".join(f"--- {message['role']}\n{message['content']}" for message in messages)


def _tools_of(kind: type[Participant]) -> tuple[type[Tool], ...]:
    """The tools that a participant class is to the model."""
    if issubclass(kind, ToolGroup):
        return kind.tools
    return (kind,) if issubclass(kind, Tool) else ()
