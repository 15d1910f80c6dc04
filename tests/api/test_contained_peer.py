"""A process in one of our sandboxes has our Unix user, and may have our network: for the API it is an unknown
caller.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from local.core.data_dir import make_owner_token
from local.core.errors import SandboxMissing
from local.core.files import contained_processes
from local.sandbox.process import ContainedCommand, ContainedServer, SandboxLimits
from local.sandbox.sandbox import SandboxView, sandbox_of_this_machine

System = Any  # of conftest.py
PYTHON = Path(sys.executable).resolve()
ASKS = """
import http.client, sys
for line in sys.stdin:
    port, token = line.split()
    connection = http.client.HTTPConnection("127.0.0.1", int(port), timeout=90)
    try:
        connection.request("GET", "/sessions", headers={"Authorization": "Bearer " + token} if token != "-" else {})
        print(connection.getresponse().status, flush=True)
    except OSError as error:
        print(error.strerror, flush=True)
"""


@pytest.fixture
def own_folder(tmp_path: Path) -> Path:
    (tmp_path / "its").mkdir()
    return tmp_path / "its"


@asynccontextmanager
async def contained(folder: Path, *, network: bool) -> AsyncIterator[ContainedServer]:
    """A program in a sandbox that sends requests to the API, a line for each: port and token."""
    try:
        sandbox = sandbox_of_this_machine()
    except SandboxMissing as missing:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(missing))
    view, limits = SandboxView(folder, (Path(sys.base_prefix),), network=network), SandboxLimits()
    command = ContainedCommand((str(PYTHON), "-S", "-c", ASKS))
    async with ContainedServer.contained(sandbox.launch(command, view, limits), limits) as server:
        yield server


async def test_without_the_token_it_is_nobody_and_others_are_who_they_were(system: System, own_folder: Path) -> None:
    token = make_owner_token(system.journal_file.parent)
    async with system.frontend() as ours, contained(own_folder, network=True) as server:
        await server.write_line(f"{system.port} -".encode())
        assert await server.read_line() == b"401\n"
        await server.write_line(f"{system.port} {token}".encode())
        assert await server.read_line() == b"200\n"
        async with httpx.AsyncClient(base_url=system.url, trust_env=False) as another:
            assert (await another.get("/sessions")).status_code == 200
        assert (await ours.get("/sessions")).status_code == 200


@pytest.mark.parametrize("network", [True, False])
async def test_only_those_that_share_our_network_are_looked_for(network: bool, own_folder: Path) -> None:
    async with contained(own_folder, network=network) as server:
        await server.write_line(b"1 -")
        assert await server.read_line() == b"Connection refused\n"
        children = {child.pid for child in psutil.Process().children(recursive=True)}
        assert bool(children & contained_processes()) is network
