"""Servers on this machine: a port for one, a client of one."""

from __future__ import annotations

import socket

import httpx

SECONDS = 60.0


def client_of(url: str) -> httpx.AsyncClient:
    """Gives up after a minute."""
    return httpx.AsyncClient(base_url=url, timeout=SECONDS, trust_env=False)


def free_port() -> int:
    """A port that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
