"""Configuration: YAML files, flags and environment variables in, frozen typed models out.

No other module reads settings. A participant declares its `Settings` class and gets an instance injected.
"""

from __future__ import annotations

import ast
import json
import logging
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator

from local.core import config_file
from local.core.capability import participants
from local.core.config_file import ConfigFile, Fault, faults, suggestion
from local.core.environment import Environment, environment, settings_dir
from local.core.errors import ConfigError
from local.core.shipped import shipped_dir

# The files in a settings folder: a file that no participant reads is a mistake.

OF_NO_MODULE = ("api", "cells", "journal", "models", "otel", "system")  # besides those of the possible `participants`
OF_ANOTHER = ("generator_b",)  # has the settings of the generator
READ, SIMILAR = ".yaml", (".yaml", ".yml")
_OURS = ("name", "settings")


def require_known_files(layers: Sequence[Path], names: Collection[str]) -> None:
    """Raise `ConfigError` for a YAML file in one of these folders that has none of these names."""
    for folder in layers:
        for path in _yaml_files(folder):
            if path.suffix != READ or path.stem not in names:
                meant = suggestion(path.stem, names, READ)
                raise config_file.settings_fault(path, None, f"no participant reads this file; {meant}")


def declared(target: str, python_path: Sequence[Path]) -> Mapping[str, str] | None:
    """Return the `name` and `settings` that the class "package.module:Class" declares. The source is parsed, not
    imported; only the participant's own process imports it. None if the source cannot be found or read.
    """
    module, _, wanted = target.partition(":")
    for folder in (*python_path, *map(Path, sys.path)):
        place = folder.joinpath(*module.split("."))
        for file in (place.with_suffix(".py"), place / "__init__.py"):
            if file.is_file():
                return _values_in(file, wanted)
    return None


def _yaml_files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in SIMILAR and not path.name.startswith("."))


def _values_in(file: Path, wanted: str) -> Mapping[str, str] | None:
    try:
        tree = ast.parse(file.read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return None
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == wanted]
    return dict(pair for node in classes[:1] for pair in _texts(node)) if classes else None


def _texts(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """The class's own names for text."""
    for line in node.body:
        match line:
            case ast.Assign([ast.Name(key)], ast.Constant(str(text))) | ast.AnnAssign(
                ast.Name(key), _, ast.Constant(str(text))
            ):
                if key in _OURS:
                    yield key, text


log = logging.getLogger(__name__)

# Keys of early settings files that are no longer needed, each with the reason.
RETIRED_KEYS = {
    "generator": {"tools": "tools describe themselves on the bus"},
    "web_search": {"fetch_enabled": "the model decides when to fetch a page"},
}
# Early settings in another file still count: by the file that they belong to now, key and other file.
MOVED_KEYS = {"web_fetch": {"fetch_max_chars": "web_search"}}
# Keys that have another name now, by the name of their file.
RENAMED_KEYS = {"system": {"together": "shared_process"}}

# Settings in another participant's file because several read them: by reader, key and file.
SHARED_KEYS = {"generator": {"hooks": "hooks", "denied_tools": "gatekeeper"}}


class Settings(BaseModel):
    """Base class of all configurations: frozen, and an undeclared key is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


M = TypeVar("M", bound=Settings)
OWN_NAMES = ("supervisor", "proxy", "journal", "api", "bus")  # of those that need no line in the settings


TOOL_ELSEWHERE = "tool"  # among the subjects of a bus client: it is a tool on another machine


class ParticipantEntry(Settings):
    """One line of `participants`: the class to run, and settings that override its own file.

    Written as a built-in name or `package.module:Class`, or as a mapping of that to settings.
    """

    target: str
    config: dict[str, Any] = Field(default_factory=dict)
    own_name: str = ""  # the `name` of a class that is not built in, as far as it can be read
    settings: str | None = None  # the name of its settings file; None if unknown

    @property
    def is_built_in(self) -> bool:
        """Whether the participant is one of our own."""
        return self.target in participants().values()

    @property
    def name(self) -> str:
        """The participant's own name, or the class's name if that could not be read."""
        names = {target: name for name, target in participants().items()}
        return names.get(self.target) or self.own_name or self.target.rpartition(":")[2]

    def read_from(self, python_path: Sequence[Path]) -> Self:
        """Return the entry with the name and settings that its class declares."""
        said = (not self.is_built_in and declared(self.target, python_path)) or {}
        own_name = said.get("name", "")
        return self.model_copy(update={"own_name": own_name, "settings": said.get("settings") or own_name or None})

    @model_validator(mode="before")
    @classmethod
    def _from_line(cls, line: object) -> object:
        match line:
            case {"target": _}:
                return line
            case str(name):
                config = None
            case dict() if len(line) == 1:
                [(name, config)] = line.items()
            case _:
                raise ValueError("expected for each '-' one participant, as 'name' or 'name: {key: value}'")
        target = participants().get(name, name)
        if not re.fullmatch(r"[\w.]+:\w+", target):
            raise ValueError(
                f"unknown participant {name!r}; {suggestion(name, [*participants(), 'package.module:Class'])}"
            )
        return {"target": target, "config": config or {}}


BackendName = Literal["auto", "ollama", "openai", "google_genai", "llama_server", "stand_in"]


class SystemConfig(Settings):
    """`system.yaml`: the bus, the model server, the API, and the participants in start order."""

    bus_pub_address: str | None = None
    bus_sub_address: str | None = None
    bus_security: Literal["curve", "none"] = "curve"
    backend: BackendName = "auto"
    ollama_url: str | None = None
    ollama_debug: bool = False
    hang_seconds: float = Field(5.0, gt=0)
    api_host: str = "127.0.0.1"
    api_port: int = Field(8765, ge=0, le=65535)
    log_file: Path | Literal[False] = Path("logs/local2.log")
    python_path: tuple[Path, ...] = (Path(),)
    workspace: Path | None = None
    participants: tuple[ParticipantEntry, ...] = ()
    more_participants: tuple[ParticipantEntry, ...] = ()
    shared_process: tuple[tuple[str, ...], ...] = ()
    bus_clients: dict[str, tuple[str, ...]] = Field(default_factory=dict)

    def log_path(self, data_dir: Path) -> Path | None:
        """The log file; None if there is to be none."""
        return data_dir / self.log_file.expanduser() if self.log_file else None

    @field_validator("bus_pub_address", "bus_sub_address")
    @classmethod
    def _is_an_address(cls, address: str | None) -> str | None:
        if address is None or re.fullmatch(r"tcp://[^:/]+:\d{1,5}|tcp://\[[^]]+]:\d{1,5}|ipc://.+", address):
            return address
        raise ValueError(f"expected tcp://host:port or ipc://path, found {address!r}")

    @field_validator("participants", "more_participants")
    @classmethod
    def _each_once(cls, entries: tuple[ParticipantEntry, ...], info: ValidationInfo) -> tuple[ParticipantEntry, ...]:
        targets = [entry.target for entry in (*info.data.get("participants", ()), *entries)]
        for target in targets:
            if targets.count(target) > 1:
                raise ValueError(f"{target} is listed twice; keep one of them")
        return entries

    @field_validator("shared_process")
    @classmethod
    def _in_one_process(cls, groups: tuple[tuple[str, ...], ...]) -> tuple[tuple[str, ...], ...]:
        names = [name for group in groups for name in group]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"{name} is listed twice; a participant can start in only one process")
        return groups

    @field_validator("bus_clients")
    @classmethod
    def _check_clients(cls, clients: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        for name, subjects in clients.items():
            if not re.fullmatch(r"[A-Za-z0-9_-]{1,100}", name) or name in (*participants(), *OWN_NAMES):
                raise ValueError(f"{name!r} cannot be a client's name: letters, digits, _ and -, and no participant's")
            for subject in subjects:
                if not re.fullmatch(r"[a-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.?", subject):
                    raise ValueError(f"{name}: {subject!r} is neither a subject, such as query.received, nor a family")
        return clients

    @model_validator(mode="after")
    def _bus_makes_sense(self) -> Self:
        addresses = [address for address in (self.bus_pub_address, self.bus_sub_address) if address]
        if len(addresses) == 1:
            raise ValueError("bus_pub_address and bus_sub_address belong together; give both or neither")
        loopback = r"ipc://.*|tcp://(127\.[\d.]+|localhost|\[::1\]):\d+"
        if self.bus_security == "none" and not all(re.fullmatch(loopback, address) for address in addresses):
            raise ValueError("bus_security: none is only for loopback addresses; write curve")
        has_keys = self.bus_security == "curve" and (self.bus_pub_address or "").startswith("tcp://")
        for name, subjects in self.bus_clients.items():
            if TOOL_ELSEWHERE in subjects and not has_keys:
                raise ValueError(f"bus_clients: the tool {name} on another machine needs tcp:// addresses and curve")
        return self


def layers_for(config_dir: Path | None) -> list[Path]:
    """The folders to read settings from, the weakest first: the defaults, then the user's folder.

    The defaults are `config/` of the checkout or wheel. The user's folder is `config_dir` (a flag), else
    LOCAL2_CONFIG_DIR, else the platform's. Raises ConfigError if one that was named does not exist.
    """
    defaults = shipped_dir() / "config"
    named = config_dir or environment().config_dir
    folder = settings_dir(named)
    if named is not None and not folder.is_dir():
        raise ConfigError(f"{named}: there is no such folder; create it or choose another settings folder")
    return [defaults, folder]


def load_system(layers: Sequence[Path], overrides: Mapping[str, Any], variables: Environment) -> SystemConfig:
    """Return `system.yaml`, with OLLAMA_HOST if it names no server, `python_path` relative to the user's folder and
    every participant in `participants`. Raises `ConfigError`, also for a settings file that no participant reads.
    """
    system = load("system", SystemConfig, layers, overrides)
    python_path = tuple((layers[-1] / path.expanduser()).resolve() for path in system.python_path)
    entries = tuple(entry.read_from(python_path) for entry in (*system.participants, *system.more_participants))
    _require_one_of_each_name(entries)
    _require_known(system.shared_process, {*participants(), *(entry.name for entry in entries)})
    added = [entry.settings for entry in entries if not entry.is_built_in]
    if None not in added:  # otherwise it is unknown which file that one reads
        ours = {*OF_NO_MODULE, *participants()}.difference(OF_ANOTHER)
        own = [layer for layer in layers if layer != shipped_dir() / "config"]  # ours may name a removed one
        require_known_files(own, ours.union(filter(None, added)))
    return system.model_copy(
        update={
            "ollama_url": system.ollama_url or variables.ollama_host,
            "participants": entries,
            "python_path": python_path,
        }
    )


def _require_one_of_each_name(entries: Sequence[ParticipantEntry]) -> None:
    targets: dict[str, str] = {}
    for entry in entries:
        if entry.name in OWN_NAMES:
            raise ConfigError(f"system.yaml: {entry.target} has the name of LoCAL2's own {entry.name}; rename it")
        other = targets.setdefault(entry.name, entry.target)
        if other != entry.target:
            raise ConfigError(f"system.yaml: {other} and {entry.target} are both called {entry.name}; rename one")


def _require_known(groups: Sequence[Sequence[str]], names: Collection[str]) -> None:
    for name in (name for group in groups for name in group):
        if name not in names:
            raise ConfigError(f"system.yaml: shared_process: unknown participant {name!r}; {suggestion(name, names)}")


def load(name: str, model: type[M], layers: Sequence[Path], overrides: Mapping[str, Any] | None = None) -> M:
    """Merge `<name>.yaml` of each layer, weakest first, and then `overrides`, key by key; validate the result.

    Mappings are merged at every depth, all else is replaced. An override of None counts as not given. Values must have
    the declared type exactly: '5' is not a number. Raises `ConfigError`, one line that names file, line and key.
    """
    files = [file for layer in layers for file in _files(name, layer)]
    given = {key: value for key, value in (overrides or {}).items() if value is not None}
    values: dict[str, Any] = {}
    for addition in (*(file.values for file in files), given):
        values = _merged(values, addition)
    try:
        return model.model_validate_json(json.dumps(values, default=str), strict=True)
    except ValidationError as error:
        raise _fault(name, files, given, faults(error.errors(), values, model.model_fields)) from None


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(below)
    for key, value in above.items():
        beneath = result.get(key)
        if isinstance(beneath, dict) and isinstance(value, dict):
            result[key] = _merged(beneath, value)
        else:
            result[key] = value
    return result


def _files(name: str, layer: Path) -> Iterator[ConfigFile]:
    """Yield a layer's files for a participant: settings in another one's file for historical reasons, then its own."""
    for key, other in (MOVED_KEYS.get(name, {}) | SHARED_KEYS.get(name, {})).items():
        file = config_file.read(layer / f"{other}.yaml")
        if key in file.values:
            lines = {place: line for place, line in file.lines.items() if place[0] == key}
            yield ConfigFile(file.path, {key: file.values[key]}, lines)
    file = _with_new_keys(name, _without_retired_keys(name, config_file.read(layer / f"{name}.yaml")))
    yield _without_the_removed(file) if name == "system" and layer == shipped_dir() / "config" else file


def _without_the_removed(file: ConfigFile) -> ConfigFile:
    """Return our own system.yaml without participants of capabilities that were removed from this installation."""
    there, values = participants(), dict(file.values)
    values["participants"] = [each for each in values.get("participants") or () if each in there]
    values["shared_process"] = [[each for each in group if each in there] for group in values["shared_process"]]
    return ConfigFile(file.path, values, file.lines)


def _without_retired_keys(name: str, file: ConfigFile) -> ConfigFile:
    retired = {key: why for key, why in RETIRED_KEYS.get(name, {}).items() if key in file.values}
    for key, why in retired.items():
        log.warning("%s", config_file.settings_fault(file.path, file.lines[key,], f"{key} is ignored: {why}"))
    moved = {key for keys in MOVED_KEYS.values() for key, other in keys.items() if other == name}
    values = {key: value for key, value in file.values.items() if key not in {*retired, *moved}}
    return ConfigFile(file.path, values, file.lines)


def _with_new_keys(name: str, file: ConfigFile) -> ConfigFile:
    """The settings of a file with the old names of keys replaced; one that has both names keeps the new one."""
    values, lines = dict(file.values), dict(file.lines)
    for old, new in RENAMED_KEYS.get(name, {}).items():
        if old in values:
            log.warning("%s", config_file.settings_fault(file.path, lines[old,], f"{old} is now called {new}"))
            value = values.pop(old)
            if new not in values:
                values[new] = value
                lines |= {(new, *place[1:]): line for place, line in file.lines.items() if place[0] == old}
    return ConfigFile(file.path, values, lines)


def _fault(name: str, files: Sequence[ConfigFile], given: Mapping[str, Any], found: Sequence[Fault]) -> ConfigError:
    first, *others = found
    what = first.text + (f" (and {len(others)} more)" if others else "")
    place = first.place
    if place and place[0] in given:
        source = "a flag" if name == "system" else f"a flag or system.yaml, for {name}"
        return ConfigError(f"{source}: {what}")
    for length in range(len(place), 0, -1):
        for file in reversed(files):
            if line := file.lines.get(place[:length]):
                return config_file.settings_fault(file.path, line, what)
    for file in reversed(files):
        if file.values:
            return config_file.settings_fault(file.path, None, what)
    return ConfigError(f"{name}.yaml: {what}")
