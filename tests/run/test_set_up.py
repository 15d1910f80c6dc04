"""The set-up of the scripts, in copies of a tiny checkout: real environments, a stand-in for uv, no network."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import signal
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

import local

ROOT = Path(__file__).parents[2]
SECONDS = 150  # until an installation has failed
Stranger = Callable[[Path], list[str]]
pytestmark = [pytest.mark.system, pytest.mark.timeout(180)]

# Notes what it was asked to do, and installs by pointing the environment at the checkout's src.
FAKE_UV = """#!{python} -S
import os, pathlib, signal, sys
here = pathlib.Path(sys.argv[0]).parent
with open(here / "calls", "a") as calls:
    calls.write(" ".join(sys.argv[1:]) + "\\n")
what = os.environ.get("FAKE_UV")
if what == "fails":
    sys.exit("error: fake failure")
if what == "dies":
    os.kill(os.getppid(), signal.SIGKILL)
    sys.exit(1)
if "FAKE_UV_HEARS" in os.environ:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if what == "waits" and "-r" in sys.argv:
    open(here / "gate").read()
if "-e" in sys.argv:
    environment = pathlib.Path(sys.argv[sys.argv.index("--python") + 1]).parent.parent
    for site in environment.glob("lib/python*/site-packages"):
        (site / "checkout.pth").write_text(os.path.join(os.getcwd(), "src"))
"""
FAKE_CLI = """
import sys
def main(argv):
    print("cli", *argv, "in", sys.prefix)
    sys.exit(7)
"""
FAKE_PYTEST = """
import getpass, os, sys, tempfile
def main(args):
    print("pytest", *args)
    folder = os.path.join(tempfile.gettempdir(), "pytest-of-" + getpass.getuser())
    with open("test_files", "w") as said:
        said.write(f"{folder} {os.path.ismount(folder)}")
    return 4 if sys.dont_write_bytecode or "PYTHONDONTWRITEBYTECODE" in os.environ else 5
"""
# What pip builds with where uv does not work: an editable wheel made by hand.
BUILD_BACKEND = """
import os, zipfile
def build_editable(folder, config_settings=None, metadata_directory=None):
    info = "local2-0.dist-info/"
    with zipfile.ZipFile(os.path.join(folder, "local2-0-py3-none-any.whl"), "w") as wheel:
        wheel.writestr("checkout.pth", os.path.join(os.getcwd(), "src"))
        wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: local2\\nVersion: 0\\n")
        wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(info + "RECORD", "")
    return "local2-0-py3-none-any.whl"
"""


@dataclass
class Checkout:
    """A checkout with the real scripts and nothing to install, and a machine with a fake uv."""

    root: Path
    tools: Path
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def environment(self) -> dict[str, str]:
        """Nothing of the machine that runs the tests, and no package index."""
        return {"PATH": str(self.tools), "HOME": str(self.tools), "PIP_NO_INDEX": "1", **self.variables}

    def command(self, script: str = "run_local.py") -> list[str]:
        return [sys.executable, str(self.root / "scripts" / script), "--flag"]

    def run(
        self, script: str = "run_local.py", prefix: Sequence[str] = (), **variables: str
    ) -> subprocess.CompletedProcess[str]:
        environment = {**self.environment, **variables}
        words = [*prefix, *self.command(script)]
        return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=SECONDS)

    @contextmanager
    def start(self, **variables: str) -> Iterator[subprocess.Popen[str]]:
        """The first script in the background; it and its uv are killed at the end if they still run."""
        environment = {**self.environment, **variables}
        pipes: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen(self.command(), env=environment, start_new_session=True, **pipes) as process:
            try:
                yield process
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)

    def calls(self) -> list[str]:
        """What uv was asked to install, in order, since the last look."""
        notes = self.tools / "calls"
        lines = notes.read_text().splitlines() if notes.exists() else []
        notes.unlink(missing_ok=True)
        return [line.split()[-1] for line in lines]


# What of the source runs before there is an environment: the standard library alone.
OF_SET_UP = (
    "core/__init__.py", "core/setup.py", "core/installer.py", "core/capability.py", "core/errors.py",
    "core/environment.py", "core/shipped.py",
)  # fmt: skip


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    root, tools = tmp_path / "checkout", tmp_path / "tools"
    shutil.copytree(ROOT / "scripts", root / "scripts", ignore=shutil.ignore_patterns("__pycache__", "benchmarks"))
    files = {
        "src/local/__init__.py": "",
        **{f"src/local/{name}": (Path(local.__file__).parent / name).read_text() for name in OF_SET_UP},
        "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
        "backend.py": BUILD_BACKEND,
        "requirements.lock": "# nothing\n",
        "requirements-dev.lock": "# nothing\n",
        "requirements-uv.lock": "uv==1 --hash=sha256:" + "0" * 64 + "\n",
        "src/local/cli/entry.py": FAKE_CLI,
        "src/pytest.py": FAKE_PYTEST,
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    tools.mkdir()
    (tools / "uv").write_text(FAKE_UV.format(python=sys.executable))
    (tools / "uv").chmod(0o755)
    return Checkout(root, tools)


@pytest.fixture
def ready(checkout: Checkout) -> Checkout:
    """A checkout whose first start is over."""
    assert checkout.run().returncode == 7
    checkout.calls()
    (checkout.root / ".venv" / "mine").touch()
    return checkout


def test_the_first_start_makes_the_environment_and_runs_the_command_in_it(checkout: Checkout) -> None:
    done = checkout.run()
    assert done.stdout == f"cli run --flag in {checkout.root / '.venv'}\n"
    assert done.returncode == 7
    assert checkout.calls() == ["requirements.lock", "."]
    assert [line.split(":")[0] for line in done.stderr.splitlines()] == ["LoCAL2"] * 4


def test_the_locks_hold_what_the_project_needs_and_nothing_of_what_it_leaves_out() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    names = {"run": _locked("requirements.lock"), "dev": _locked("requirements-dev.lock")}
    needed = [*project["project"]["dependencies"], *project["dependency-groups"]["setup"]]
    assert {_name(line) for line in needed} <= names["run"]
    assert {_name(line) for line in project["dependency-groups"]["dev"]} <= names["dev"]
    assert (ROOT / "requirements-weights.lock").read_text() in (ROOT / "requirements.lock").read_text()
    assert not (names["run"] | names["dev"]) & set(project["tool"]["uv"]["exclude-dependencies"])


def _locked(lock: str) -> set[str]:
    return {_name(line) for line in (ROOT / lock).read_text().splitlines() if line[:1].isalnum()}


def _name(requirement: str) -> str:
    return re.sub(r"[_.]", "-", re.split(r"[<>=!~ \[]", requirement)[0].lower())


def test_later_starts_install_nothing_and_the_tests_add_their_tools_once(ready: Checkout) -> None:
    done = ready.run()
    assert (done.returncode, done.stderr, ready.calls()) == (7, "", [])
    done = ready.run("run_tests.py")
    said = re.fullmatch(r"pytest -n (\d+) --dist worksteal --flag\n", done.stdout)
    assert done.returncode == 5 and said
    assert int(said[1]) >= (os.cpu_count() or 1)
    assert ready.calls() == ["requirements-dev.lock", "."]
    assert ready.run("run_tests.py").stderr == ready.run().stderr == ""


def test_a_changed_lock_is_installed_and_an_interrupted_installation_is_begun_again(ready: Checkout) -> None:
    (ready.root / "requirements.lock").write_text("# something else\n")
    assert ready.run().returncode == 7
    assert ready.calls() == ["requirements.lock", "."]
    assert (ready.root / ".venv" / "mine").exists()
    (ready.root / "requirements.lock").write_text("# and another\n")
    assert ready.run(FAKE_UV="dies").returncode == -signal.SIGKILL
    assert ready.run().returncode == 7
    assert not (ready.root / ".venv" / "mine").exists()


def test_an_environment_that_was_moved_or_is_unfinished_is_made_again(ready: Checkout) -> None:
    moved = Checkout(ready.root.rename(ready.root.with_name("elsewhere")), ready.tools)
    folder = moved.root / ".venv"
    assert moved.run().stdout == f"cli run --flag in {folder}\n"
    assert not (folder / "mine").exists()
    for left in ("set-up.log", "local2-set-up"):  # what an earlier version, or one that was killed, has left
        (folder / "mine").touch()
        for name in {"set-up.log", "set-up.stamp", "local2-set-up"} - {left}:
            (folder / name).unlink()
        (folder / left).write_text("")
        assert moved.run().returncode == 7
        assert not (folder / "mine").exists()


def test_a_folder_that_set_up_did_not_make_is_refused_and_untouched(checkout: Checkout) -> None:
    folder = checkout.root / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=SECONDS)
    (folder / "mine").write_text("work of a week")
    done = checkout.run()
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert f"{folder} is a Python environment that LoCAL2 did not make" in done.stderr
    assert (folder / "mine").read_text() == "work of a week"
    assert checkout.calls() == []


def test_a_file_of_that_name_is_refused(checkout: Checkout) -> None:
    file = checkout.root / ".venv"
    file.write_text("mine")
    done = checkout.run()
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert f"{file} is not a folder" in done.stderr and "run_local.py" in done.stderr
    assert (file.read_text(), checkout.calls()) == ("mine", [])


def test_a_link_is_refused_and_what_it_leads_to_untouched(ready: Checkout) -> None:
    elsewhere = ready.root.with_name("elsewhere")
    (ready.root / ".venv").rename(elsewhere)
    (ready.root / ".venv").symlink_to(elsewhere)
    (ready.root / "requirements.lock").write_text("# something else\n")
    done = ready.run()
    assert (done.returncode, done.stderr.count("\n")) == (2, 1), done.stderr
    assert f"is a link to {elsewhere}" in done.stderr
    assert (elsewhere / "mine").exists() and (elsewhere / "set-up.stamp").exists()


@pytest.fixture
def gate(checkout: Checkout) -> Iterator[Path]:
    """A pipe at which a waiting uv waits until somebody has opened it for writing and closed it."""
    path = checkout.tools / "gate"
    os.mkfifo(path)
    yield path
    path.unlink()


def test_of_two_set_ups_at_once_one_waits_and_then_installs_nothing(checkout: Checkout, gate: Path) -> None:
    with checkout.start(FAKE_UV="waits") as first:
        assert first.stderr is not None
        while "installing" not in first.stderr.readline():
            assert first.poll() is None
        with checkout.start() as second:
            assert second.stderr is not None
            assert "waiting for another set-up" in second.stderr.readline()
            gate.write_text("")
            assert (first.wait(90), second.wait(90)) == (7, 7)
    assert checkout.calls() == ["requirements.lock", "."]


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_set_up_that_is_stopped_by_itself_ends_its_uv_first(
    checkout: Checkout, gate: Path, stop: signal.Signals
) -> None:
    with checkout.start(FAKE_UV="waits") as process, gate.open("w"):  # which is open once uv waits there
        process.send_signal(stop)
        assert process.wait(90) == 128 + stop
        _expect_nobody_installs(checkout)
        assert process.stderr is not None and "Traceback" not in process.stderr.read()


def _expect_nobody_installs(checkout: Checkout) -> None:
    """The lock of a set-up is its tools', too."""
    with (checkout.root / "requirements.lock").open("rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@pytest.mark.thorough
def test_where_uv_fails_pip_takes_over(checkout: Checkout) -> None:
    done = checkout.run(FAKE_UV="fails")
    assert "uv cannot be used (error: fake failure); trying pip" in done.stderr
    assert done.returncode == 7


@pytest.mark.thorough
def test_without_a_network_one_line_says_what_failed_and_what_to_do(checkout: Checkout) -> None:
    (checkout.tools / "uv").unlink()
    (checkout.root / "requirements.lock").write_text("nothing==1 --hash=sha256:" + "0" * 64 + "\n")
    done = checkout.run()
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 2
    assert last.startswith("LoCAL2 could not be set up: ERROR: ")
    assert "is there a network" in last
    assert "Traceback" not in done.stderr


def test_a_checkout_that_may_only_be_read_is_one_line_with_a_hint(checkout: Checkout, stranger: Stranger) -> None:
    done = checkout.run(prefix=stranger(checkout.root))
    last = done.stderr.splitlines()[-1]
    assert done.returncode == 2
    assert last.startswith(f"LoCAL2 could not be set up: {checkout.root / '.venv'}: Permission denied; ")
    assert last.endswith("use a copy of your own")
    assert "has to start LoCAL2 once" in last or os.geteuid() != 0
    assert "Traceback" not in done.stderr


def test_a_checkout_that_may_only_be_read_runs_once_it_is_set_up(ready: Checkout, stranger: Stranger) -> None:
    assert ready.run(prefix=stranger(ready.root)).returncode == 7


def test_an_old_python_is_refused_in_one_clear_line(checkout: Checkout) -> None:
    check = checkout.root / "scripts" / "python_version.py"
    check.write_text(check.read_text().replace("(3, 11)", "(99, 0)"))
    done = checkout.run()
    assert done.returncode == 2
    assert done.stderr.startswith("LoCAL2 needs Python 3.11 or newer, and this is ")
    assert done.stderr.count("\n") == 1
