"""Ways out of the sandbox: none is open, and those that are tried outside, too, lead somewhere there."""

import asyncio
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from local.sandbox.process import ContainedCommand, ContainedProcess, SandboxLimits
from local.sandbox.sandbox import CLONE, MACHINES, MISSING, REFUSED, Bubblewrap, SandboxView

PROGRAM = Path(__file__).parent / "escapes.py"
CANARY, MARKER = "canary-5d1c0a", "local2-sandbox-test"
PYTHON = str(Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is of Linux")


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    """What there is to be reached: files, sockets, a process, a descriptor, an environment."""
    home = tmp_path_factory.mktemp("home")
    workspace = home / "data" / "workspace"
    workspace.mkdir(parents=True)
    files = {"secret": home / "secret", "token": home / "data" / "api_token", "settings": home / "api.yaml",
             "ssh_key": home / "id_ed25519"}  # fmt: skip
    with ExitStack() as stack:
        for name, folder in (("host_tmp", None), ("host_shm", "/dev/shm")):
            files[name] = Path(stack.enter_context(tempfile.NamedTemporaryFile(dir=folder)).name)
        for path in files.values():
            path.write_text(CANARY)
        (workspace / "link").symlink_to(files["secret"])
        shutil.copy(PROGRAM, workspace)
        port = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        bus, abstract = (stack.enter_context(socket.socket(socket.AF_UNIX)) for _ in range(2))
        bus.bind(str(home / "bus"))
        abstract.bind(f"\0{MARKER}-{os.getpid()}")
        for listener in (bus, abstract):
            listener.listen()
        victim = stack.enter_context(subprocess.Popen([PYTHON, "-c", "input()", "victim", MARKER], stdin=-1))
        stack.callback(victim.kill)
        column = MACHINES.get(platform.machine(), (0, 0))[1]
        yield {
            **{name: str(path) for name, path in files.items()}, "link": "link", "upwards": "../../secret",
            "canary": CANARY, "marker": MARKER, "victim": victim.pid, "outside": victim.pid, "sysv": 1,
            "port": port.getsockname()[1], "bus": str(home / "bus"), "abstract": f"{MARKER}-{os.getpid()}",
            "beside": str(home / "data" / "beside"), "device": home.stat().st_dev, "clone": CLONE[column],
            "refused": {name: number[column] for name, number in {**REFUSED, **MISSING}.items()
                        if number[column] is not None},
            "workspace": str(workspace), "home": str(home), "given": [str(workspace), sys.base_prefix],
        }  # fmt: skip
        assert victim.poll() is None, "the process outside was ended"


@pytest.fixture(scope="module")
def tried(outside: dict[str, Any]) -> dict[str, str]:
    """What came of each way, tried in one sandbox; LoCAL2's own process has the canary in an open file and in its
    environment, and its limits are the narrow ones of a test."""

    async def contained() -> str:
        workspace, home = Path(outside["workspace"]), Path(outside["home"])
        view = SandboxView(workspace, (Path(sys.base_prefix),), (home / "data", home / "bus"))
        limits = SandboxLimits(seconds=50, memory_bytes=1024**3, processes=64, free_bytes=0)
        process = ContainedProcess(workspace, limits, lambda: None)
        command = ContainedCommand([PYTHON, "escapes.py", json.dumps({**outside, "harmless_only": False})])
        await process.start(Bubblewrap.found().launch(command, view, limits))
        outcome = await process.wait()
        said = process.output.part(0, -1).decode()
        process.close()
        assert outcome.code == 0, said
        return said.splitlines()[-1]

    with pytest.MonkeyPatch.context() as patch, Path(outside["secret"]).open() as held:
        patch.setenv("API_KEY", CANARY)
        os.set_inheritable(held.fileno(), True)
        found: dict[str, str] = json.loads(asyncio.run(contained()))
    return found


def test_no_way_leads_out(tried: dict[str, str]) -> None:
    assert len(tried) >= 60
    assert {name: what for name, what in tried.items() if not what.startswith("closed")} == {}


def test_what_is_outside_is_as_it_was(tried: dict[str, str], outside: dict[str, Any]) -> None:
    names = ("secret", "token", "settings", "ssh_key", "host_tmp", "host_shm")
    assert {Path(outside[name]).read_text() for name in names} == {CANARY}
    assert not Path(outside["beside"]).exists()
    assert not any(CANARY in what for what in tried.values())


def test_outside_of_the_sandbox_the_same_ways_lead_somewhere(outside: dict[str, Any]) -> None:
    folder = os.open(outside["home"], os.O_RDONLY | os.O_DIRECTORY)
    with Path(outside["secret"]).open() as held:
        os.set_inheritable(folder, True)
        os.set_inheritable(held.fileno(), True)
        done = subprocess.run(
            [PYTHON, "escapes.py", json.dumps({**outside, "harmless_only": True})],
            cwd=outside["workspace"], env={**os.environ, "API_KEY": CANARY}, pass_fds=(held.fileno(), folder),
            capture_output=True, text=True, check=True,
        )  # fmt: skip
    os.close(folder)
    found = json.loads(done.stdout)
    assert len(found) >= 16
    assert {name: what for name, what in found.items() if not what.startswith("ESCAPED")} == {}
