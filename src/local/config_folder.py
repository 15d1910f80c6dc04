"""What lies in a folder of settings: a file that nobody would read is a mistake of whoever wrote it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from local import config_file
from local.config_fault import suggestion

OF_NO_MODULE = ("api", "journal", "models", "system")  # beside those of whoever can be among the `participants`
OF_ANOTHER = ("generator_b",)  # has the settings of the generator
READ, SIMILAR = ".yaml", (".yaml", ".yml")
_OURS = ("name", "settings")


def require_known_files(layers: Sequence[Path], names: Collection[str]) -> None:
    """Raises `ConfigError` for a YAML file in one of these folders that has none of these names."""
    for folder in layers:
        for path in _yaml_files(folder):
            if path.suffix != READ or path.stem not in names:
                meant = suggestion(path.stem, names, READ)
                raise config_file.fault(path, None, f"nobody reads this file; {meant}")


def declared(target: str, python_path: Sequence[Path]) -> Mapping[str, str] | None:
    """What the class of "package.module:Class" says of its `name` and `settings`. Read, not imported: that is left to
    its own process. None if its source cannot be found or read."""
    module, _, wanted = target.partition(":")
    for folder in (*python_path, *map(Path, sys.path)):
        place = folder.joinpath(*module.split("."))
        for file in (place.with_suffix(".py"), place / "__init__.py"):
            if file.is_file():
                return _said_in(file, wanted)
    return None


def _yaml_files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in SIMILAR and not path.name.startswith("."))


def _said_in(file: Path, wanted: str) -> Mapping[str, str] | None:
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
