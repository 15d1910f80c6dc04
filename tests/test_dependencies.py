"""What is imported is declared, what is declared is imported, and one framework reads command lines."""

from __future__ import annotations

import ast
import importlib.metadata
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
IMPORTED_BY_OTHERS = {"lxml-html-clean": "trafilatura"}  # what is declared because another package needs it to be there
INSTALLED = importlib.metadata.packages_distributions()
OTHER_FRAMEWORKS = {"argparse", "optparse", "getopt", "click"}


def imported() -> Iterator[tuple[str, str]]:
    """The top-level name of each module that a source file imports, with the file."""
    for file in sorted((ROOT / "src" / "local").rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            for name in names:
                yield name.partition(".")[0], str(file.relative_to(ROOT))


def declared(lines: list[str]) -> set[str]:
    """The normalised names of distributions, out of requirements."""
    return {re.split(r"[<>=!~ \[;]", line)[0].lower().replace("_", "-").replace(".", "-") for line in lines}


def distributions(name: str) -> set[str]:
    """The distributions that bring an importable name; itself if none is installed."""
    return {each.lower().replace("_", "-").replace(".", "-") for each in INSTALLED.get(name, [name])}


FOREIGN = {(name, file) for name, file in imported() if name not in {"local", "__future__", *sys.stdlib_module_names}}


def test_what_is_imported_is_declared() -> None:
    optional = [line for lines in PROJECT.get("optional-dependencies", {}).values() for line in lines]
    known = declared([*PROJECT["dependencies"], *optional])
    assert {f"{file}: {name}" for name, file in FOREIGN if not distributions(name) & known} == set()


def test_what_is_declared_is_imported() -> None:
    used = {distribution for name, _ in FOREIGN for distribution in distributions(name)}
    assert declared(PROJECT["dependencies"]) - used - set(IMPORTED_BY_OTHERS) == set()


def test_one_framework_reads_command_lines() -> None:
    assert {f"{file}: {name}" for name, file in imported() if name in OTHER_FRAMEWORKS} == set()
