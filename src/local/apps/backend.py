"""Which model server is used, and how the user is told."""

from __future__ import annotations

import logging
import socket
from dataclasses import dataclass

import httpx

from local.config import SystemConfig
from local.errors import ConfigError
from local.models.ollama_host import normalise_host

log = logging.getLogger(__name__)

DEFAULT_URL = "http://127.0.0.1:11434"
PROBE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Backend:
    """The model server: "ollama" or "stand_in", and where. `listener` is the stand-in's own socket."""

    name: str
    url: str
    listener: socket.socket | None = None


def choose_backend(system: SystemConfig) -> Backend:
    """What `backend` in system.yaml asks for; `auto` is Ollama if it answers, else the stand-in, said loudly."""
    url = normalise_host(system.ollama_url) if system.ollama_url else DEFAULT_URL
    if system.backend == "stand_in":
        return _stand_in()
    if system.backend == "ollama" or _answers(url):
        return Backend("ollama", url)
    log.warning(
        "NO MODEL SERVER answers at %s. Going on with the stand-in, which is no language model: it follows plain rules."
        " For a real one install Ollama (https://ollama.com), run 'ollama pull gemma4:12b', and start again.",
        url,
    )
    return _stand_in()


def _stand_in() -> Backend:
    listener = listen("127.0.0.1", 0)
    return Backend("stand_in", f"http://127.0.0.1:{listener.getsockname()[1]}", listener)


def listen(host: str, port: int) -> socket.socket:
    """A listening TCP socket; port 0 takes a free one. Raises `ConfigError` if the port is taken."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise ConfigError(f"cannot listen on {host}:{port}: {error.strerror}; choose another with --api-port") from None
    listener.listen(1024)
    return listener


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/api/version", timeout=PROBE_SECONDS, trust_env=False).is_success
    except httpx.HTTPError:
        return False
