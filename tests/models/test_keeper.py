"""The model manager on the bus: what is here, a pull that is told as it goes on, and the choice."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from local.api.clients import BusRequests, ParticipantRefused
from local.bus.bus import Bus
from local.bus.envelope import Envelope
from local.bus.zeromq import MemoryHub
from local.core.routing import Endpoint, Routing
from local.models.keeper import ModelManager, ModelManagerConfig
from local.models.messages import ModelProgress, ModelRequest, ModelResult, ModelVerb
from local.models.settings import load_models
from local.runtime.participant import Resources
from local.runtime.runner import ParticipantRunner
from tests.models.hub.fake_hub import REPO, FakeHub, hub_with

DEFAULTS = Path(__file__).parents[2] / "config"
FILES = {"tiny-Q4_K_M.gguf": b"GGUF" + bytes(3_000_000)}
NAME = f"hf.co/{REPO}"


class Models(BusRequests):
    """Asks the model manager as the routes do."""

    async def request(self, verb: ModelVerb, model: str = "") -> ModelResult:
        return await self.ask("model_keeper", ModelRequest(verb=verb, model=model), ModelResult, seconds=20.0)


class Frontend:
    """Asks the model manager, and hears what it says of pulls."""

    def __init__(self, bus: Bus) -> None:
        self.models = Models(bus, lambda _: True)
        self._bus, self._heard = bus, asyncio.Queue[Envelope]()
        bus.subscribe(ModelProgress.subject, self._heard.put_nowait)

    async def hears(self, *, until: Callable[[ModelProgress], bool]) -> list[ModelProgress]:
        heard: list[ModelProgress] = []
        async with asyncio.timeout(90):
            while not heard or not until(heard[-1]):
                heard.append(await self._bus.decode(ModelProgress, await self._heard.get()))
        return heard


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    with hub_with(dict(FILES)) as hub:
        yield hub


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    folder = tmp_path / "settings"
    folder.mkdir()
    return folder


@pytest.fixture
async def frontend(hub: FakeHub, tmp_path: Path, settings: Path) -> AsyncIterator[Frontend]:
    wire, stop, ready = MemoryHub(), asyncio.Event(), asyncio.Event()
    routing = Routing.to_one("stand_in", Endpoint(kind="ollama", url="http://127.0.0.1:1"))
    resources = Resources(
        tmp_path, routing, "stand_in", "gemma4:12b", ollama_url="http://127.0.0.1:1", layers=(DEFAULTS, settings)
    )
    manager = ModelManager.build(ModelManagerConfig(hub_url=hub.url), resources)
    async with AsyncExitStack() as stack:
        bus = await stack.enter_async_context(Bus("frontend", wire.transport()))
        made = Frontend(bus)
        await bus.ready()
        task = asyncio.create_task(
            ParticipantRunner(manager, Bus("model_keeper", wire.transport())).run(stop, ready.set)
        )
        await asyncio.wait_for(ready.wait(), 90)
        yield made
        stop.set()
        await asyncio.wait_for(task, 90)


async def test_a_pull_is_told_from_its_beginning_to_its_end(frontend: Frontend, tmp_path: Path) -> None:
    begun = await frontend.models.request("pull", NAME)
    assert (begun.pulls[0].model, begun.pulls[0].state) == (NAME, "running")
    heard = await frontend.hears(until=lambda progress: progress.state != "running")
    assert heard[0].status == "starting" and heard[-1].status == "success"
    assert {progress.total for progress in heard if progress.total} == {3_000_004}
    assert heard[-1].state == "done"
    listed = await frontend.models.request("list")
    assert [(model.name, model.server, model.size) for model in listed.models] == [
        ("tiny-Q4_K_M", "llama_server", 3_000_004)
    ]
    assert [pull.state for pull in listed.pulls] == ["done"]
    assert listed.chosen == "ollama/gemma4:12b"
    assert "no Ollama server answers" in listed.note


async def test_a_second_request_for_the_same_joins_the_pull_and_a_stop_ends_it(
    frontend: Frontend, hub: FakeHub
) -> None:
    hub.go_on = threading.Event()
    await frontend.models.request("pull", NAME)
    await asyncio.to_thread(hub.sending.wait, 30)
    assert (await frontend.models.request("pull", NAME)).pulls[0].state == "running"
    stopped = await frontend.models.request("stop", NAME)
    assert stopped.pulls[0].state == "stopped"
    assert (await frontend.hears(until=lambda progress: progress.state != "running"))[-1].state == "stopped"
    with pytest.raises(ParticipantRefused, match="is not being pulled"):
        await frontend.models.request("stop", NAME)
    hub.go_on.set()
    await frontend.models.request("pull", NAME)
    assert (await frontend.hears(until=lambda progress: progress.state != "running"))[-1].state == "done"


async def test_why_a_pull_failed_is_told(frontend: Frontend, hub: FakeHub) -> None:
    hub.status = 403
    await frontend.models.request("pull", NAME)
    failed = (await frontend.hears(until=lambda progress: progress.state != "running"))[-1]
    assert failed.state == "failed" and failed.error is not None
    assert (failed.error.kind, "HF_TOKEN" in failed.error.message) == ("unauthorised", True)


async def test_a_name_that_is_none_is_refused_at_once(frontend: Frontend) -> None:
    for verb, name in (("pull", " "), ("use", "other"), ("pull", "hf.co/nobody")):
        with pytest.raises(ParticipantRefused):
            await frontend.models.request(verb, name)


async def test_the_choice_is_written_and_seen(frontend: Frontend, settings: Path) -> None:
    await frontend.models.request("pull", NAME)
    await frontend.hears(until=lambda progress: progress.state == "done")
    used = await frontend.models.request("use", "tiny-Q4_K_M")
    assert (used.chosen, used.models[0].current) == ("llama_server/tiny-Q4_K_M", True)
    assert load_models([DEFAULTS, settings]).roles.chat == ("llama_server/tiny-Q4_K_M",)
    assert [model.current for model in (await frontend.models.request("list")).models] == [True]
    with pytest.raises(ParticipantRefused, match="model other is not here") as caught:
        await frontend.models.request("use", "other")
    assert caught.value.kind == "not_found"
