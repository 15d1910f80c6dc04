"""The source as syntax trees, for the tests that hold its walls."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

# Without these there is no system that answers, or nobody who says what it may do; others may be taken out.
NEEDED = ("bus", "journal", "models", "generator", "permissions", "cli", "run")
SOURCE = Path(__file__).parents[1] / "src" / "local"


@cache
def source_trees() -> dict[str, ast.Module]:
    """Every source file by its path below `local`, in order; read once by each process that runs tests."""
    files = sorted(SOURCE.rglob("*.py"))
    return {file.relative_to(SOURCE).as_posix(): ast.parse(file.read_text(encoding="utf-8")) for file in files}
