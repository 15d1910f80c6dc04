"""The real system in processes of its own: bus, generator, tools, API, stand-in, and a local web to search."""

from __future__ import annotations

import json
import os
import re
import selectors
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from local.cli.temporary_system import write_settings
from local.journal.store import JournalView
from local.stories.player import STORIES, LocalWeb, load_pages
from tests.models.llama_cpp.real_llama import smollm2
from tests.warm.warm_system import WarmSystem

Json = dict[str, Any]
Event = tuple[str, Json]

SECONDS = 90.0

DICE = '''
"""A tool of somebody else's."""

from typing import Annotated

from local.tools.tool import Tool


class DiceTool(Tool):
    """Roll a dice and tell the number."""

    name = "dice"
    safety = "L0"

    async def run(self, sides: Annotated[int, "How many sides it has"]) -> str:
        return f"the dice with {sides} sides shows {sides}"
'''


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Everything here drives the real system, which takes its time to start on a busy machine. What can do with the one
    system for all tests is run by one worker, so that there is only one."""
    here = f"{Path(__file__).parent}{os.sep}"
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker("system")
            if "live" in getattr(item, "fixturenames", ()) and not hasattr(getattr(item, "module", None), "live"):
                item.add_marker(pytest.mark.xdist_group("live"))
            if "llama_live" in getattr(item, "fixturenames", ()):
                item.add_marker(pytest.mark.xdist_group("llama_live"))


class Live:
    """A running system, as its users and its watchers see it."""

    def __init__(self, system: WarmSystem, config_dir: Path) -> None:
        self.system, self.config_dir = system, config_dir
        self.http = httpx.Client(base_url=system.api_url, timeout=SECONDS, trust_env=False)

    def ask(self, query: str, **others: Any) -> Json:
        """The whole answer, on a connection of its own: the one before may have died with the API."""
        url = f"{self.system.api_url}/query"
        response = httpx.post(url, json={"query": query, **others}, timeout=SECONDS, trust_env=False)
        assert response.status_code == 200, response.text
        answer: Json = response.json()
        return answer

    @contextmanager
    def stream(self, method: str, path: str, **request: Any) -> Iterator[Iterator[Event]]:
        """The server-sent events of a route."""
        request["headers"] = {"Accept": "text/event-stream"}
        with self.http.stream(method, path, **request) as response:
            assert response.status_code == 200, response.read()
            yield _events(response)

    def health(self) -> Json:
        """What /health says."""
        health: Json = self.http.get("/health").json()
        return health

    def participant(self, name: str) -> Json:
        """What /health says of one participant; nothing if it does not know it."""
        return next((known for known in self.health()["participants"] if known["name"] == name), {})

    def wait_until(self, holds: Callable[[], bool], seconds: float = SECONDS) -> None:
        """Look now, and at every heartbeat on the bus, until it holds; the API may be started again meanwhile."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            with suppress(httpx.TransportError):
                if holds():
                    return
                with self.stream("GET", "/events", params={"subject": "participant.status"}) as beats:
                    for _ in beats:
                        if holds():
                            return
                        if time.monotonic() > end:
                            break
        raise AssertionError(self.health())

    def stand_in(self, method: str, what: str, **request: Any) -> str:
        """Control the stand-in; returns what it says."""
        url = f"{self.system.facts.model_url}/stand_in/{what}"
        return httpx.request(method, url, timeout=SECONDS, trust_env=False, **request).raise_for_status().text

    def model_fails(self, question: str, kind: str, **fault: Any) -> None:
        """Let the stand-in fail once, where exactly this is asked last; see `InjectedFault`.

        What works in the background asks it of the same conversations, at any time: titles, facts and grades. A turn
        that was computed ahead asks twice if the record is not what it was expected to be.
        """
        match = re.escape(json.dumps(question, ensure_ascii=False)[1:])  # up to the quotation mark that ends a message
        self.stand_in("POST", "fault", json={"kind": kind, "match": match, **fault})

    def model_is_asked(self, question: str) -> bool:
        """Whether the stand-in is at the answer to just that."""
        asked = json.loads(self.stand_in("GET", "log"))["requests"]
        said = [each["messages"] for each in asked if each["finished_at"] is None and each["disconnected_at"] is None]
        return any(messages and messages[-1]["content"].endswith(question) for messages in said)

    def on_record(self, subject: str, query_id: str) -> int:
        """How many messages the journal has."""
        with JournalView(self.system.data_dir / "journal.db") as journal:
            return len(journal.read(limit=10, subjects=[subject], correlation_id=query_id))

    def kill(self, name: str) -> None:
        """kill -9, and wait for the end. A process of the API that has just been started may know nobody yet."""
        self.wait_until(lambda: psutil.pid_exists(self.participant(name).get("pid") or 0))
        process = psutil.Process(self.participant(name)["pid"])
        process.kill()
        psutil.wait_procs([process], SECONDS)


@pytest.fixture(scope="session")
def config_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Settings for the local web, with a dice as one more tool."""
    folder = tmp_path_factory.mktemp("config")
    (folder / "my_tools").mkdir()
    (folder / "my_tools" / "dice.py").write_text(DICE)
    with LocalWeb(load_pages(STORIES / "web")) as web:
        participants = ["generator", "web_search", "web_fetch", "my_tools.dice:DiceTool"]
        yield write_settings(folder, {**web.settings(), "system": {"participants": participants}})


@pytest.fixture(scope="session")
def start(config_dir: Path) -> Callable[[Path], WarmSystem]:
    """Makes a system on a data directory; enter it to start it."""
    return lambda data_dir: WarmSystem(data_dir, config_dir=config_dir, flags=["--backend", "stand_in"])


@pytest.fixture(scope="session")
def live(
    start: Callable[[Path], WarmSystem], config_dir: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Live]:
    """One running system for all tests that leave it running."""
    with start(tmp_path_factory.mktemp("data")) as system:
        live = Live(system, config_dir)
        with live.http:
            yield live


@pytest.fixture(scope="session")
def llama_live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """One running system on a real model, SmolLM2-135M, which llama.cpp runs as the system's own model server:
    `facts.model_url` is that server's address. For all tests that leave it running; as the model is too small to be
    right, they look at the way to an answer, not at what it says."""
    folder = tmp_path_factory.mktemp("llama")
    args = ["--ctx-size", "4096", "--threads", "2", "--batch-size", "256", "--ubatch-size", "256"]
    settings = {
        "system": {"backend": "llama_server", "participants": ["generator"]},
        "models": {"providers": {"llama_server": {"kind": "llama_server", "model": str(smollm2()), "args": args}}},
        "generator": {"temperature": 0, "max_answer_tokens": 64},
    }
    with WarmSystem(folder / "data", config_dir=write_settings(folder / "config", settings)) as system:
        live = Live(system, folder / "config")
        with live.http:
            yield live


@pytest.fixture(scope="session")
def watching() -> type[Live]:
    """For a test module with a system of its own."""
    return Live


@pytest.fixture
def processes() -> Callable[[int], list[psutil.Process]]:
    """The processes of the session that a process leads; sessions outlive their leaders."""
    return _processes


@pytest.fixture
def survivors() -> Callable[[list[psutil.Process]], list[psutil.Process]]:
    """Waits for the end of processes, and gives those that have not ended."""
    return _survivors


@pytest.fixture
def command() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts `python -m <arguments>` with its log in a pipe, as the leader of a session of its own."""
    started: list[subprocess.Popen[str]] = []

    def begin(*arguments: object) -> subprocess.Popen[str]:
        words = [sys.executable, "-m", *map(str, arguments)]
        started.append(subprocess.Popen(words, stderr=subprocess.PIPE, text=True, start_new_session=True))
        return started[-1]

    yield begin
    for process in started:
        for left in _processes(process.pid):
            with suppress(psutil.NoSuchProcess):  # it has ended by itself meanwhile
                left.kill()
        process.communicate()


def _processes(session: int) -> list[psutil.Process]:
    def session_of(process: psutil.Process) -> int:
        try:
            return os.getsid(process.pid)
        except ProcessLookupError:
            return 0

    return [process for process in psutil.process_iter() if session_of(process) == session]


def _survivors(processes: list[psutil.Process]) -> list[psutil.Process]:
    """A zombie has ended: who inherited it is only slow to notice, which is why psutil alone would wait too long."""
    if not hasattr(os, "pidfd_open"):
        return psutil.wait_procs(processes, SECONDS)[1]
    end = time.monotonic() + SECONDS
    with selectors.DefaultSelector() as ends, ExitStack() as stack:
        for process in processes:
            with suppress(ProcessLookupError):
                file = os.pidfd_open(process.pid)
                stack.callback(os.close, file)
                ends.register(file, selectors.EVENT_READ, process)
        while ends.get_map() and time.monotonic() < end:
            for key, _ in ends.select(end - time.monotonic()):
                ends.unregister(key.fd)
        return [key.data for key in ends.get_map().values()]


def _events(response: httpx.Response) -> Iterator[Event]:
    kind = "message"
    for line in response.iter_lines():
        if line.startswith("event:"):
            kind = line.removeprefix("event:").strip()
        elif line.startswith("data:"):
            yield kind, json.loads(line.removeprefix("data:"))
            kind = "message"
