"""What the checks examine: the settings of this installation, and what runs on its data directory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import psutil

from local.agents.answering.generator_config import GeneratorConfig
from local.agents.generator import GeneratorAgent
from local.apps.doctor.doctor_finding import DoctorFinding, fail, ok
from local.apps.overrides import with_mcp_servers
from local.apps.participant import SECRETS, find_class
from local.apps.run_directory import Facts, RunDirectory
from local.config import Settings, SystemConfig, layers_for, load, load_system
from local.config_models import ModelsConfig, load_models
from local.config_secret import name_in
from local.environment import Environment
from local.errors import LocalError
from local.secrets.secret_settings import named_secrets
from local.tools.shell import Shell
from local.tools.web_search import WebSearchConfig, WebSearchTool

M = TypeVar("M", bound=Settings)

_ROLES = {"critic": "critic", "memory": "fast"}  # the role in which each asks for its model
EMBEDDING_MODEL = "nomic-embed-text"
EDIT = "correct it; the comments in the packaged file say what each key means"


@dataclass(frozen=True, slots=True)
class ObserverModels:
    """By its participant's name the model that each observer has of its own, as its settings name it, and the model
    that embeds."""

    models: Mapping[str, str] = field(default_factory=dict)
    embedding: str = EMBEDDING_MODEL

    def at(self, provider: str, config: ModelsConfig, *, is_default: bool) -> ObserverModels:
        """Only the models of one provider: written as `provider/model`, or as a mere model of the default one."""
        found = {}
        for who, name in self.models.items():
            named, slash, model = name.partition("/")
            if slash and named in config.providers:
                if named == provider:
                    found[who] = model
            elif is_default:
                found[who] = name
        return replace(self, models=found)


@dataclass(frozen=True, slots=True)
class Installation:
    """`configs` holds the settings of every participant that could be read, by its class's name. `running` is what the
    system on this data directory tells, if one runs."""

    data_dir: Path
    system: SystemConfig = field(default_factory=SystemConfig)
    models: ModelsConfig = field(default_factory=ModelsConfig)
    configs: Mapping[str, Settings] = field(default_factory=dict)
    running: Facts | None = None

    @property
    def generator(self) -> GeneratorConfig:
        """The generator's settings, or the defaults."""
        return self._config(GeneratorAgent.name, GeneratorConfig) or GeneratorConfig()

    @property
    def web_search(self) -> WebSearchConfig | None:
        """The settings of web_search, if it takes part."""
        return self._config(WebSearchTool.name, WebSearchConfig)

    @property
    def runs_commands(self) -> bool:
        """Whether the tools take part that run commands."""
        return Shell.name in self.configs

    @property
    def secrets(self) -> Mapping[str, str]:
        """The name of each secret that the settings name, by the participant or file and the key that does."""
        keys = {f"models: providers.{name}.api_key": each.api_key for name, each in self.models.providers.items()}
        named = {where: name_in(key) for where, key in keys.items() if key}
        for participant, config in self.configs.items():
            named |= {f"{participant}: {place}": name for place, name in named_secrets(config)}
        return {where: name for where, name in named.items() if name}

    @property
    def observers(self) -> ObserverModels:
        """The models of everybody beside the generator that no chain in models.yaml names."""
        named = {name: getattr(config, "model", None) for name, config in self.configs.items()}
        chained = {name for name, role in _ROLES.items() if getattr(self.models.roles, role)}
        own = {name: model for name, model in named.items() if model and name not in chained | {GeneratorAgent.name}}
        return ObserverModels(own, getattr(self.configs.get("memory"), "embedding_model", None) or EMBEDDING_MODEL)

    def _config(self, name: str, kind: type[M]) -> M | None:
        config = self.configs.get(name)
        return config if isinstance(config, kind) else None


def examine(
    config_dir: Path | None, data_dir: Path, variables: Environment
) -> tuple[Installation, list[DoctorFinding]]:
    """Read all settings as the participants would, and say what is wrong with them; what cannot be read is default."""
    findings: list[DoctorFinding] = []
    system, models, layers = SystemConfig(), ModelsConfig(), list[Path]()
    try:
        layers = layers_for(config_dir)
        system = with_mcp_servers(load_system(layers, {}, variables), layers)
        models = load_models(layers)
    except LocalError as error:
        findings.append(fail("settings", str(error), EDIT))
    configs: dict[str, Settings] = {}
    for entry in system.participants:
        try:
            name, config = _load(entry.target, entry.config, layers, system.python_path, variables)
            configs[name] = config
        except LocalError as error:
            findings.append(fail("settings", str(error), EDIT))
    if not findings:
        text = f"system.yaml, models.yaml and {len(configs)} participants, from {', '.join(map(str, layers))}"
        findings.append(ok("settings", text))
    return Installation(data_dir, system, models, configs, _running(data_dir)), findings


def _load(
    target: str,
    overrides: Mapping[str, Any],
    layers: Sequence[Path],
    python_path: tuple[Path, ...],
    variables: Environment,
) -> tuple[str, Settings]:
    kind = find_class(target, python_path)
    secrets = {key: getattr(variables, key) for key in SECRETS if key in kind.Config.model_fields}
    return kind.name, load(kind.settings or kind.name, kind.Config, layers, {**secrets, **overrides})


def _running(data_dir: Path) -> Facts | None:
    """What a running system has told; one that was killed leaves its facts behind."""
    try:
        facts = RunDirectory(data_dir).facts()
    except (LocalError, OSError):  # nothing runs, or what is wrong with the run directory is said by its own check
        return None
    return facts if psutil.pid_exists(facts.pid) else None
