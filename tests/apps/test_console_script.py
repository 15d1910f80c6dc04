"""The command that is told to stop while it imports what it needs."""

from __future__ import annotations

import signal
import subprocess
import sys

# An importer that sends the signal when typer is asked for.
TOLD = """
import os, sys

class Teller:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            os.kill(os.getpid(), int(sys.argv[1]))

sys.meta_path.insert(0, Teller())
from local.apps.console_script import main
from local.set_up.python_environment import PythonEnvironment
PythonEnvironment.is_entered = True
main()
"""


def test_a_command_that_is_interrupted_while_it_imports_ends_without_a_traceback() -> None:
    command = [sys.executable, "-c", TOLD, str(int(signal.SIGINT))]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (ended.returncode, ended.stderr + ended.stdout) == (-signal.SIGINT, "")
