"""The journal on the in-process wire; a test that depends on the wire takes `both_wires`."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from local.bus.envelope import Envelope, new_id
from tests.logs import LOG, ONE_MACHINE, OpenStore, make_open_store
from tests.wires import MemoryWire, Scene, Served, Wire


@pytest.fixture
def make_wire() -> Callable[[Path], Wire]:
    return MemoryWire


@pytest.fixture(params=[ONE_MACHINE, pytest.param(LOG, marks=pytest.mark.thorough)])
def open_store(request: pytest.FixtureRequest) -> OpenStore:
    return make_open_store(request.param)


@pytest.fixture
def scene(scene: Scene, open_store: OpenStore) -> Scene:
    scene.open_store = open_store
    return scene


@pytest.fixture
async def journal(scene: Scene) -> AsyncIterator[Served]:
    return await scene.journal()


@pytest.fixture
def frame() -> Callable[..., bytes]:
    """Makes a frame as a stranger may make it."""

    def make(subject: str, payload: bytes = b"{}", *, instance: str = "strange", seq: int = 1) -> bytes:
        return Envelope(subject, new_id(), "stranger", instance, seq, "q", payload).encode()

    return make
