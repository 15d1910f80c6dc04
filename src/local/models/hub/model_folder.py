"""The folder in which GGUF files lie that were pulled."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from local.errors import NoSuchModel
from local.models.hub.hub_reference import SUFFIX

MAGIC = b"GGUF"
_LATER_PART = re.compile(r".+-(?!00001)\d{5}-of-\d{5}", re.I)
_FIRST_PART = re.compile(r"(.+)-00001-of-(\d{5})", re.I)


@dataclass(frozen=True, slots=True)
class GgufModel:
    """A model in one GGUF file, or in several of which `path` is the first; `size` in bytes is that of all."""

    name: str
    path: Path
    size: int


class ModelFolder:
    """All methods look at the disk. A folder that is not there holds nothing."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def models(self) -> list[GgufModel]:
        """What lies here, by name."""
        files = sorted(self.path.glob(f"*{SUFFIX}")) if self.path.is_dir() else []
        return [model_at(file) for file in files if file.is_file() and not _LATER_PART.fullmatch(file.stem)]

    def find(self, name: str) -> GgufModel | None:
        """A model by its name, with `.gguf` or without; or by the path of a file anywhere. None if there is none.

        Raises `NoSuchModel` for a file that is no GGUF.
        """
        for model in self.models():
            if name in (model.name, model.path.name):
                return model
        try:
            path = Path(name).expanduser()
            if not path.is_file():
                return None
        except (OSError, RuntimeError):  # too long for a file, behind what is closed, or in a home that nobody has
            return None
        require_gguf(path)
        return model_at(path.resolve())


def model_at(path: Path) -> GgufModel:
    """The model whose file, or first part, this is."""
    return GgufModel(path.stem, path, sum(part.stat().st_size for part in _parts(path)))


def require_gguf(path: Path) -> None:
    """Raises `NoSuchModel` for a file that does not begin like a GGUF file, or cannot be read."""
    try:
        with path.open("rb") as file:
            begin = file.read(len(MAGIC))
    except OSError as error:
        raise NoSuchModel(f"{path} cannot be read: {error.strerror}", kind="model_missing") from None
    if begin != MAGIC:
        raise NoSuchModel(f"{path} is no GGUF file: it does not begin with {MAGIC.decode()}", kind="bad_model")


def _parts(path: Path) -> Iterator[Path]:
    first = _FIRST_PART.fullmatch(path.stem)
    if first is None:
        yield path
        return
    numbers = range(1, int(first[2]) + 1)
    parts = (path.with_name(f"{first[1]}-{number:05d}-of-{first[2]}{path.suffix}") for number in numbers)
    yield from (part for part in parts if part.is_file())
