"""Repositories for tests, made by the git that is installed."""

from __future__ import annotations

import subprocess
from pathlib import Path

ANN = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "init.defaultBranch=main")


def git(root: Path, *arguments: str, check: bool = True) -> str:
    """What git says, run as a person would run it."""
    done = subprocess.run(["git", *ANN, *arguments], cwd=root, capture_output=True, text=True, check=False, timeout=90)
    assert not check or done.returncode == 0, done.stderr
    return done.stdout


def repository(root: Path) -> Path:
    """One with a commit: a.txt says one."""
    root.mkdir(parents=True, exist_ok=True)
    git(root, "init", "--quiet")
    (root / "a.txt").write_text("one\n")
    git(root, "add", ".")
    git(root, "commit", "--quiet", "--message", "First\n\nThe body.")
    return root
