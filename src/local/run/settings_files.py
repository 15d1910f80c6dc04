"""The settings files of participants in a user's folder: shown with their meaning, changed key by key."""

from __future__ import annotations

import json
import re
import tempfile
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml
from pydantic import SecretStr
from pydantic_core import to_jsonable_python

from local.api.cells import CellsConfig
from local.bus.messages import AnswerOptions
from local.core.config import MOVED_KEYS, RENAMED_KEYS, SHARED_KEYS, Settings, SystemConfig, load, load_system
from local.core.config_file import MARK, NAME, change, name_in, read
from local.core.environment import environment
from local.core.errors import ConfigError, LocalError, without_passwords
from local.core.mcp_servers import load_mcp_servers
from local.core.routing import ModelsConfig
from local.core.settings_texts import texts_of
from local.queries.otlp import OtelConfig
from local.run.participant import SECRETS, find_class

ALWAYS = {"api": "local.api.app:ApiParticipant", "journal": "local.journal.server:Journal"}
OF_ALL: Mapping[str, type[Settings]] = {
    "system": SystemConfig,
    "models": ModelsConfig,
    "otel": OtelConfig,
    "cells": CellsConfig,
}  # which no participant has for itself
HIDDEN = "***"
VARIABLES = {  # which override a setting, or hold where it is null
    "api_token": "LOCAL2_API_TOKEN",
    "brave_api_key": "BRAVE_API_KEY",
    "tavily_api_key": "TAVILY_API_KEY",
    "hf_token": "HF_TOKEN",
}
_LIKE_A_SECRET = re.compile(r"(^|_)(key|token|secret|password|authorization)$", re.IGNORECASE)

Json = dict[str, Any]


class SettingsRefused(LocalError):
    """The settings do not exist or are invalid; `kind` is not_found or invalid, and `key` the one at fault, if it is
    known."""

    def __init__(self, kind: str, message: str, key: str | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.details = {} if key is None else {"key": key}


class SettingsFiles:
    """The settings files as the page shows and changes them. They are read again for each request, because the user
    may edit them. `layers` are the folders, the user's last.
    """

    def __init__(self, layers: Sequence[Path]) -> None:
        self._layers = list(layers)
        self._writing = threading.Lock()

    def names(self) -> dict[str, list[str]]:
        """Every file by its name, with the participants that read it; `system` is all of them. Raises `ConfigError`."""
        return {name: readers for name, (_, readers) in self._kinds().items()}

    def described(self) -> list[Json]:
        """Return every file in the order of its name: its readers, its comments on itself and on each key, and the keys
        in the user's file. Raises `ConfigError`.
        """
        return [self._described(name, *found) for name, found in sorted(self._kinds().items())]

    def _described(self, name: str, kind: type[Settings], readers: Sequence[str]) -> Json:
        about, texts = self._texts(name, kind)
        changed = [key for key in self._own(name) if key in kind.model_fields]
        return {"name": name, "read_by": readers, "about": about, "keys": texts, "changed": changed}

    def secrets_named(self) -> dict[str, list[str]]:
        """The secrets that settings name, and where, such as `web_search.brave_api_key`. A file that is invalid is left
        out. Raises `ConfigError`."""
        found: dict[str, list[str]] = {}
        for file, (kind, _) in self._kinds().items():
            with suppress(ConfigError):
                for place, secret in _named(load(file, kind, self._layers).model_dump()):
                    found.setdefault(secret, []).append(f"{file}.{place}")
        for server, settings in load_mcp_servers(self._layers[-1]).items():
            for secret in dict.fromkeys(re.findall(rf"{MARK}([\w.-]+)", settings.model_dump_json())):
                found.setdefault(secret, []).append(f"mcp_{server}")
        return found

    def show(self, name: str) -> Json:
        """Return one file: its schema, what it says of itself (`about`) and of each key (`keys`), the effective values,
        the defaults, where each value comes from, the user's file without comments and secrets (`text`), and the
        participants to restart after a change. If the file is invalid, `problem` says why, and there are no values.
        Raises `SettingsRefused`, `ConfigError`.
        """
        kind, readers = self._kind(name)
        about, texts = self._texts(name, kind)
        values, problem = None, None
        try:
            values = _shown(load(name, kind, self._layers))
        except ConfigError as error:
            problem = str(error)
        return {
            "name": name,
            "schema": kind.model_json_schema(),
            "about": about,
            "keys": texts,
            "sources": self._sources(name, kind, readers),
            "by_conversation": [key for key in AnswerOptions.model_fields if key in kind.model_fields]
            if name == "generator"
            else [],
            "text": self._as_text(name),
            "values": values,
            "defaults": _shown(load(name, kind, self._layers[:-1])),
            "problem": problem,
            "file": str(self._layers[-1] / f"{name}.yaml"),
            "restart_needed": readers,
        }

    def change(self, name: str, values: Mapping[str, Any], reset: Collection[str] = ()) -> Json:
        """Take the keys `reset` out of the user's file and write the `values` into it, if the result is valid; the
        rest stays unchanged. Returns what `show` does. Raises `SettingsRefused`, `ConfigError`, `StoreUnwritable`.
        """
        kind, _ = self._kind(name)
        without = [*reset, *(old for old, new in RENAMED_KEYS.get(name, {}).items() if new in reset)]
        for key in reset:
            if key not in kind.model_fields:
                raise SettingsRefused("invalid", f"{key}: there is no such setting in {name}.yaml", key)
        for key, value in values.items():
            if _has_hidden(value):
                raise SettingsRefused(
                    "invalid", f"{key}: {HIDDEN} stands for a secret; write {MARK}NAME in its place", key
                )
        with self._writing:
            try:
                self._require_valid(name, kind, values, without)
            except OSError as error:  # of the folder for temporary files
                raise SettingsRefused("unavailable", f"the settings cannot be checked: {error}") from None
            change(self._layers[-1] / f"{name}.yaml", values, without)
        return self.show(name)

    def _require_valid(
        self, name: str, kind: type[Settings], values: Mapping[str, Any], without: Collection[str]
    ) -> None:
        """Try it with a copy of the user's files."""
        with tempfile.TemporaryDirectory() as folder:
            base, above = Path(folder, "base"), Path(folder, f"{name}.yaml")
            above.write_text(json.dumps(values), encoding="utf-8")
            try:
                last = self._copied(base, name, without) if without else self._layers[-1]
                config = load(name, kind, [*self._layers[:-1], last, above.parent])
            except ConfigError as error:
                text = str(error).replace(f"{base}/", "").replace(str(above), above.name)
                key = next((each for each in (*values, *without) if re.search(rf"(^|: ){each}\b", text)), None)
                raise SettingsRefused("invalid", text, key) from None
        _require_no_secret(config, values)

    def _copied(self, folder: Path, name: str, without: Collection[str]) -> Path:
        folder.mkdir()
        others = {*MOVED_KEYS.get(name, {}).values(), *SHARED_KEYS.get(name, {}).values()}
        for file in {name, *others}:
            with suppress(FileNotFoundError):
                (folder / f"{file}.yaml").write_bytes((self._layers[-1] / f"{file}.yaml").read_bytes())
        change(folder / f"{name}.yaml", {}, without)
        return folder

    def _texts(self, name: str, kind: type[Settings]) -> tuple[list[str], dict[str, list[str]]]:
        """Return the comments of the defaults, else the descriptions in the class."""
        about, texts = texts_of(self._layers[0] / f"{name}.yaml")
        fields = kind.model_fields.items()
        return about, {key: texts.get(key) or [*filter(None, [field.description])] for key, field in fields}

    def _own(self, name: str) -> dict[str, Any]:
        """The keys in the user's file, by their names of today; none if it cannot be read."""
        with suppress(ConfigError):
            renamed = RENAMED_KEYS.get(name, {})
            values = read(self._layers[-1] / f"{name}.yaml").values
            return {renamed.get(key, key): value for key, value in values.items()}
        return {}

    def _sources(self, name: str, kind: type[Settings], readers: Sequence[str]) -> dict[str, Json]:
        """Return the source of each value that is not the default: an environment variable, the line of a participant
        in system.yaml, or a file of the user's.
        """
        own, variables = self._own(name), environment()
        found: dict[str, Json] = {
            key: {"from": "file", "name": f"{name}.yaml"} for key in own if key in kind.model_fields
        }
        for key, other in {**MOVED_KEYS.get(name, {}), **SHARED_KEYS.get(name, {})}.items():
            if key not in own and key in self._own(other):
                found[key] = {"from": "file", "name": f"{other}.yaml"}
        for entry in self._system().participants:
            if entry.name in readers:
                found.update({key: {"from": "system", "name": entry.name} for key in entry.config})
        for key in SECRETS:
            if key in kind.model_fields and getattr(variables, key):
                found[key] = {"from": "variable", "name": VARIABLES[key]}
        if name == "system" and variables.ollama_host and not own.get("ollama_url"):
            found["ollama_url"] = {"from": "variable", "name": "OLLAMA_HOST"}
        return found

    def _as_text(self, name: str) -> str:
        """The user's file as YAML, without comments, which may hold anything, and with its secrets masked."""
        try:
            values = read(self._layers[-1] / f"{name}.yaml").values
        except ConfigError:
            return ""  # `problem` has the reason
        shown = {key: _masked(key, value) for key, value in values.items()}
        return yaml.safe_dump(shown, allow_unicode=True, sort_keys=False, width=100) if shown else ""

    def _kind(self, name: str) -> tuple[type[Settings], list[str]]:
        kinds = self._kinds()
        if name not in kinds:
            raise SettingsRefused("not_found", f"there are no settings {name}; there are {', '.join(sorted(kinds))}")
        return kinds[name]

    def _kinds(self) -> dict[str, tuple[type[Settings], list[str]]]:
        """Every file by its name: its class, and the participants that read it."""
        system = self._system()
        found: dict[str, tuple[type[Settings], list[str]]] = {name: (kind, ["system"]) for name, kind in OF_ALL.items()}
        targets = {**ALWAYS, **{entry.name: entry.target for entry in system.participants}}
        for name, target in targets.items():
            kind = find_class(target, system.python_path)
            file = kind.settings or kind.name or name
            if file not in OF_ALL:
                found.setdefault(file, (kind.Config, []))[1].append(name)
        return found

    def _system(self) -> SystemConfig:
        return load_system(self._layers, {}, environment())


def _require_no_secret(config: Settings, values: Mapping[str, Any]) -> None:
    typed = set(_strings(values))
    for key in values:
        value = getattr(config, key)
        for secret in _secrets(value):
            if secret in typed and secret and name_in(secret) is None:
                text = f"expected {MARK}NAME; store the value with 'local2 secret set NAME', not in a file"
                raise SettingsRefused("invalid", f"{key}: {text}", key)
        if key in SECRETS and not isinstance(value, SecretStr):
            raise SettingsRefused("invalid", f"{key}: cannot be set in a file; set its environment variable", key)


def _secrets(value: object) -> Iterator[str]:
    """The values of all secret settings in it."""
    match value:
        case SecretStr():
            yield value.get_secret_value()
        case Settings():
            yield from _secrets(dict(value))
        case dict():
            for each in value.values():
                yield from _secrets(each)
        case list() | tuple():
            for each in value:
                yield from _secrets(each)


def _named(value: object, place: str = "") -> Iterator[tuple[str, str]]:
    """Yield where a secret is named, in a setting for one or in a text, such as a model server's; and its name."""
    match value:
        case SecretStr():
            yield from _named(value.get_secret_value(), place)
        case str():
            name = name_in(value)
            if name is not None and NAME.fullmatch(name):
                yield place, name
        case dict():
            for key, each in value.items():
                yield from _named(each, f"{place}.{key}" if place else str(key))
        case list() | tuple():
            for each in value:
                yield from _named(each, place)


def _strings(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case Mapping():
            for each in value.values():
                yield from _strings(each)
        case list() | tuple():
            for each in value:
                yield from _strings(each)


def _has_hidden(value: object) -> bool:
    return HIDDEN in _strings(value)


def _masked(key: str, value: Any, *, is_secret: bool = False) -> Any:
    """Return a value of a settings file, masked if it looks like a secret: by its key, or as the password of an
    address.
    """
    is_secret = is_secret or key in SECRETS or bool(_LIKE_A_SECRET.search(key))
    match value:
        case str():
            return HIDDEN if is_secret and value and name_in(value) is None else without_passwords(value)
        case int() | float() if is_secret and not isinstance(value, bool):
            return HIDDEN
        case dict():
            return {each: _masked(str(each), inner, is_secret=is_secret) for each, inner in value.items()}
        case list():
            return [_masked(key, each, is_secret=is_secret) for each in value]
    return value


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
