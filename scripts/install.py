"""Makes `.venv` and installs the locks into it: with uv when it can be had, else with pip."""

from __future__ import annotations

import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from set_up import PYTHON, ROOT, STAMP, VENV, SetUpFailed, expected_stamp, is_current, read_stamp

LOG = VENV / "set-up.log"
# A tool ignores the variables that its version does not know. uv trusts only the certificates it brings along unless
# told otherwise, which fails behind a company's proxy; pip cannot install "for the user" inside an environment.
TOOL_SETTINGS = {"UV_SYSTEM_CERTS": "1", "UV_NATIVE_TLS": "1", "PIP_USER": "0", "PIP_NO_INPUT": "1"}


class _CommandFailed(Exception):
    """A tool ended with an error; the text is the line in which it says why."""


def bring_up_to_date(locks: Sequence[str]) -> None:
    """Install what the last finished set-up lacks of `locks`. Raises SetUpFailed, OSError."""
    with _only_one():
        if is_current(locks):
            return
        started = time.monotonic()
        wanted, found = expected_stamp(locks), read_stamp()
        # Without its stamp an environment is unfinished, whatever happens from here on: the next start begins again.
        STAMP.unlink(missing_ok=True)
        if found[:1] != wanted[:1] or not PYTHON.exists():
            found = []
            _create()
        _install([lock for lock, line in zip(locks, wanted[1:], strict=True) if line not in found])
        STAMP.write_text("\n".join(wanted) + "\n", encoding="utf-8")
        _say(f"ready in {time.monotonic() - started:.0f} s")


@contextmanager
def _only_one() -> Iterator[None]:
    """Serialise the set-ups of this checkout."""
    with (ROOT / "requirements.lock").open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say("waiting for another set-up of this folder to finish")
            fcntl.flock(file, fcntl.LOCK_EX)
        # The tools inherit the lock: one that outlives a killed set-up still keeps the next one out.
        os.set_inheritable(file.fileno(), True)
        yield


def _create() -> None:
    _say(f"setting up {VENV} for Python {sys.version.split()[0]}: once, usually in less than a minute")
    if importlib.util.find_spec("venv") is None:
        raise SetUpFailed(_hint("this Python has no module venv"))
    import venv

    # Without pip: making it costs seconds, Debian leaves it out, and who has uv does not need it.
    venv.EnvBuilder(clear=True, symlinks=True, with_pip=False).create(VENV)


def _hint(what: str) -> str:
    return f"{what}; on Debian or Ubuntu: sudo apt install python{sys.version_info[0]}.{sys.version_info[1]}-venv"


def _install(locks: Sequence[str]) -> None:
    try:
        try:
            _install_with("uv", [_uv(), "pip", "install", "--python", str(PYTHON), "--compile-bytecode"], locks)
        except _CommandFailed as failure:
            _say(f"uv cannot be used ({failure}); trying pip")
            _install_with("pip", _pip(), locks)
    except _CommandFailed as failure:
        advice = "is there a network, or a package mirror in pip's configuration?"
        raise SetUpFailed(f"{failure} - {advice} More in {LOG}; the same command tries again") from None


def _install_with(tool: str, command: Sequence[str], locks: Sequence[str]) -> None:
    alone = [*command, "--no-deps"]  # a lock is complete: what is not in it was left out on purpose
    for lock in locks:
        count = sum(line[:1].isalnum() for line in (ROOT / lock).read_text(encoding="utf-8").splitlines())
        # Only wheels: what has to be built runs its own code, and wants compilers.
        wheels = [*alone, "--only-binary", ":all:", "--require-hashes", "-r", lock]
        _run(f"installing about {count} packages with {tool}", wheels)
    _run("installing LoCAL2 itself", [*alone, "--no-build-isolation", "-e", "."])


def _uv() -> str:
    own = PYTHON.with_name("uv")
    found = str(own) if own.exists() else shutil.which("uv")
    if not found:
        command = [*_pip(), "--retries", "1", "--only-binary", ":all:", "--require-hashes"]
        _run("getting uv, the installer", [*command, "-r", "requirements-uv.lock"])
    return found or str(own)


def _pip() -> list[str]:
    isolated = [str(PYTHON), "-I", "-m"]
    if not PYTHON.with_name("pip").exists():
        try:
            _run("getting pip", [*isolated, "ensurepip", "--default-pip"])
        except _CommandFailed as failure:
            raise SetUpFailed(_hint(f"this Python cannot make pip ({failure})")) from None
    return [*isolated, "pip", "install", "--disable-pip-version-check"]


def _run(phase: str, command: Sequence[str]) -> None:
    _say(phase)
    with LOG.open("a+", encoding="utf-8", errors="replace") as log:
        before = log.tell()
        with subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **TOOL_SETTINGS},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            close_fds=False,
        ) as process:
            _watch(process, phase)
        if process.returncode:
            log.seek(before)
            raise _CommandFailed(_reason(log.read()) or f"{command[0]} ended with status {process.returncode}")


def _watch(process: subprocess.Popen[bytes], phase: str) -> None:
    """Wait for the end of `process`; on a terminal, with a live count of packages and seconds."""
    started = time.monotonic()
    while sys.stderr.isatty():
        try:
            process.wait(timeout=0.2)
            print("\r\033[K", end="", file=sys.stderr, flush=True)
            return
        except subprocess.TimeoutExpired:
            count = sum(1 for _ in VENV.glob("lib/python*/site-packages/*.dist-info"))
            line = f"  {phase}: {count} there, {time.monotonic() - started:.0f} s"
            print(f"\r\033[K{line}", end="", file=sys.stderr, flush=True)
    process.wait()


def _reason(output: str) -> str:
    """The line of a tool's output that says what went wrong; empty if it said nothing."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")]
    return (errors or lines or [""])[0 if errors else -1]


def _say(line: str) -> None:
    print(f"LoCAL2: {line}", file=sys.stderr, flush=True)
