"""Checks of this machine: Python, packages, data directory, disk, damaged stores, run directory, port of the API."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from local.apps.doctor.doctor_finding import DoctorFinding, fail, ok, warn
from local.apps.listener import listen
from local.apps.run_directory import Facts, RunDirectory
from local.config import SystemConfig
from local.errors import ConfigError, LocalError
from local.secrets.secret_store import SecretStore

# What each process or the set-up imports, by import name.
PACKAGES = (
    "anyio", "charset_normalizer", "chromadb", "cronsim", "fastapi", "h11", "httpx", "httpx2", "idna", "jsonschema",
    "lxml", "lxml_html_clean", "markdown_it", "mcp", "nacl", "numpy", "ollama", "pathspec", "platformdirs",
    "prompt_toolkit", "psutil", "pydantic", "pydantic_core", "pypdf", "rich", "ruamel.yaml", "setproctitle",
    "starlette", "threadpoolctl", "tokenizers", "trafilatura", "tree_sitter", "tree_sitter_c", "tree_sitter_go",
    "tree_sitter_java", "tree_sitter_javascript", "tree_sitter_python", "tree_sitter_rust", "tree_sitter_typescript",
    "typer", "tzdata", "uvicorn", "yaml", "zmq",
)  # fmt: skip
OLDEST_PYTHON = (3, 11)
WARN_FREE_BYTES = 2 * 1024**3
FAIL_FREE_BYTES = 200 * 1024**2
SOCKET_PATH_BYTES = 107  # sun_path of unix(7), without its final NUL
REINSTALL = f"remove the folder {sys.prefix} and start again, which installs everything"
DELETE = "look into it and then delete it: nothing reads it any more, and what you delete elsewhere stays in it"


def check_python(version: tuple[int, ...] = tuple(sys.version_info[:3])) -> DoctorFinding:
    """Python 3.11 or newer."""
    text = f"Python {'.'.join(map(str, version))} in {sys.prefix}"
    if version[:2] < OLDEST_PYTHON:
        return fail("python", text, "install Python 3.11 or newer and start again with it")
    return ok("python", text)


def check_packages(names: Sequence[str] = PACKAGES) -> DoctorFinding:
    """Every package we need can be imported, not merely found."""
    broken = [f"{name} ({reason})" for name in names if (reason := _import_failure(name))]
    if broken:
        return fail("packages", f"cannot be imported: {', '.join(broken)}", REINSTALL)
    return ok("packages", f"all {len(names)} can be imported")


def check_secrets(data_dir: Path, named: Mapping[str, str]) -> list[DoctorFinding]:
    """Each secret that the settings name is there and can be opened; `named` has its name by where that is."""
    name, store = "secrets", SecretStore(data_dir)
    findings = []
    for where, secret in named.items():
        try:
            store.get(secret)
        except ConfigError as error:
            findings.append(fail(name, f"{where}: {error}", f"local2 secret set {secret}"))
    return findings or [ok(name, f"{len(store.all())} kept in {store.folder}; all {len(named)} that settings name")]


def _import_failure(name: str) -> str:
    try:
        importlib.import_module(name)
    except Exception as error:  # noqa: BLE001 - a damaged package can fail with anything
        return str(error) or type(error).__name__
    return ""


def check_data_dir(data_dir: Path) -> DoctorFinding:
    """The data directory can be written to, or can be made."""
    place = _nearest(data_dir)
    fix = "make it writable for this user, or choose another with --data-dir or LOCAL2_DATA_DIR"
    if not place.is_dir():
        return fail("data directory", f"{place} is no directory", fix)
    if place != data_dir:
        if os.access(place, os.W_OK | os.X_OK):
            return ok("data directory", f"{data_dir} will be made at the first start")
        return fail("data directory", f"{data_dir} cannot be made inside {place}", fix)
    try:
        tempfile.TemporaryFile(dir=data_dir).close()
    except OSError as error:
        return fail("data directory", f"{data_dir} cannot be written to: {error.strerror}", fix)
    return ok("data directory", str(data_dir))


def check_disk(data_dir: Path, free: int | None = None) -> DoctorFinding:
    """Free space where the data is kept; `free` in bytes is measured if not given."""
    free = shutil.disk_usage(_nearest(data_dir)).free if free is None else free
    text = f"{free / 1024**3:.1f} GB free at {data_dir}"
    fix = "make room, or keep the data elsewhere with --data-dir"
    if free < FAIL_FREE_BYTES:
        return fail("disk", text, fix)
    return warn("disk", text, fix) if free < WARN_FREE_BYTES else ok("disk", text)


def check_run_directory(data_dir: Path) -> DoctorFinding:
    """The bus's sockets have a private place with a path that is short enough."""
    name = "run directory"
    try:
        path = RunDirectory(data_dir).path
    except LocalError as error:
        return fail(name, str(error), "do so; the next start makes a new one")
    size = len(os.fsencode(path / "pub"))
    if size > SOCKET_PATH_BYTES:
        text = f"{path}: a socket in it has a path of {size} bytes, at most {SOCKET_PATH_BYTES} are possible"
        return fail(name, text, "set TMPDIR to a folder with a shorter path")
    return ok(name, str(path))


def check_damage(data_dir: Path) -> DoctorFinding | list[DoctorFinding]:
    """One warning for each folder into which a start has moved a damaged store."""
    folders = sorted(data_dir.glob("*.damaged-*"))
    if not folders:
        return ok("damage", "no store was ever found damaged")
    return [warn("damage", f"{folder}: {_what_happened(folder)}", DELETE) for folder in folders]


def _what_happened(folder: Path) -> str:
    """What the report beside the damaged file says, if there is one that can be read."""
    try:
        report = json.loads((folder / "report.json").read_text())
        ranges = [f"{first} to {last}" for first, last in report["in_doubt"]]
        return f"{report['reason']}; {'in doubt: ' + ', '.join(ranges) if ranges else 'no message was lost'}"
    except (OSError, ValueError, TypeError, LookupError):
        return "a damaged store, without a report that could be read"


def check_port(system: SystemConfig, running: Facts | None) -> DoctorFinding:
    """The port of the API is free, or our own system listens on it."""
    port = system.api_port
    if running is not None and running.api_url and urlsplit(running.api_url).port == port:
        return ok("api port", f"{port} is used by our own system (process {running.pid})")
    try:
        listen(system.api_host, port).close()
    except ConfigError as error:
        return fail("api port", str(error), "stop the other program, or set api_port in system.yaml")
    return ok("api port", f"{port} is free" if port else "any free port is taken")


def _nearest(path: Path) -> Path:
    """The path, or the nearest of its parents that exists."""
    return next(place for place in (path, *path.parents) if place.exists())
