"""LoCAL2 as `pip install` has it: a wheel of this tree in an environment of its own, outside any checkout, used by
somebody whose home is empty. Only the download is left out: the locked packages are those that run the tests."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIBRARIES = sysconfig.get_path("purelib")
SECONDS = 240  # a limit for a machine that is slow and busy
READY = "LoCAL2 is ready: "
# Notes what it is asked to install, and has the packages of this environment found.
FAKE_UV = """#!{python} -S
import pathlib, sys
with open(sys.argv[0] + ".calls", "a") as calls:
    calls.write(" ".join(sys.argv[1:]) + "\\n")
environment = pathlib.Path(sys.argv[sys.argv.index("--python") + 1]).parent.parent
(site_packages,) = environment.glob("lib/python*/site-packages")
(site_packages / "locked.pth").write_text({libraries!r})
"""


class Installation:
    """A user's machine: an environment into which the wheel was installed, a home, and an installer."""

    def __init__(self, folder: Path, environment: Path) -> None:
        self.home, self.environment = folder / "home", environment
        self.local2 = environment / "bin" / "local2"
        self.tools = folder / "tools"
        self.work = folder / "work"
        for made in (self.home, self.tools, self.work):
            made.mkdir(parents=True)
        (self.tools / "uv").write_text(FAKE_UV.format(python=sys.executable, libraries=LIBRARIES))
        (self.tools / "uv").chmod(0o755)

    @property
    def packages(self) -> Path:
        (found,) = self.environment.glob("lib/python*/site-packages")
        return found

    @property
    def variables(self) -> dict[str, str]:
        """Of this machine nothing but what a shell needs."""
        return {"HOME": str(self.home), "PATH": f"{self.tools}:/usr/bin:/bin", "PIP_NO_INDEX": "1"}

    def settings(self, name: str, text: str) -> None:
        """What the user writes into their own folder of settings."""
        place = "Library/Application Support/local2" if sys.platform == "darwin" else ".config/local2"
        (self.home / place).mkdir(parents=True, exist_ok=True)
        (self.home / place / name).write_text(text)

    def run(self, *arguments: str, prefix: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
        words = [*prefix, str(self.local2), *arguments]
        return subprocess.run(words, cwd=self.work, env=self.variables, capture_output=True, text=True, timeout=SECONDS)

    def installed(self) -> list[str]:
        """What the installer was asked for since the last look."""
        notes = self.tools / "uv.calls"
        lines = notes.read_text().splitlines() if notes.exists() else []
        notes.unlink(missing_ok=True)
        return lines

    @contextmanager
    def system(self) -> Iterator[list[str]]:
        """A running system; gives what it has said until it was ready."""
        words = [str(self.local2), "run", "--headless", "--api"]
        with subprocess.Popen(
            words, cwd=self.work, env=self.variables, stderr=subprocess.PIPE, text=True, start_new_session=True
        ) as process:
            assert process.stderr is not None
            said: list[str] = []
            try:
                for line in process.stderr:
                    said.append(line)
                    if line.startswith(READY):
                        break
                assert said and said[-1].startswith(READY), said
                yield said
                process.terminate()
                process.stderr.read()
                assert process.wait(SECONDS) == 0
            finally:
                if process.poll() is None:
                    os.killpg(process.pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=SECONDS)
    (found,) = folder.glob("*.whl")
    return found


def install(wheel: Path, environment: Path) -> Path:
    """With the installer that is there."""
    venv.EnvBuilder(symlinks=True, with_pip=False).create(environment)
    python = str(environment / "bin" / "python")
    uv = shutil.which("uv", path=f"{sysconfig.get_path('scripts')}:{os.environ['PATH']}")
    installer = [uv, "pip", "install", "--python", python] if uv else [sys.executable, "-m", "pip"]
    words = [*installer, *([] if uv else ["--python", python, "install"]), "--no-index", str(wheel)]
    subprocess.run(words, check=True, capture_output=True, timeout=SECONDS)
    return environment


@pytest.fixture(scope="module")
def installation(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """One for all tests of this module."""
    folder = tmp_path_factory.mktemp("user")
    return Installation(folder, install(wheel, folder / "environment"))


@pytest.fixture
def ready(installation: Installation) -> Installation:
    """The same after its first start."""
    assert installation.run("--help").returncode == 0
    installation.installed()
    installation.settings("system.yaml", "api_port: 0\nbackend: stand_in\n")
    return installation


def test_a_wheel_holds_every_file_of_the_package_with_the_settings_and_the_stories(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if name.startswith("local/")}
    places = {"src": "", "config": "local/shipped/config", "stories": "local/shipped/stories"}
    wanted = {
        str(Path(place) / file.relative_to(ROOT / folder))
        for folder, place in places.items()
        for file in (ROOT / folder).rglob("*")
        if file.is_file() and file.suffix != ".pyc"
    }
    assert held == {*wanted, *(f"local/shipped/requirements{name}.lock" for name in ("", "-uv", "-llama", "-try"))}


def test_a_wheel_names_no_dependency_whose_version_an_installer_would_choose(installation: Installation) -> None:
    (metadata,) = installation.packages.glob("local2_assistant-*.dist-info/METADATA")
    needed = [line for line in metadata.read_text().splitlines() if line.startswith("Requires-Dist")]
    assert [line for line in needed if "extra ==" not in line] == []


@pytest.mark.thorough
def test_the_first_start_installs_the_lock_of_the_wheel_and_a_second_one_nothing(wheel: Path, tmp_path: Path) -> None:
    new = Installation(tmp_path, install(wheel, tmp_path / "environment"))
    first = new.run("--help")
    assert (first.returncode, first.stdout.split()[:2]) == (0, ["Usage:", "local2"])
    assert "LoCAL2: setting up " in first.stderr
    (asked,) = new.installed()
    assert "--no-deps --only-binary :all: --require-hashes -r requirements.lock" in asked
    lock = new.packages / "local" / "shipped" / "requirements.lock"
    assert lock.read_bytes() == (ROOT / "requirements.lock").read_bytes()
    second = new.run("--help")
    assert (second.returncode, second.stderr, new.installed()) == (0, "", [])


@pytest.mark.long
def test_a_system_runs_outside_a_checkout_and_a_newer_wheel_goes_on_with_its_data(
    ready: Installation,
) -> None:
    with ready.system():
        answer = ready.run("ask", "What is the capital of France?")
        assert (answer.returncode, answer.stdout) == (0, "The capital of France is Paris.\n"), answer.stderr
        checkup = json.loads(ready.run("doctor", "--json").stdout)
    said = json.dumps(checkup)
    assert str(ROOT) not in said.replace(LIBRARIES, "")
    assert str(ready.packages / "local" / "shipped" / "config") in said
    (journal,) = ready.home.rglob("journal.db")
    place = "Library/Application Support/local2" if sys.platform == "darwin" else ".local/share/local2"
    assert journal.parent == ready.home / place
    lock = ready.packages / "local" / "shipped" / "requirements.lock"
    lock.write_text(lock.read_text() + "# another version\n")
    shown = ready.run("journal", "list")
    assert "installing about" in shown.stderr
    assert "What is the capital of France?" in shown.stdout
    assert len(ready.installed()) == 1


def test_who_may_not_write_where_it_was_installed_is_told_who_has_to_start_it(
    wheel: Path, tmp_path: Path, stranger: Callable[[Path], list[str]]
) -> None:
    foreign = Installation(tmp_path, install(wheel, tmp_path / "environment"))
    prefix = stranger(foreign.environment)
    refused = foreign.run("--help", prefix=prefix)
    assert (refused.returncode, refused.stdout) == (2, "")
    *_, said = refused.stderr.splitlines()
    assert said.startswith("LoCAL2 could not be set up: ")
    assert "local2-environment: Permission denied; " in said
    assert said.endswith("install it in a venv of your own")
    assert "has to start LoCAL2 once" in said or os.geteuid() != 0
    assert "Traceback" not in refused.stderr
