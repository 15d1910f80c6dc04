"""The set-up that all scripts share: they run inside `.venv`, which holds what the locks say.

Standard library only, and little of it: this runs at every start, and nearly always finds nothing to do.
"""

from __future__ import annotations

import hashlib
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "set-up.stamp"
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
RUN = ("requirements.lock",)
TEST = ("requirements.lock", "requirements-dev.lock")
WORKERS_PER_CORE = 2


class SetUpFailed(Exception):
    """The environment cannot be made; the text says what failed and what to do about it."""


def run_command(name: str) -> None:
    """Run `local2 <name>` with this script's arguments, inside the environment."""
    enter(RUN)
    from local.apps.cli import main

    main([name, *sys.argv[1:]])


def run_tests() -> None:
    """Run pytest from the top of the checkout, inside the environment, two workers for each core: many tests wait.

    Compiled modules are kept, as an installation has them: tests start hundreds of processes.
    """
    enter(TEST)
    import pytest

    os.chdir(ROOT)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    workers = str(WORKERS_PER_CORE * (os.cpu_count() or 1))
    sys.exit(pytest.main(["-n", workers, "--dist", "worksteal", *sys.argv[1:]]))


def enter(locks: Sequence[str]) -> None:
    """Return if this process runs in an up-to-date `.venv`; else make it so and start the script again inside it.

    Ends the process with one line and status 2 where that cannot be done.
    """
    try:
        if is_current(locks):
            if VENV.samefile(sys.prefix):
                signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
                return
        else:
            import install

            signal.signal(signal.SIGINT, signal.default_int_handler)
            install.bring_up_to_date(locks)
        sys.stderr.flush()
        signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # until this script is in the other Python
        os.execv(PYTHON, [str(PYTHON), *sys.argv])
    except (SetUpFailed, OSError) as error:
        print(f"LoCAL2 could not be set up: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("\nset-up stopped; the next start begins it again", file=sys.stderr)
        sys.exit(130)


def is_current(locks: Sequence[str]) -> bool:
    """Whether the last finished set-up covers these locks as they are now."""
    wanted = expected_stamp(locks)
    return read_stamp()[: len(wanted)] == wanted and PYTHON.exists()


def read_stamp() -> list[str]:
    """What the last set-up wrote when it had finished; nothing if none has."""
    try:
        return STAMP.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []


def expected_stamp(locks: Sequence[str]) -> list[str]:
    """One line for what the whole environment hangs on, then one with a digest for each lock in turn.

    An environment cannot be moved, so its folder counts as much as its Python. Each digest includes the locks before
    it, because a lock is installed on top of those.
    """
    major, minor = sys.version_info[:2]
    lines = [f"Python {major}.{minor} in {ROOT}"]
    project, _, _ = (ROOT / "pyproject.toml").read_bytes().partition(b"\n[tool.")
    digest = hashlib.sha256(project)
    for lock in locks:
        digest.update((ROOT / lock).read_bytes())
        lines.append(f"{lock} {digest.hexdigest()}")
    return lines
