"""What tests with real child processes share: what these do is in targets/supervised.py."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def targets_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parent / "targets")


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Two connected sockets for a child to be heard by, or for two children to talk over."""
    one, other = socket.socketpair()
    with one, other:
        yield one, other
