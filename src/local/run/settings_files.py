"""The settings files of participants in a user's folder: shown with their meaning, changed key by key."""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import SecretStr
from pydantic_core import to_jsonable_python

from local.core.config import Settings, SystemConfig, load, load_system
from local.core.config_file import MARK, change, name_in
from local.core.environment import environment
from local.core.errors import ConfigError, LocalError, without_passwords
from local.core.routing import ModelsConfig
from local.run.participant import SECRETS, find_class

ALWAYS = {"api": "local.api.app:ApiParticipant", "journal": "local.journal.server:Journal"}
OF_ALL: Mapping[str, type[Settings]] = {
    "system": SystemConfig,
    "models": ModelsConfig,
}  # which the whole system reads at its start
HIDDEN = "***"

Json = dict[str, Any]


class SettingsRefused(LocalError):
    """The settings do not exist or are invalid; `kind` is not_found or invalid."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class SettingsFiles:
    """The settings files as the page shows and changes them. They are read again for each request, because the user
    may edit them. `layers` are the folders, the user's last.
    """

    def __init__(self, layers: Sequence[Path]) -> None:
        self._layers = list(layers)
        self._writing = threading.Lock()

    def names(self) -> dict[str, list[str]]:
        """Every file by its name, with the participants that read it; `system` is all of them. Raises `ConfigError`."""
        readers: dict[str, list[str]] = {name: ["system"] for name in OF_ALL}
        for name, target in self._targets().items():
            file = self._file_of(target, name)
            if file not in OF_ALL:
                readers.setdefault(file, []).append(name)
        return readers

    def show(self, name: str) -> Json:
        """Return one file: its schema, the effective values, the defaults, and the participants to restart after a
        change. If the file is invalid, `problem` says why, and there are no values. Raises `SettingsRefused`,
        `ConfigError`.
        """
        kind, readers = self._kind(name)
        values, problem = None, None
        try:
            values = _shown(load(name, kind, self._layers))
        except ConfigError as error:
            problem = str(error)
        return {
            "name": name,
            "schema": kind.model_json_schema(),
            "values": values,
            "defaults": _shown(load(name, kind, self._layers[:-1])),
            "problem": problem,
            "file": str(self._layers[-1] / f"{name}.yaml"),
            "restart_needed": readers,
        }

    def change(self, name: str, values: Mapping[str, Any]) -> Json:
        """Write these keys into the user's file, if the result is valid, and leave the rest unchanged. Returns what
        `show` does. Raises `SettingsRefused`, `ConfigError`, `StoreUnwritable`.
        """
        kind, _ = self._kind(name)
        with self._writing:
            try:
                self._require_valid(name, kind, values)
            except OSError as error:  # of the folder for temporary files
                raise SettingsRefused("unavailable", f"the settings cannot be checked: {error}") from None
            change(self._layers[-1] / f"{name}.yaml", values)
        return self.show(name)

    def _require_valid(self, name: str, kind: type[Settings], values: Mapping[str, Any]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            above = Path(folder, f"{name}.yaml")
            above.write_text(json.dumps(values), encoding="utf-8")
            try:
                config = load(name, kind, [*self._layers, above.parent])
            except ConfigError as error:
                raise SettingsRefused("invalid", str(error).replace(str(above), above.name)) from None
        _require_no_secret(config, values)

    def _kind(self, name: str) -> tuple[type[Settings], list[str]]:
        readers = self.names()
        if name not in readers:
            raise SettingsRefused("not_found", f"there are no settings {name}; there are {', '.join(sorted(readers))}")
        if name in OF_ALL:
            return OF_ALL[name], readers[name]
        return find_class(self._targets()[readers[name][0]], self._system().python_path).Config, readers[name]

    def _file_of(self, target: str, name: str) -> str:
        kind = find_class(target, self._system().python_path)
        return kind.settings or kind.name or name

    def _targets(self) -> dict[str, str]:
        return {**ALWAYS, **{entry.name: entry.target for entry in self._system().participants}}

    def _system(self) -> SystemConfig:
        return load_system(self._layers, {}, environment())


def _require_no_secret(config: Settings, keys: Iterable[str]) -> None:
    for key in keys:
        value = getattr(config, key)
        if isinstance(value, SecretStr) and value.get_secret_value() and name_in(value.get_secret_value()) is None:
            text = f"expected {MARK}NAME; store the value with 'local2 secret set NAME', not in a file"
            raise SettingsRefused("invalid", f"{key}: {text}")
        if key in SECRETS and not isinstance(value, SecretStr):
            raise SettingsRefused("invalid", f"{key}: cannot be set in a file; set its environment variable")


def _shown(config: Settings) -> Json:
    """Return values as JSON without secrets: of a secret only its name, if the setting contains one."""
    shown: Json = to_jsonable_python(_without_passwords(config.model_dump()))
    return {
        key: HIDDEN if key in SECRETS and value and name_in(value) is None else value for key, value in shown.items()
    }


def _without_passwords(value: Any) -> Any:
    match value:
        case SecretStr():
            text = value.get_secret_value()
            return text if not text or name_in(text) is not None else HIDDEN
        case str():
            return without_passwords(value)
        case dict():
            return {key: _without_passwords(each) for key, each in value.items()}
        case list() | tuple():
            return [_without_passwords(each) for each in value]
    return value
