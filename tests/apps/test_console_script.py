"""The command that is told to stop while it imports what it needs."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

# An importer that sends the signal when typer is asked for.
TOLD = """
import os, runpy, sys

class Teller:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            os.kill(os.getpid(), int(sys.argv[1]))

sys.meta_path.insert(0, Teller())
"""
AS_INSTALLED = """
from local.apps.console_script import main
from local.set_up.python_environment import PythonEnvironment
PythonEnvironment.is_entered = True
main()
"""
AS_A_MODULE = """
runpy.run_module("local.apps.cli", run_name="__main__")
"""


@pytest.mark.parametrize("way", [AS_INSTALLED, AS_A_MODULE], ids=["local2", "python -m local.apps.cli"])
def test_a_command_that_is_interrupted_while_it_imports_ends_without_a_traceback(way: str) -> None:
    command = [sys.executable, "-c", TOLD + way, str(int(signal.SIGINT))]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr + ended.stdout) == (-signal.SIGINT, "")
