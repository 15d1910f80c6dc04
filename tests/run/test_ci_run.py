"""CI's script in a tiny checkout: its checks, the second try of failed tests, its last line and its exit status."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Runs pytest as the real one does, without an environment of its own.
RUN_TESTS = "import sys, pytest; sys.exit(pytest.main(sys.argv[1:]))"
GOOD = "def test_good(): pass\n"
# Fails until it has been run once.
FLAKY = """
from pathlib import Path
def test_flaky():
    ran = Path("ran")
    if not ran.exists():
        ran.touch()
        assert False
"""
BAD = "def test_bad(): assert False\n"
CHECKS = ("ruff", "mypy", "mkdocs")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    root = tmp_path / "checkout"
    for name in (".ci", "scripts", "tests", ".venv/bin", "tools"):
        (root / name).mkdir(parents=True)
    shutil.copy(ROOT / ".ci" / "run", root / ".ci" / "run")
    (root / "scripts" / "run_tests.py").write_text(RUN_TESTS)
    (root / "pytest.ini").write_text("[pytest]\ntestpaths = tests\n")
    (root / "tests" / "test_good.py").write_text(GOOD)
    for tool in ("tools/chromium-headless-shell", "tools/bwrap", *(f".venv/bin/{one}" for one in CHECKS)):
        (root / tool).write_text("#!/bin/sh\n")
        (root / tool).chmod(0o755)
    (root / "tools" / "python3").symlink_to(sys.executable)
    return root


def run(root: Path) -> subprocess.CompletedProcess[str]:
    site = str(Path(pytest.__file__).parents[1])
    variables = {"PATH": f"{root / 'tools'}:{os.environ['PATH']}", "PYTHONPATH": site, "HOME": str(root)}
    command = ["bash", str(root / ".ci" / "run")]
    return subprocess.run(
        command, env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False
    )


def test_a_test_that_passes_the_second_time_is_named_and_ci_passes(checkout: Path) -> None:
    (checkout / "tests" / "test_flaky.py").write_text(FLAKY)
    done = run(checkout)
    *before, last = done.stdout.splitlines()
    assert done.returncode == 0, done.stdout
    assert "flaky: tests/test_flaky.py::test_flaky" in before[-5:]
    assert " 1 passed" in last


def test_a_test_that_fails_twice_fails_ci_beside_a_flaky_one(checkout: Path) -> None:
    (checkout / "tests" / "test_flaky.py").write_text(FLAKY)
    (checkout / "tests" / "test_bad.py").write_text(BAD)
    done = run(checkout)
    *before, last = done.stdout.splitlines()
    assert done.returncode == 1
    assert "flaky: tests/test_flaky.py::test_flaky" in before
    assert "1 failed, 1 passed" in last


def test_tests_that_pass_are_run_once(checkout: Path) -> None:
    done = run(checkout)
    assert done.returncode == 0 and " 1 passed" in done.stdout.splitlines()[-1]
    assert "flaky" not in done.stdout


@pytest.mark.parametrize("tool", CHECKS)
def test_a_check_that_fails_fails_ci(checkout: Path, tool: str) -> None:
    (checkout / ".venv" / "bin" / tool).write_text("#!/bin/sh\nexit 3\n")
    assert run(checkout).returncode == 3
