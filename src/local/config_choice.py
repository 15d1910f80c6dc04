"""Which model answers by default, as the user's models.yaml says it: the one place for that choice."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from local.config import SystemConfig, load
from local.config_edit import change
from local.config_models import Kind, ModelsConfig, Routing, load_models
from local.errors import ConfigError

FILE = "models.yaml"

log = logging.getLogger(__name__)


def choose_model(
    layers: Sequence[Path], kind: Kind, model: str, file: Path | None = None, provider: str | None = None
) -> Path:
    """Put a model of a server of this kind at the head of the chain for chat; `file` is the GGUF for llama-server,
    `provider` the server's name in the settings, without which it is the first of its kind.

    What stood there makes room, further models of the chain stay. Returns the file that was written. Raises
    `ConfigError`, also where another setting would keep the model from answering.
    """
    config = load_models(layers)
    backend = load("system", SystemConfig, layers).backend
    if backend == "stand_in":
        raise ConfigError("backend: stand_in in system.yaml keeps every model from answering; take that line out")
    provider = provider or _provider(config, kind)
    name = f"{provider}/{model}"
    others = [other for other in config.roles.chat[1:] if other != name]
    changes: dict[str, Any] = {"roles": {"chat": [name, *others]}}
    if file is not None:
        changes["providers"] = {provider: {"kind": kind, "model": str(file)}}
    load_models(layers, changes)
    path = layers[-1] / FILE
    change(path, changes)
    return path


def chosen_model(layers: Sequence[Path]) -> str:
    """What the settings say now, as provider/model: the head of the chain for chat; empty if they name none."""
    return next(iter(load_models(layers).roles.chat), "")


def _provider(config: ModelsConfig, kind: Kind) -> str:
    """The first provider of a kind, by name; the kind's own name where there is none."""
    return next((name for name, provider in config.providers.items() if provider.kind == kind), kind)


class DefaultModel:
    """The model that answers where a query chooses none. It follows `roles.chat` in models.yaml while the system runs,
    as long as a server that is used already can serve the first model there. `name` is its name for people, `chain`
    the models that are asked, the default first."""

    def __init__(self, routing: Routing, layers: Sequence[Path], name: str) -> None:
        """`name` is the default of the start."""
        self._routing, self._layers = routing, layers
        self.name, self.chain = name, routing.config.roles.chat or (name,)
        self._read: object = None

    def refresh(self) -> bool:
        """Look whether the settings have changed; returns whether another model is the default now."""
        read = self._state()
        if read is None or read == self._read:
            return False
        self._read = read
        try:
            chain = load_models(self._layers).roles.chat
            if not chain or not self._routing.serves(chain[0]):
                return False
            name = self._routing.shown(*self._routing.locate(chain[0]))
        except ConfigError as error:
            log.warning("the default model stays %s: %s", self.name, error)
            return False
        before, self.name, self.chain = self.name, name, tuple(filter(self._routing.serves, chain))
        return name != before

    def _state(self) -> object:
        """What changes with the file; None where it is not looked at."""
        if self._routing.is_fixed or not self._layers:
            return None
        try:
            found = (self._layers[-1] / FILE).stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino
