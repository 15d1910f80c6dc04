"""What all scripts share: they run inside `.venv`, which holds what the locks say."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
WORKERS_PER_CORE = 3

sys.path.insert(0, str(ROOT / "src"))  # before there is an environment into which it is installed

from local.core.setup import RUN, TEST, PythonEnvironment  # noqa: E402 - found by the line above


def run_command(name: str) -> None:
    """Run `local2 <name>` with this script's arguments, inside the environment."""
    enter()
    from local.cli.entry import main

    main([name, *sys.argv[1:]])


def run_tests() -> None:
    """Run pytest from the top of the checkout, inside the environment, several workers for each core: many tests wait.

    Compiled modules are kept, as an installation has them: tests start hundreds of processes.
    """
    enter(TEST)
    import pytest
    from memory_disk import keep_test_files_in_memory

    os.chdir(ROOT)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    keep_test_files_in_memory()
    if "CI" not in os.environ and _lacks_libraries_of_qt():
        print("The tests of the desktop window are left out: Qt needs libEGL, in Debian's package libegl1.")
        without = "-p no:pytest-qt -W ignore::pytest.PytestConfigWarning --ignore=tests/desktop"  # for workers, too
        os.environ["PYTEST_ADDOPTS"] = f"{os.environ.get('PYTEST_ADDOPTS', '')} {without}"
    workers = str(WORKERS_PER_CORE * (os.cpu_count() or 1))
    sys.exit(pytest.main(["-n", workers, "--dist", "worksteal", *sys.argv[1:]]))


def _lacks_libraries_of_qt() -> bool:
    """Whether PySide6 is installed, but libraries of the system are missing that it needs even without a display."""
    if importlib.util.find_spec("PySide6") is None:
        return False
    try:
        importlib.import_module("PySide6.QtWidgets")
    except ImportError:
        return True
    return False


def enter(locks: Sequence[str] = RUN) -> None:
    """Run in the environment from here on, which is made or brought up to date first."""
    PythonEnvironment().enter(locks)
