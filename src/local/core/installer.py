"""Makes the environment of a checkout and installs the locks into it; for an installed package, fetches what a lock
names. With uv if available, else with pip."""

from __future__ import annotations

import fcntl
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from local.core.environment import environment_with
from local.core.errors import SetUpFailed
from local.core.setup import SIGNALS, PythonEnvironment, arrive

# A tool ignores variables that its version does not know. uv trusts only its own certificates by default, which fails
# behind a company's proxy; pip cannot install "for the user" inside an environment.
TOOL_SETTINGS = {"UV_SYSTEM_CERTS": "1", "UV_NATIVE_TLS": "1", "PIP_USER": "0", "PIP_NO_INPUT": "1"}
ENDS_WITHIN = 2.0  # seconds until a tool that was asked to end is killed


class _CommandFailed(Exception):
    """A command that ended with an error; the text is the line that names the reason."""


class Installer:
    """The installer of one environment: installs the packages listed in the locks."""

    def __init__(self, environment: PythonEnvironment) -> None:
        self._environment = environment
        self._log = environment.folder / "set-up.log"

    def bring_up_to_date(self, locks: Sequence[str]) -> None:
        """Install the packages of `locks` that the last finished set-up lacks. Raises `SetUpFailed`, `OSError`."""
        environment = self._environment
        with self._only_one():
            if environment.is_current(locks):
                return
            started = time.monotonic()
            self._refuse_what_is_not_ours()
            wanted, found = environment.expected_stamp(locks), environment.read_stamp()
            # Without its stamp an environment is unfinished: whatever happens from here on, the next start begins
            # again.
            environment.stamp.unlink(missing_ok=True)
            if found[:1] != wanted[:1] or not environment.python.exists():
                found = []
                self._create()
            self._install([lock for lock, line in zip(locks, wanted[1:], strict=True) if line not in found])
            if further := environment.further_locks():
                self._install(further, with_local2=False)
            environment.stamp.write_text("\n".join(wanted) + "\n", encoding="utf-8")
            _print(f"ready in {time.monotonic() - started:.0f} s")

    def add(self, lock: str) -> None:
        """Install a further lock into the environment, now and whenever set-up makes it again. Raises SetUpFailed,
        OSError."""
        with self._only_one():
            self._install([lock], with_local2=False)
            if self._environment.is_checkout:
                self._environment.add_further_lock(lock)

    def fetch(self, lock: str, folder: Path) -> None:
        """Install the packages of a lock into a separate folder. Raises SetUpFailed, OSError."""
        with self._only_one():
            self._install([lock], "--target", str(folder), with_local2=False)

    @contextmanager
    def _only_one(self) -> Iterator[None]:
        """Serialise the set-ups of this environment."""
        with min(self._environment.root.glob("requirements*.lock")).open("rb") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                _print("waiting for another set-up of this folder to finish")
                fcntl.flock(file, fcntl.LOCK_EX)
            # The tools inherit the lock: one that outlives a killed set-up still keeps the next one out.
            os.set_inheritable(file.fileno(), True)
            yield

    def _create(self) -> None:
        version = sys.version.split()[0]
        _print(f"setting up {self._environment.folder} for Python {version}: once, usually in less than a minute")
        if importlib.util.find_spec("venv") is None:
            raise SetUpFailed(_hint("this Python has no module venv"))
        import venv

        self._empty()
        # Without pip: making it costs seconds, Debian leaves it out, and uv does not need it.
        venv.EnvBuilder(symlinks=True, with_pip=False).create(self._environment.folder)

    def _empty(self) -> None:
        """Make the folder, or remove everything in it but the marker, which stays whenever this is interrupted."""
        self._environment.folder.mkdir(exist_ok=True)
        self._environment.make_marker()
        for path in self._environment.folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif path != self._environment.marker:
                path.unlink()

    def _refuse_what_is_not_ours(self) -> None:
        """Raise SetUpFailed if the folder is a link, or holds anything and was not made by a set-up."""
        folder = self._environment.folder
        if folder.is_symlink():
            found = f"is a link to {folder.readlink()}, and set-up changes nothing behind a link"
        elif not folder.exists() or self._environment.is_ours:
            return
        elif not folder.is_dir():
            found = "is not a folder"
        else:
            kind = "Python environment" if (folder / "pyvenv.cfg").exists() else "folder"
            found = f"is a {kind} that LoCAL2 did not make, and set-up would empty it"
        again = "python3 scripts/run_local.py" if self._environment.is_checkout else "the same command"
        advice = f"then run `{again}` outside of any environment (`deactivate` leaves one)"
        raise SetUpFailed(f"{folder} {found}; move it elsewhere or delete it, {advice}")

    def _install(self, locks: Sequence[str], *options: str, with_local2: bool = True) -> None:
        python = str(self._environment.python)
        try:
            try:
                command = [self._uv(), "pip", "install", "--python", python, "--compile-bytecode"]
                self._install_with("uv", [*command, *options], locks, with_local2=with_local2)
            except _CommandFailed as failure:
                _print(f"uv cannot be used ({failure}); trying pip")
                self._install_with("pip", [*self._pip(), *options], locks, with_local2=with_local2)
        except _CommandFailed as failure:
            advice = "is there a network, or a package mirror in pip's configuration?"
            more = f" More in {self._log}; the same command tries again" if self._environment.is_checkout else ""
            raise SetUpFailed(f"{failure} - {advice}{more}") from None

    def _install_with(self, tool: str, command: Sequence[str], locks: Sequence[str], *, with_local2: bool) -> None:
        alone = [*command, "--no-deps"]  # a lock is complete: other packages are left out on purpose
        for lock in locks:
            lines = (self._environment.root / lock).read_text(encoding="utf-8").splitlines()
            count = sum(line[:1].isalnum() for line in lines)
            # Only wheels: building a package runs its code, and needs compilers.
            wheels = [*alone, "--only-binary", ":all:", "--require-hashes", "-r", lock]
            what = f"about {count} packages" if count > 1 else lines[0].partition(" ")[0].replace("==", " ")
            self._run(f"installing {what} with {tool}", wheels)
        if not with_local2:
            return
        self._run("installing LoCAL2 itself", [*alone, "--no-build-isolation", "-e", "."])
        self._name_paths_in_ascii()

    def _name_paths_in_ascii(self) -> None:
        """Name a folder that is to be found, too, by the way to it, where its path is not ASCII: Python reads that in
        the locale's encoding, and does not start where it cannot, as with LC_ALL=C."""
        folder = self._site_packages().resolve()
        for file in folder.glob("*.pth"):
            text = file.read_text(encoding="utf-8", errors="surrogateescape")
            if not text.isascii() and text.startswith("/"):
                file.write_text(os.path.relpath(text.strip(), folder), encoding="utf-8", errors="surrogateescape")

    def _site_packages(self) -> Path:
        (folder,) = self._environment.folder.glob("lib/python*/site-packages")
        return folder

    def _uv(self) -> str:
        own = self._environment.python.with_name("uv")
        found = str(own) if own.exists() else shutil.which("uv")
        if not found and not self._environment.is_checkout:
            raise _CommandFailed("it is not installed")
        if not found:
            command = [*self._pip(), "--retries", "1", "--only-binary", ":all:", "--require-hashes"]
            self._run("getting uv, the installer", [*command, "-r", "requirements-uv.lock"])
        return found or str(own)

    def _pip(self) -> list[str]:
        isolated = [str(self._environment.python), "-I", "-m"]
        if not self._environment.is_checkout:
            if importlib.util.find_spec("pip") is None:
                raise SetUpFailed("neither uv nor pip is installed; install one of them")
        elif not self._environment.python.with_name("pip").exists():
            try:
                self._run("getting pip", [*isolated, "ensurepip", "--default-pip"])
            except _CommandFailed as failure:
                raise SetUpFailed(_hint(f"this Python cannot make pip ({failure})")) from None
        return [*isolated, "pip", "install", "--disable-pip-version-check"]

    def _run(self, phase: str, command: Sequence[str]) -> None:
        _print(phase)
        with self._opened_log() as log:
            before = log.tell()
            signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)  # until the child processes to end are known, too
            with subprocess.Popen(
                command,
                cwd=self._environment.root,
                env=environment_with(TOOL_SETTINGS),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                close_fds=False,
                preexec_fn=arrive,
            ) as process:
                try:
                    arrive()
                    self._watch(process, phase)
                except BaseException:
                    _end(process)
                    raise
            if process.returncode:
                log.seek(before)
                raise _CommandFailed(_reason(log.read()) or f"{command[0]} ended with status {process.returncode}")

    def _opened_log(self) -> IO[str]:
        if self._environment.is_checkout:
            return self._log.open("a+", encoding="utf-8", errors="replace")
        return tempfile.TemporaryFile("a+", encoding="utf-8", errors="replace")  # the user's environment stays as it is

    def _watch(self, process: subprocess.Popen[bytes], phase: str) -> None:
        """Wait for the end of `process`; on a terminal, with a live count of packages and seconds."""
        started = time.monotonic()
        while sys.stderr.isatty():
            try:
                process.wait(timeout=0.2)
                print("\r\033[K", end="", file=sys.stderr, flush=True)  # noqa: T201
                return
            except subprocess.TimeoutExpired:
                count = sum(1 for _ in self._environment.folder.glob("lib/python*/site-packages/*.dist-info"))
                line = f"  {phase}: {count} there, {time.monotonic() - started:.0f} s"
                print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)  # noqa: T201
        process.wait()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        with suppress(subprocess.TimeoutExpired):
            process.wait(ENDS_WITHIN)
    finally:
        process.kill()
        process.wait()


def _hint(what: str) -> str:
    return f"{what}; on Debian or Ubuntu: sudo apt install python{sys.version_info[0]}.{sys.version_info[1]}-venv"


def _reason(output: str) -> str:
    """Return the line of a tool's output that names the error; empty if there is no output."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")]
    return (errors or lines or [""])[0 if errors else -1]


def _print(line: str) -> None:
    print(f"LoCAL2: {line}", file=sys.stderr, flush=True)  # noqa: T201
