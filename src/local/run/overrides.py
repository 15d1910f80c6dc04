"""The overrides of participants' settings by flags and system.yaml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from local.cli.main import Flags
from local.core.capability import participants
from local.core.config import SHARED_KEYS, ParticipantEntry, SystemConfig, load_system
from local.core.environment import environment
from local.core.mcp_servers import load_mcp_servers

MCP_GROUP = "local.mcp.tools"  # where each server has a class, which imports much
GENERATOR, SECOND_RESPONDENT = participants()["generator"], participants()["generator_b"]


def configured(flags: Flags, layers: Sequence[Path]) -> SystemConfig:
    """The system as flags and settings have it at this moment. Raises `ConfigError`."""
    system = with_mcp_servers(load_system(layers, flags.system, environment()), layers)
    return system if flags.respondent_b is None else with_second_respondent(system)


def with_second_respondent(system: SystemConfig) -> SystemConfig:
    """The system with a second respondent among its participants."""
    if any(entry.target == SECOND_RESPONDENT for entry in system.participants):
        return system
    second = ParticipantEntry(target=SECOND_RESPONDENT)
    return system.model_copy(update={"participants": (*system.participants, second)})


def with_mcp_servers(system: SystemConfig, layers: Sequence[Path]) -> SystemConfig:
    """The system with a participant for each server of `mcp.json`. Raises `ConfigError`."""
    servers = [
        ParticipantEntry(
            target=f"{MCP_GROUP}:{name}",
            config=server.model_dump(mode="json", exclude_unset=True),
            own_name=f"mcp_{name}",
            settings=f"mcp_{name}",
        )
        for name, server in load_mcp_servers(layers[-1]).items()
    ]
    return system.model_copy(update={"participants": (*system.participants, *servers)}) if servers else system


def overrides_for(
    target: str, system: SystemConfig, generator: Mapping[str, Any], second: Mapping[str, Any]
) -> dict[str, Any]:
    """A participant's settings beside its own file. `generator` and `second` are the flags for the two respondents.

    The second respondent has the generator's settings, overridden by its own.
    """
    own = next((entry.config for entry in system.participants if entry.target == target), {})
    if target == GENERATOR:
        return {**_shared("generator", system), **own, **generator}
    if target == SECOND_RESPONDENT:
        return {**overrides_for(GENERATOR, system, generator, {}), **own, **second}
    return dict(own)


def _shared(file: str, system: SystemConfig) -> dict[str, Any]:
    """Return the settings in system.yaml that belong to other participants' files."""
    configs = {entry.name: entry.config for entry in system.participants}
    shared = SHARED_KEYS[file].items()
    return {key: configs[other][key] for key, other in shared if key in configs.get(other, {})}
