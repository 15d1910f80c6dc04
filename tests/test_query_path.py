"""A query's path from `POST /query` to its answer is in `docs/architecture.md`, file by file.

One plain query goes through the real API, journal and generator on a real bus, to a real model client; only the
processes are missing, so that one tracer sees all of it. `pytest tests/test_query_path.py -s` prints the path.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

import httpx
import pytest

import local
from local.apps.participant import ParticipantSpec, serve
from local.apps.run import API, JOURNAL
from local.bus.address import BusAddress
from local.bus.proxy import Proxy
from local.config import short_names
from local.config_models import Endpoint, Routing
from local.runtime import participant_runner
from local.runtime.participant import Resources

SOURCE = f"{Path(local.__file__).parent}/"
PAGE = (Path(__file__).parent.parent / "docs" / "architecture.md").read_text("utf-8")
MODEL = "gemma4:12b"
QUERIES = 8
SECONDS = 30.0
QUIET_SECONDS, MOST_QUIET_SECONDS = 0.03, 1.0
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
FACTS: dict[str, dict[str, Any]] = {
    "/api/version": {"version": "0.12.6"},
    "/api/tags": {"models": [{"name": MODEL, "model": MODEL}]},
    "/api/show": {"capabilities": ["completion", "tools"], "model_info": {"bench.context_length": 32_768}},
}
SAID = [
    {"model": MODEL, "message": {"role": "assistant", "content": "forty-"}, "done": False},
    {"model": MODEL, "message": {"role": "assistant", "content": "two"}, "done": False},
    {"model": MODEL, "message": {"role": "assistant", "content": ""}, "done": True, "done_reason": "stop"},
]


async def model_server(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One connection to an Ollama that answers at once."""
    with closing(writer), suppress(asyncio.IncompleteReadError):
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            size = re.search(r"content-length: (\d+)", head, re.I)
            asked = json.loads(await reader.readexactly(int(size[1])) if size else b"{}")
            path = head.split()[1]
            lines = [FACTS[path]] if path in FACTS else SAID if asked["stream"] else SAID[-1:]
            body = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
            writer.write(HEAD % len(body) + body)


Traced = dict[str, dict[str, None]]  # the functions of each file


class Tracer:
    """The source files of which a function runs, in any thread, while it is open, in the order of the first calls, and
    the names of those functions."""

    def __init__(self) -> None:
        self.files: Traced = {}
        self.since: set[str] = set()  # the source files of which a function has run since it was opened first
        self._last_call = 0.0
        self._is_open = False

    def __call__(self, frame: FrameType, event: str, arg: object) -> None:
        code = frame.f_code
        if event != "call" or not code.co_filename.startswith(SOURCE):
            return
        self._last_call = time.monotonic()
        file = code.co_filename.removeprefix(SOURCE)
        if self._is_open:
            self.files.setdefault(file, {}).setdefault(code.co_qualname)
        if self.files:
            self.since.add(file)

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Threads that begin meanwhile are traced, too."""
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)  # type: ignore[arg-type]  # that is how it ends

    async def quiet(self) -> None:
        """Until nothing has been called for a while: what comes after the answer to a query is not the next one's."""
        latest = time.monotonic() + MOST_QUIET_SECONDS
        while time.monotonic() < min(self._last_call + QUIET_SECONDS, latest):  # noqa: ASYNC110 calls set no event
            await asyncio.sleep(0.005)

    @contextmanager
    def open(self) -> Iterator[None]:
        self.files = {}
        self._is_open = True
        try:
            yield
        finally:
            self._is_open = False


@asynccontextmanager
async def system(folder: Path) -> AsyncIterator[str]:
    """The address of the HTTP API of a system with default settings, in this process."""
    models = await asyncio.start_server(model_server, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{models.sockets[0].getsockname()[1]}"
    bus = BusAddress(f"ipc://{folder}/pub", f"ipc://{folder}/sub", senders=folder / "senders")
    with closing(Proxy(bus)), socket.create_server(("127.0.0.1", 0)) as listener:
        resources = Resources(
            folder,
            Routing.to_one("ollama", Endpoint(kind="ollama", url=url)),
            "ollama",
            MODEL,
            listener=listener,
            layers=(folder,),
        )
        stop = asyncio.Event()
        async with models, asyncio.TaskGroup() as tasks:
            for target in (JOURNAL, short_names()["generator"], API):
                ready = asyncio.Event()
                tasks.create_task(serve(ParticipantSpec(target, bus, resources, ()), stop, ready.set))
                await asyncio.wait_for(ready.wait(), SECONDS)
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
            stop.set()


async def traced_queries() -> tuple[list[Traced], set[str]]:
    """What each of several plain queries passes through, one after the other, in a system that has answered one; and
    which files they need altogether, with what comes after an answer."""
    tracer, paths = Tracer(), []
    folder = Path(tempfile.mkdtemp(prefix="path-"))  # short enough for a socket's path
    try:
        with tracer.installed():
            async with system(folder) as url, httpx.AsyncClient(base_url=url, timeout=SECONDS) as client:
                for _ in range(1 + QUERIES):
                    await tracer.quiet()
                    with tracer.open():
                        response = await client.post("/query", json={"query": "What is 6 times 7?"})
                    assert response.json()["answer"] == "forty-two"
                    paths.append(tracer.files)
        return paths[1:], tracer.since
    finally:
        shutil.rmtree(folder)


def documented_path() -> dict[str, str]:
    """What happens in each file, as the page tells it."""
    _, found, rest = PAGE.partition("\n| file on the path | what happens there |\n")
    assert found, "docs/architecture.md has no table of the files on a query's path"
    return dict(re.findall(r"^\| `(.+?)` \| (.+) \|$", rest.partition("\n\n")[0], re.M))


def tell(path: list[str], paths: list[Traced], documented: dict[str, str]) -> None:
    """The table of the page as it should be; then which functions make a file one of the path."""
    lines = [f"{len(path)} files:", *(f"| `{file}` | {documented.get(file, '…')} |" for file in path), ""]
    for file in path:
        lines.append(f"{file}: {', '.join(dict.fromkeys(name for traced in paths for name in traced.get(file, ())))}")
    print("\n".join(lines))  # noqa: T201 for whoever keeps the page


async def test_the_files_on_a_query_s_path_are_those_that_the_page_lists(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a busy machine something else may fall into a query, so that the path is what those queries pass through that
    were disturbed least, all but one. What may come before or after the answer is on it, too."""
    monkeypatch.setattr(participant_runner, "LOOK_SECONDS", 3600.0)  # no status beats meanwhile
    paths, needed = await traced_queries()
    paths = sorted(paths, key=len)[: QUERIES // 2]
    times = Counter(file for path in paths for file in path)
    path = [file for file in times if times[file] >= len(paths) - 1]
    documented = documented_path()
    tell(path, paths, documented)
    missing = [f"+ | `{file}` | … |" for file in path if file not in documented]
    gone = [f"- | `{file}` | {text} |" for file, text in documented.items() if file not in needed]
    assert not missing + gone, "the table in docs/architecture.md needs:\n" + "\n".join(missing + gone)
