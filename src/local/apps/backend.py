"""Which model server is used, and how the user is told."""

from __future__ import annotations

import http.client
import logging
import socket
import urllib.request
from dataclasses import dataclass

from local.apps.listener import listen
from local.config import SystemConfig
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


def _answers(url: str) -> bool:
    # urllib, because the supervisor has no other use for an HTTP client, and importing httpx costs it 80 ms
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{url}/api/version", timeout=PROBE_SECONDS) as response:
            return bool(response.status == 200)
    except (OSError, http.client.HTTPException, ValueError):
        return False
