"""What the page makes of events, without a browser."""

from __future__ import annotations

import subprocess
from pathlib import Path

import playwright


def test_the_page_s_pure_modules_pass_their_own_tests() -> None:
    node = Path(playwright.__file__).parent / "driver" / "node"
    tests = sorted(str(path) for path in Path(__file__).parent.glob("*.test.mjs"))
    command = [str(node), "--test", "--test-isolation=none", "--test-reporter=tap", *tests]
    run = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "# fail 0" in run.stdout
