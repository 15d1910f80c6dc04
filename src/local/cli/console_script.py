"""The installed command `local2`. That of a checkout runs in the checkout's `.venv`, and creates it if necessary."""

from __future__ import annotations

import importlib.util
import os
import signal
import sys


def main() -> None:
    """Entry point."""
    if os.name == "nt":
        sys.exit("LoCAL2 runs on Linux and macOS; on Windows start it inside WSL")
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # nothing yet is to be ended in order
    from local.core.setup import RUN, PythonEnvironment, arrive

    environment = PythonEnvironment()
    if environment.is_entered:
        arrive()
        if not environment.is_ours and importlib.util.find_spec("typer") is None:
            sys.exit(
                f"LoCAL2's packages are not installed in {environment.folder}, which another tool has made, such as"
                " `python -m venv` or `uv sync`: run `deactivate`, delete that folder, then run"
                " `python3 scripts/run_local.py`, which makes it again with all packages"
            )
    else:
        environment.enter(RUN)  # of a checkout
    from local.cli.entry import main as run_command

    run_command()
