"""Model servers that the system runs itself, played by the stand-in behind the programs' own names."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from local.cli.temporary_system import write_settings
from local.core.config import layers_for
from local.models.settings import choose_model
from tests.models.llama_cpp.tiny_gguf import SENTENCE, write_tiny_gguf
from tests.warm.warm_system import WarmSystem

SECONDS = 90.0
LLAMA_SERVER = f"""#!{sys.executable}
import asyncio, socket, sys
sys.path.append({str(Path(__file__).parents[2])!r})
from starlette.responses import JSONResponse
from tests.stand_in import server

make = server.create_app

def create_app(settings):
    app = make(settings)
    app.add_route("/health", lambda request: JSONResponse({{"status": "ok"}}))
    app.add_route("/props", lambda request: JSONResponse({{"build_info": "b9000-fake"}}))
    return app

server.create_app = create_app
port = int(sys.argv[sys.argv.index("--port") + 1])
print("listening", flush=True)
asyncio.run(server.serve(server.StandInSettings(), socket.create_server(("127.0.0.1", port))))
"""
OLLAMA = f"""#!{sys.executable}
import os, runpy, sys
assert sys.argv[1:] == ["serve"]
sys.argv = ["stand_in", "--port", os.environ["OLLAMA_HOST"].rpartition(":")[2]]
runpy.run_module("local.stand_in", run_name="__main__")
"""


class Frontend:
    """A system over HTTP."""

    def __init__(self, system: WarmSystem) -> None:
        self.url = system.api_url

    def ask(self, query: str) -> dict[str, Any]:
        answer = httpx.post(f"{self.url}/query", json={"query": query}, timeout=SECONDS, trust_env=False)
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    def health(self) -> dict[str, Any]:
        return dict(httpx.get(f"{self.url}/health", timeout=SECONDS, trust_env=False).json())

    def wait_until_restarted(self, name: str) -> None:
        """Look at every heartbeat on the bus until it has been started again and all are well."""
        end = time.monotonic() + SECONDS
        beats = f"{self.url}/events?subject=participant.status"
        with httpx.stream("GET", beats, timeout=SECONDS, trust_env=False) as response:
            for _ in response.iter_lines():
                health = self.health()
                [child] = [child for child in health["participants"] if child["name"] == name]
                if child["restarts"] and health["status"] == "ok":
                    return
                assert time.monotonic() < end, health


def install(folder: Path, name: str, text: str) -> Path:
    program = folder / name
    program.write_text(text)
    program.chmod(0o755)
    return program


@pytest.fixture
def running(
    tmp_path: Path, processes: Callable[[int], list[psutil.Process]], survivors: Callable[..., list[psutil.Process]]
) -> Callable[..., Any]:
    """A system with these settings; none of its processes is left afterwards."""

    @contextmanager
    def run(**settings: dict[str, Any]) -> Iterator[WarmSystem]:
        config_dir = write_settings(tmp_path / "config", settings)
        with WarmSystem(tmp_path / "data", config_dir=config_dir) as system:
            yield system
            theirs = processes(system.process.pid)
        assert survivors(theirs) == []

    return run


@pytest.mark.thorough
def test_llama_server_is_run_and_started_again_when_it_dies(running, tmp_path: Path, processes) -> None:
    program = install(tmp_path, "llama-server", LLAMA_SERVER)
    (tmp_path / "gemma4:12b.gguf").touch()
    provider = {"program": str(program), "model": str(tmp_path / "gemma4:12b.gguf"), "args": []}
    settings = {"system": {"backend": "llama_server"}, "models": {"providers": {"llama_server": provider}}}
    with running(**settings) as system:
        frontend = Frontend(system)
        assert "Paris" in frontend.ask("What is the capital of France?")["answer"]
        assert frontend.health()["backend"] == "llama_server"
        [server] = [process for process in processes(system.process.pid) if "--alias" in process.cmdline()[:6]]
        server.kill()
        frontend.wait_until_restarted("llama_server")
        assert "Berlin" in frontend.ask("What is the capital of Germany?")["answer"]
    assert (tmp_path / "data" / "logs" / "llama_server.log").exists()


def test_a_model_in_a_file_answers_without_any_program_calls_tools_and_survives_its_server(
    running, tmp_path: Path, processes, config_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # no llama-server
    model = write_tiny_gguf(tmp_path / "tiny.gguf")
    tools = {"participants": ["generator", "my_tools.dice:DiceTool"], "python_path": [str(config_dir)]}
    # Its threads wait for each other without giving up their cores: on busy ones several are slower than one.
    server = {"kind": "llama_server", "model": str(model), "args": ["--threads", "1"]}
    settings = write_settings(tmp_path / "config", {"system": tools, "models": {"providers": {"llama_server": server}}})
    choose_model([*layers_for(settings)], "llama_server", "tiny", model)
    with running(system=tools) as system:
        frontend = Frontend(system)
        answer = frontend.ask("Roll a dice.")
        assert (answer["answer"], answer["model"]) == (SENTENCE, "tiny")
        assert {call["tool"] for call in answer["tool_calls"]} == {"dice"}
        [server] = [process for process in processes(system.process.pid) if "--alias" in process.cmdline()[:6]]
        server.kill()
        frontend.wait_until_restarted("llama_server")
        assert frontend.ask("And again.")["answer"] == SENTENCE


@pytest.mark.thorough
def test_an_installed_ollama_is_started_and_ends_with_the_system(
    running, tmp_path: Path, processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, "ollama", OLLAMA)
    monkeypatch.setitem(os.environ, "PATH", f"{tmp_path}:{os.environ['PATH']}")
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with running(system={"ollama_url": f"http://127.0.0.1:{port}"}) as system:
        frontend = Frontend(system)
        answer = frontend.ask("What is the capital of France?")
        assert "Paris" in answer["answer"]
        assert (frontend.health()["backend"], answer["model"]) == ("ollama", "gemma4:12b")
        assert any("serve" in process.cmdline()[-1:] for process in processes(system.process.pid))


@pytest.mark.thorough  # beside tests/models/test_servers.py, and what cannot be started in test_refusals.py
def test_a_server_that_is_too_old_ends_the_start_with_its_reason(running, tmp_path: Path, command) -> None:
    program = install(tmp_path, "llama-server", LLAMA_SERVER)
    (tmp_path / "x.gguf").touch()
    provider = {"program": str(program), "model": str(tmp_path / "x.gguf"), "args": [], "minimum_build": 9001}
    config = write_settings(tmp_path / "config", {"models": {"providers": {"llama_server": provider}}})
    words = ("run", "--headless", "--backend", "llama_server", "--config-dir", config, "--data-dir", tmp_path / "data")
    process = command("local.cli.entry", *words)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "is build b9000-fake, and b9001 is asked for" in said
    assert "Traceback" not in said
