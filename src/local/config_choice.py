"""Which model answers from the next start on, as the user's models.yaml says it: the one place for that choice."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from local.config import SystemConfig, load
from local.config_edit import change
from local.config_models import Kind, ModelsConfig, load_models
from local.errors import ConfigError

FILE = "models.yaml"


def choose_model(layers: Sequence[Path], kind: Kind, model: str, file: Path | None = None) -> Path:
    """Put a model of a server of this kind at the head of the chain for chat; `file` is the GGUF for llama-server.

    What stood there makes room, further models of the chain stay. Returns the file that was written. Raises
    `ConfigError`, also where another setting would keep the model from answering.
    """
    config = load_models(layers)
    backend = load("system", SystemConfig, layers).backend
    if backend == "stand_in":
        raise ConfigError("backend: stand_in in system.yaml keeps every model from answering; take that line out")
    provider = _provider(config, kind)
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
