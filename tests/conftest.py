"""Options of every run, and fixtures for tests of all folders."""

from __future__ import annotations

import asyncio
import fnmatch
import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent / "chaos"))  # for the package `chaos_harness`
sys.path.insert(0, str(Path(__file__).parent / "agents"))  # for the package `agent_stage`

from chaos_harness.small_disk import MayNotMount, SmallDisk

from local.core.errors import SandboxMissing
from local.sandbox.sandbox import Sandbox, sandbox_of_this_machine
from tests.stand_in.use import use_in_systems
from tests.wires import MemoryWire, Scene, Wire, ZeroMQWire
from tests.worker_shares import shared_out
from tests.workers.worker_template import WorkerTemplate

use_in_systems()

SECONDS = 90.0  # a test that waits so long has failed
NOBODY = 65534
EXAMPLES, EXAMPLES_THOROUGH = 25, 200  # that a property is tried with


def pytest_configure(config: pytest.Config) -> None:
    """Property tests neither depend on how busy the machine is nor leave a database behind."""
    is_thorough = "not thorough" not in config.getoption("markexpr")
    examples = EXAMPLES_THOROUGH if is_thorough else EXAMPLES
    settings.register_profile("local", deadline=None, database=None, max_examples=examples)
    settings.load_profile("local")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[object]:
    """Each worker makes thousands of tests, all of which stay: nothing of that is looked through for garbage, neither
    now nor in any later collection."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Once everybody's markers are set."""
    items[:] = shared_out(items, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(config: pytest.Config, specs: list[Any]) -> None:
    """Workers are forks of a process that has collected the tests, where files go with an order to fork: on Linux."""
    if sys.platform == "linux":
        template = WorkerTemplate(config.args)
        config.add_cleanup(template.close)
        if not template.is_ready:
            return  # some test cannot be imported: workers that import them by themselves say which
        specs[:] = [type(spec)(f"{spec}//python={template.python}") for spec in specs]


@pytest.fixture(params=[MemoryWire, ZeroMQWire], ids=["memory", "zeromq"])
def make_wire(request: pytest.FixtureRequest) -> Callable[[Path], Wire]:
    """Every kind of wire in turn."""
    kind: Callable[[Path], Wire] = request.param
    return kind


@pytest.fixture
async def wire(make_wire: Callable[[Path], Wire]) -> AsyncIterator[Wire]:
    """A wire; afterwards no task is left."""
    run_dir = Path(tempfile.mkdtemp(prefix="bus-"))  # short enough for a socket's path
    wire = make_wire(run_dir)
    yield wire
    wire.close()
    shutil.rmtree(run_dir)
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.fixture
async def scene(wire: Wire, tmp_path: Path) -> AsyncIterator[Scene]:
    scene = Scene(wire, tmp_path)
    yield scene
    await scene.close()


@pytest.fixture
def until() -> Callable[[Callable[[], object]], Awaitable[None]]:
    """Lets the loop run until something has happened; for counters and files, which set no event."""

    async def until(condition: Callable[[], object]) -> None:
        async with asyncio.timeout(SECONDS):
            while not condition():  # noqa: ASYNC110 see above
                await asyncio.sleep(0.005)

    return until


@pytest.fixture(scope="session")
def machine_sandbox() -> Sandbox:
    """What contains a command here. Skips the test where there is none; in CI there is one."""
    try:
        return sandbox_of_this_machine()
    except SandboxMissing as missing:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(missing))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """Skips the test where one may not mount."""
    try:
        with SmallDisk(tmp_path / "disk") as disk:
            yield disk
    except MayNotMount as error:
        pytest.skip(str(error))


@pytest.fixture
def files_with() -> Callable[..., list[str]]:
    """The files under a folder that a text is in, in whatever case; others may write and delete there meanwhile."""

    def files_with(folder: Path, *texts: str | bytes, name: str = "*") -> list[str]:
        needles = [(text.encode() if isinstance(text, str) else text).lower() for text in texts]
        found: list[str] = []
        for parent, _, names in os.walk(folder):  # unlike `Path.rglob`, it passes over folders that have just gone
            for file in map(Path(parent).joinpath, fnmatch.filter(names, name)):
                with suppress(FileNotFoundError):
                    content = file.read_bytes().lower()
                    found += [str(file.relative_to(folder))] * any(needle in content for needle in needles)
        return found

    return files_with


@pytest.fixture(autouse=True, scope="session")
def _heard_signals() -> None:
    """Programs that tests start hear what is to end them, also where `nohup` or a shell's `&` has this process ignore
    it: they inherit that, but no handler."""
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


@pytest.fixture(autouse=True)
def _umask() -> Iterator[None]:
    """A command that a test runs within its own process makes private files, and so would the tests after it."""
    before = os.umask(0o022)
    os.umask(before)
    yield
    os.umask(before)


@pytest.fixture
def stranger() -> Callable[[Path], list[str]]:
    """Makes a folder one that may be read and not written to; gives what a command has to begin with for that to
    count. Of whoever is root, who may always write, that takes away; and the folder is somebody else's."""

    def made(folder: Path) -> list[str]:
        found = [folder, *folder.rglob("*")]
        if os.geteuid() != 0:
            for path in found:
                if path.is_dir() and not path.is_symlink():
                    path.chmod(0o555)
            return []
        for path in found:
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
        command = shutil.which("setpriv")
        assert command, "of util-linux, which every Linux has"
        return [command, "--bounding-set=-dac_override,-dac_read_search"]

    return made
