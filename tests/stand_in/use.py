"""Has systems that are started from a process run the stand-in of the tests."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = str(Path(__file__).parents[2])


def use_in_systems() -> None:
    """From now on, in every system that inherits this process's environment."""
    os.environ["LOCAL2_STAND_IN"] = "tests.stand_in.server:serve"
    path = os.environ.get("PYTHONPATH", "")
    if ROOT not in path.split(os.pathsep):
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [path, ROOT]))
