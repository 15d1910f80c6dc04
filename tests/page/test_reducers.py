"""What the page makes of events, without a browser."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import playwright


def test_the_page_s_pure_modules_pass_their_own_tests() -> None:
    bundled = Path(playwright.__file__).parent / "driver" / "node"
    node = shutil.which("node") or str(bundled)
    tests = sorted(str(path) for path in Path(__file__).parent.glob("*.test.mjs"))
    run = subprocess.run([node, "--test", *tests], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "# fail 0" in run.stdout
