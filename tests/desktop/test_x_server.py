"""The window on a real X server, without a screen."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SECONDS = 90.0
PROGRAM = Path(__file__).with_name("on_x_server.py")


@pytest.fixture
def display() -> Iterator[str]:
    """Skips the test where there is no Xvfb; in CI there is one."""
    server = shutil.which("Xvfb")
    if server is None:
        assert not os.environ.get("CI"), "CI has the package xvfb"
        pytest.skip("there is no Xvfb")
    told, tell = os.pipe()
    with subprocess.Popen(
        [server, "-displayfd", str(tell), "-screen", "0", "1440x900x24", "-nolisten", "tcp"],
        pass_fds=(tell,), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        os.close(tell)
        with os.fdopen(told) as reader:
            yield f":{reader.readline().strip()}"
        process.terminate()


def test_the_window_works_on_an_x_server(display: str, tmp_path: Path) -> None:
    variables = {**os.environ, "DISPLAY": display, "QT_QPA_PLATFORM": "xcb"}
    done = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path)], env=variables, capture_output=True, text=True, timeout=SECONDS,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "shown on xcb\n"), done.stderr
