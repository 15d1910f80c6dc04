"""What the command line says of a start."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Flags:
    """What the command line says. None leaves it to the configuration."""

    api: bool = False
    headless: bool = False
    config_dir: Path | None = None
    data_dir: Path | None = None
    log_level: str = "info"
    system: Mapping[str, Any] = field(default_factory=dict)  # overrides of system.yaml
    generator: Mapping[str, Any] = field(default_factory=dict)  # overrides of generator.yaml
    respondent_b: Mapping[str, Any] | None = None  # further ones for the second respondent; None: not asked for
    starter: int | None = None  # a pipe that has its end when whoever has started this system has ended

    @property
    def models(self) -> Mapping[str, Any]:
        """Overrides of models.yaml: a model that is named here answers, and no chain of others."""
        return {"roles": {"chat": []}} if "model" in self.generator else {}
