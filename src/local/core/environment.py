"""The environment variables that LoCAL2 reads, and its default folders. Quick to import, for commands that only talk
to a running system and need no settings.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from local.core.errors import ConfigError

LEAST_SECRET_CHARACTERS = 8  # less would mask words that have nothing to do with it
_SECRET_ENDINGS = ("KEY", "TOKEN", "SECRET", "PASSWORD", "PASSWD")


@dataclass(frozen=True)
class Environment:
    """The settings that LoCAL2 reads from environment variables. None where a variable is unset or empty."""

    ollama_host: str | None = None
    brave_api_key: str | None = field(default=None, repr=False)
    tavily_api_key: str | None = field(default=None, repr=False)
    api_token: str | None = field(default=None, repr=False)
    hf_token: str | None = field(default=None, repr=False)
    config_dir: Path | None = None
    data_dir: Path | None = None
    failpoints: str = ""
    stand_in: str = "local.stand_in.server:serve"  # the server in the place of a model; tests have another one
    editor: str | None = None
    terminal: str | None = None  # its kind
    wants_no_colour: bool = False
    wants_plain_text: bool = False  # neither colour nor a cursor that moves: for a screen reader
    completed_words: tuple[str, ...] = ()  # of the command line, when a shell asks for completions


def environment(variables: Mapping[str, str] = os.environ) -> Environment:
    """Read the variables that LoCAL2 knows."""
    config_dir, data_dir = variables.get("LOCAL2_CONFIG_DIR"), variables.get("LOCAL2_DATA_DIR")
    return Environment(
        ollama_host=variables.get("OLLAMA_HOST") or None,
        brave_api_key=variables.get("BRAVE_API_KEY") or None,
        tavily_api_key=variables.get("TAVILY_API_KEY") or None,
        api_token=variables.get("LOCAL2_API_TOKEN") or None,
        hf_token=variables.get("HF_TOKEN") or None,
        config_dir=Path(config_dir) if config_dir else None,
        data_dir=Path(data_dir) if data_dir else None,
        failpoints=variables.get("LOCAL2_FAILPOINTS", ""),
        stand_in=variables.get("LOCAL2_STAND_IN") or Environment.stand_in,
        editor=variables.get("VISUAL") or variables.get("EDITOR") or None,
        terminal=variables.get("TERM") or None,
        wants_no_colour=bool(variables.get("NO_COLOR")),
        wants_plain_text=bool(variables.get("ACCESSIBLE")),
        completed_words=_completed_words(variables),
    )


def _completed_words(variables: Mapping[str, str]) -> tuple[str, ...]:
    """Return the words as typer's shell scripts pass them; an empty last word is one that is about to begin."""
    if not variables.get("_LOCAL2_COMPLETE"):
        return ()
    line = variables.get("COMP_WORDS") or variables.get("_TYPER_COMPLETE_ARGS") or ""
    return (*line.split(), *([""] if line[-1:].isspace() else []))


def secrets(variables: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Return the values that logs must not show: those of all variables named like keys, tokens or passwords."""
    return tuple(
        value
        for name, value in variables.items()
        if name.upper().endswith(_SECRET_ENDINGS) and len(value) >= LEAST_SECRET_CHARACTERS
    )


def has_display(variables: Mapping[str, str] = os.environ) -> bool:
    """Whether there is a display to open a window on."""
    names = ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    return sys.platform == "darwin" or any(variables.get(name) for name in names)


def is_set(variable: str) -> bool:
    """Whether an environment variable that may contain a key is set and not empty."""
    return bool(os.environ.get(variable))


def variable(name: str) -> str | None:
    """The value of an environment variable that a setting names; None where it is unset."""
    return os.environ.get(name)


def secret(variable: str) -> str:
    """The value of the environment variable that a setting names. Raises ConfigError if it is unset or empty."""
    value = os.environ.get(variable, "")
    if not value:
        raise ConfigError(f"the environment variable {variable} is not set, and models.yaml says that it holds a key")
    return value


def environment_with(additions: Mapping[str, str]) -> dict[str, str]:
    """The environment of this process, for a program that it starts, with some variables set."""
    return {**os.environ, **additions}


def settings_dir(flag: Path | None = None) -> Path:
    """The user's folder of settings: the flag, else LOCAL2_CONFIG_DIR, else the platform's. It need not exist."""
    named = flag or environment().config_dir
    if named is None:
        import platformdirs

        return platformdirs.user_config_path("local2", appauthor=False)
    return named.expanduser().resolve()


def bundled_model_dir() -> Path:
    """Return the folder for the bundled embedding model where LoCAL2 is an installed package: in the data directory."""
    return data_dir(None) / "models" / "all-MiniLM-L6-v2"


def data_dir(flag: Path | None) -> Path:
    """Return the data directory: the flag, else LOCAL2_DATA_DIR, else the platform's folder. It may not exist yet."""
    named = flag or environment().data_dir
    if named is None:
        import platformdirs

        named = platformdirs.user_data_path("local2", appauthor=False)
    return named.expanduser().resolve()
