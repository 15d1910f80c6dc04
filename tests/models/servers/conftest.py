"""Programs that behave like llama-server and Ollama, good and bad."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from local.models.servers import ServerSpec, llama_server_spec
from local.models.settings import Provider

FAKE_LLAMA_SERVER = """
import http.server, json, os, pathlib, signal, subprocess, sys, threading

arguments = sys.argv[1:]
port = int(arguments[arguments.index("--port") + 1])
folder = pathlib.Path(arguments[arguments.index("--model") + 1]).parent
manners = arguments[arguments.index("--fake") + 1].split(",")
(folder / "pid.part").write_text(str(os.getpid()))
(folder / "pid.part").rename(folder / "pid")  # whoever finds it can read it
print("build: fake", " ".join(arguments), flush=True)
if "crash" in manners:
    print("error: failed to load model", flush=True)
    sys.exit(1)
if "deaf" in manners:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
if "child" in manners:
    child = subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(600)"])
    (folder / "child").write_text(str(child.pid))


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if "slow" in manners and not (folder / "loaded").exists():
            (folder / "asked").touch()
            return self.answer(503, {"error": {"code": 503, "message": "Loading model", "type": "unavailable_error"}})
        if (folder / "mute").exists():
            return None
        if self.path == "/props":
            return self.answer(200, {"build_info": "b8600-abc" if "old" in manners else "b8665-abc"})
        self.answer(200, {"status": "ok"})

    def answer(self, status, body):
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the fake, its model and what it leaves behind lie."""
    program = tmp_path / "llama-server"
    program.write_text(f"#!{sys.executable} -S\n{FAKE_LLAMA_SERVER}")
    program.chmod(0o755)
    (tmp_path / "tiny-1b.gguf").write_bytes(b"GGUF")
    return tmp_path


@pytest.fixture
def llama_server(folder: Path) -> Callable[..., ServerSpec]:
    """What it takes to run the fake with these manners."""

    def spec(*manners: str, **settings: object) -> ServerSpec:
        provider = Provider(
            kind="llama_server",
            program=str(folder / "llama-server"),
            model=folder / "tiny-1b.gguf",
            args=("--fake", ",".join(manners)),
            **settings,
        )
        return llama_server_spec("llama_server", provider)

    return spec
