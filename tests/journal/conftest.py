"""The journal participant, on the in-process wire."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from local.bus.envelope import Envelope, new_id


@pytest.fixture
def make_wire(in_process_wire: Any) -> Any:
    return in_process_wire


@pytest.fixture
async def journal(scene: Any) -> AsyncIterator[Any]:
    return await scene.journal()


@pytest.fixture
def frame() -> Callable[..., bytes]:
    """Makes a frame as a stranger may make it."""

    def make(subject: str, payload: bytes = b"{}", *, instance: str = "strange", seq: int = 1) -> bytes:
        return Envelope(subject, new_id(), "stranger", instance, seq, "q", payload).encode()

    return make
