"""The Python environment that LoCAL2 runs in. In a checkout that is `.venv`, which contains the packages of the locks.
An installed package runs in the environment into which its user has installed it, and changes nothing there unasked.

Standard library only, and little of it: this runs at every start, and nearly always finds nothing to do.
"""

from __future__ import annotations

import errno
import hashlib
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from local.core.errors import SetUpFailed
from local.core.shipped import shipped_dir

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
RUN = ("requirements.lock",)
TEST = ("requirements.lock", "requirements-dev.lock")
NOT_ALLOWED = (errno.EACCES, errno.EPERM, errno.EROFS)
STATUS_FAILED = 2
MARK = "Made by the set-up of LoCAL2, which may empty this folder and make it again.\n"
STATUS_OF_SIGNALS = 128  # and the signal's number


class PythonEnvironment:
    """The Python environment of the installation which this module is in. `root` contains the locks, and is the
    checkout or the copy of it in a wheel; `folder` is the environment's folder. A checkout's is made by the set-up.
    """

    def __init__(self) -> None:
        self.root = shipped_dir()
        packages = Path(__file__).resolve().parents[2]
        self.is_checkout = not self.root.is_relative_to(packages)
        self.folder = self.root / ".venv" if self.is_checkout else Path(sys.prefix)

    @property
    def python(self) -> Path:
        """The environment's interpreter."""
        return self.folder / "bin" / "python"

    @property
    def stamp(self) -> Path:
        """The file that records the locks of the environment; it exists when the set-up has finished."""
        return self.folder / "set-up.stamp"

    @property
    def marker(self) -> Path:
        """The file by which a set-up knows an environment that it may empty: the first file in it."""
        return self.folder / "local2-set-up"

    @property
    def is_ours(self) -> bool:
        """Whether a set-up made the folder, or it is empty. Older set-ups left no marker, only the stamp and
        the log."""
        known = (self.marker, self.stamp, self.folder / "set-up.log")
        return any(file.is_file() for file in known) or (self.folder.is_dir() and not any(self.folder.iterdir()))

    def make_marker(self) -> None:
        """Write the marker if there is none."""
        if not self.marker.exists():
            self.marker.write_text(MARK, encoding="utf-8")

    def further_locks(self) -> list[str]:
        """The locks that were added to this environment, which the marker lists."""
        try:
            lines = self.marker.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return []
        return [line for line in lines if line.endswith(".lock") and (self.root / line).is_file()]

    def add_further_lock(self, lock: str) -> None:
        """Have a lock installed whenever the environment is made again."""
        self.make_marker()
        if lock not in self.further_locks():
            with self.marker.open("a", encoding="utf-8") as file:
                file.write(f"{lock}\n")

    @property
    def is_entered(self) -> bool:
        """Whether this process runs in it."""
        return self.folder.exists() and self.folder.samefile(sys.prefix)

    def enter(self, locks: Sequence[str]) -> None:
        """Return if this process runs in it and it is up to date; else make it so and start the script again inside.

        Ends the process with one line and status 2 where that cannot be done.
        """
        try:
            if self.is_current(locks):
                if self.is_entered:
                    arrive()
                    return
            else:
                from local.core.installer import Installer

                for number in SIGNALS:
                    _stop_at(number)
                Installer(self).bring_up_to_date(locks)
            sys.stderr.flush()
            signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # until this script is in the other Python
            os.execv(self.python, [str(self.python), *sys.argv])
        except (SetUpFailed, OSError) as error:
            reason = self.with_advice(error) if isinstance(error, OSError) else str(error)
            print(f"LoCAL2 could not be set up: {reason}", file=sys.stderr)  # noqa: T201
            sys.exit(STATUS_FAILED)
        except KeyboardInterrupt as stop:
            print("\nset-up stopped; the next start repeats it", file=sys.stderr)  # noqa: T201
            sys.exit(STATUS_OF_SIGNALS + (stop.args or (signal.SIGINT,))[0])

    def with_advice(self, error: OSError) -> str:
        """Return why a set-up could not write, and a remedy."""
        if error.errno not in NOT_ALLOWED:
            return str(error)
        advice = "use a copy of your own" if self.is_checkout else "install it in a venv of your own"
        owner = self.root.stat().st_uid
        if self.is_checkout and error.errno != errno.EROFS and owner != os.geteuid():
            advice = f"{_user(owner)} has to start LoCAL2 once, which sets it up for all users; or {advice}"
        return f"{error.filename}: {error.strerror}; {advice}"

    def is_current(self, locks: Sequence[str]) -> bool:
        """Whether the last finished set-up matches the current locks."""
        wanted = self.expected_stamp(locks)
        return self.read_stamp()[: len(wanted)] == wanted and self.python.exists()

    def read_stamp(self) -> list[str]:
        """Return the stamp of the last finished set-up; empty if there is none."""
        try:
            return self.stamp.read_text(encoding="utf-8").splitlines()
        except (FileNotFoundError, NotADirectoryError):  # a file of that name is refused by the installer
            return []

    def expected_stamp(self, locks: Sequence[str]) -> list[str]:
        """Return one line for what the whole environment depends on, then one with a digest for each lock in order.

        An environment cannot be moved, so its folder counts as much as its Python. Each digest includes the locks
        before it, because a lock is installed on top of those.
        """
        major, minor = sys.version_info[:2]
        lines = [f"Python {major}.{minor} in {self.root}"]
        digest = hashlib.sha256()
        project, _, _ = (self.root / "pyproject.toml").read_bytes().partition(b"\n[tool.")
        digest.update(project)
        for lock in locks:
            digest.update((self.root / lock).read_bytes())
            lines.append(f"{lock} {digest.hexdigest()}")
        return lines


def _user(number: int) -> str:
    import pwd

    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


def _stop_at(number: signal.Signals) -> None:
    """End the set-up in order on a signal, unless the signal is ignored, as by nohup."""

    def stop(number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt(number)

    if number == signal.SIGINT or signal.getsignal(number) != signal.SIG_IGN:
        signal.signal(number, stop)


def arrive() -> None:
    """Hear signals again, which were kept back on the way into the environment."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
