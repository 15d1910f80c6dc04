"""Which model servers are used, and which are started."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from local.core.config import SystemConfig
from local.core.errors import ConfigError
from local.core.routing import ModelsConfig
from local.run.backend import Backend, choose_backend

NOWHERE = "http://127.0.0.1:1"  # nothing listens on port 1
KINDS = {kind: {"kind": kind} for kind in ("ollama", "openai", "llama_server")}


class Ollama(BaseHTTPRequestHandler):
    """Answers everything with 200."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def ollama() -> Iterator[str]:
    """A running Ollama; gives its address."""
    with HTTPServer(("127.0.0.1", 0), Ollama) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which programs are looked for, with nothing in it."""
    monkeypatch.setitem(os.environ, "PATH", str(tmp_path))
    return tmp_path


def install(folder: Path, name: str) -> Path:
    program = folder / name
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    return program


def choose(backend: Any = "auto", ollama_url: str | None = NOWHERE, **settings: Any) -> Backend:
    providers = {name: {**KINDS.get(name, {}), **given} for name, given in settings.pop("providers", {}).items()}
    models = ModelsConfig.model_validate({"providers": KINDS | providers, **settings})
    chosen = choose_backend(SystemConfig(backend=backend, ollama_url=ollama_url), models)
    if chosen.listener:
        chosen.listener.close()
    return chosen


def test_an_ollama_that_runs_is_used_as_it_is(ollama: str) -> None:
    for backend in ("auto", "ollama"):
        chosen = choose(backend, ollama)
        assert (chosen.name, chosen.url, chosen.servers, chosen.listener) == ("ollama", ollama, (), None)


def test_an_installed_ollama_that_does_not_run_is_started(programs: Path) -> None:
    program = install(programs, "ollama")
    for backend in ("auto", "ollama"):
        [server] = choose(backend).servers
        assert (server.name, server.command, server.url) == ("ollama", (str(program), "serve"), NOWHERE)


@pytest.mark.parametrize(
    ("url", "provider"), [(NOWHERE, {"start": False}), ("http://192.0.2.1:1", {"allow_cloud": True})]
)
def test_nothing_is_started_against_the_users_will_or_for_another_machine(
    programs: Path, monkeypatch: pytest.MonkeyPatch, url: str, provider: dict[str, Any]
) -> None:
    monkeypatch.setattr("local.run.backend.PROBE_SECONDS", 0.01)
    install(programs, "ollama")
    chosen = choose("ollama", url, providers={"ollama": provider})
    assert (chosen.name, chosen.servers) == ("ollama", ())


def test_without_any_the_stand_in_is_used_and_that_is_said(programs: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        chosen = choose()
    assert chosen.name == "stand_in" and chosen.listener is not None
    assert f"NO MODEL SERVER answers at {NOWHERE}" in caplog.text
    assert choose("stand_in").name == "stand_in"


def test_llama_server_is_run_with_its_model_under_that_models_name(programs: Path) -> None:
    install(programs, "llama-server")
    (programs / "tiny.gguf").touch()
    chosen = choose("llama_server", providers={"llama_server": {"model": programs / "tiny.gguf"}})
    [server] = chosen.servers
    assert (chosen.name, chosen.url) == ("llama_server", f"{server.url}/v1")
    assert chosen.routing.first("chat", "gemma4:12b") == "tiny"


@pytest.mark.parametrize(
    ("backend", "url", "providers", "complaint"),
    [
        ("openai", None, {}, "where is the model server? Write its address as providers.openai.url in models.yaml"),
        ("openai", None, {"openai": {"url": "box"}}, "'box' is no http or https address"),
        (
            "openai",
            None,
            {"openai": {"url": "http://box", "api_key_variable": "NOT_SET_ANYWHERE"}},
            "the environment variable NOT_SET_ANYWHERE is not set",
        ),
        ("llama_server", None, {}, "llama-server needs a model: write the path of a GGUF file as"),
        (
            "llama_server",
            None,
            {"llama_server": {"program": "no-such"}},
            "there is no program no-such: install llama.cpp",
        ),
        ("ollama", "https://ollama.com", {}, "https://ollama.com is on the internet: conversations and memories would"),
        ("auto", "ollama.com", {}, "ollama.com is on the internet"),
        ("auto", "http://[x", {}, "is no address of an Ollama server"),
    ],
)
def test_what_cannot_be_used_is_refused_with_what_would_be_right(
    programs: Path, backend: str, url: str | None, providers: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        choose(backend, url, providers=providers)
    assert complaint in str(caught.value)
