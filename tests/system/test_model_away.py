"""A model server that is away for seconds: whoever asks meanwhile is told that it is waited for, and is answered."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from local.cli.temporary_system import write_settings
from local.stand_in import server
from local.stand_in.server import StandInSettings
from tests.warm.warm_system import WarmSystem

AWAY_SECONDS = 3.0
QUERIES = 10


class ModelServer:
    """A model server on a port of its own; while it is not up, the port refuses connections."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self._port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self._port}"

    @contextmanager
    def up(self) -> Iterator[None]:
        """It serves."""
        stop, loop = asyncio.Event(), asyncio.new_event_loop()
        listening = socket.create_server(("127.0.0.1", self._port))
        thread = threading.Thread(
            target=loop.run_until_complete, args=(server.serve(StandInSettings(), listening, stop),)
        )
        thread.start()
        try:
            yield
        finally:
            loop.call_soon_threadsafe(stop.set)
            thread.join()
            loop.close()


@pytest.fixture
def model() -> ModelServer:
    return ModelServer()


@pytest.fixture
def live(model: ModelServer, watching: Callable[..., Any], tmp_path: Path) -> Iterator[Any]:
    """A system whose model server is up when it starts, and then away."""
    system = {"backend": "ollama", "ollama_url": model.url, "participants": ["generator"]}
    config_dir = write_settings(tmp_path / "config", {"system": system})
    with WarmSystem(tmp_path / "data", config_dir=config_dir) as running:
        live = watching(running, config_dir)
        with live.http:
            yield live


@pytest.mark.long
def test_queries_wait_for_a_model_server_that_is_away_for_seconds_and_are_all_answered(
    model: ModelServer, live: Any
) -> None:
    with model.up():
        live.wait_until(lambda: live.health()["status"] == "ok")
    with ThreadPoolExecutor(QUERIES) as users:
        asked = [users.submit(_follow, live, f"What is {number}+{number}?") for number in range(QUERIES)]
        live.wait_until(lambda: live.health()["status"] == "degraded")
        problems = {live.participant("generator")["details"]["problem"]}
        time.sleep(AWAY_SECONDS)
        with model.up():
            told = [each.result() for each in asked]
            live.wait_until(lambda: live.health()["status"] == "ok")
    problems |= {events["waiting"]["reason"] for events in told}
    assert [problem for problem in problems if f"no Ollama server answers at {model.url}" not in problem] == []
    for number, events in enumerate(told):
        assert (events["response"]["status"], events["response"]["answer"]) == (
            "answered",
            f"{number}+{number} = {2 * number}",
        )


def _follow(live: Any, query: str) -> dict[str, Any]:
    """The last event of each kind."""
    with live.stream("POST", "/query", json={"query": query}) as events:
        return dict(events)
