"""The participant `model_keeper`: lists the models, pulls further ones, and stores which of them answers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Self

from pydantic import SecretStr

from local.bus.envelope import Envelope
from local.bus.message import ErrorInfo, Message
from local.core.errors import LocalError, NoSuchModel
from local.core.routing import ModelsConfig, Routing
from local.models.catalogue import NEEDS_START, ModelCatalogue, NotForChat
from local.models.hub import FOLDER, ModelStock, PullStep
from local.models.messages import ModelProgress, ModelRecord, ModelRequest, ModelResult
from local.models.settings import DefaultModel, choose_model, chosen_model, gguf_files
from local.runtime.participant import Kind, Participant, Resources, on

REQUESTS_AT_ONCE = 8
TELL_SECONDS = 0.5
ENDED_KEPT = 20


class ModelManagerConfig(ModelsConfig):
    """`models.yaml`, which several participants read, and the user's token for the hub."""

    hf_token: SecretStr = SecretStr("")


class ModelManager(Participant):
    """The participant that lists, pulls and chooses models. It has no state to lose: models are on the disk, and an
    interrupted pull is resumed."""

    name = "model_keeper"
    kind = Kind.SERVICE
    settings = "models"
    Config = ModelManagerConfig
    publishes = (ModelProgress,)

    def __init__(
        self,
        config: ModelManagerConfig,
        stock: ModelStock,
        layers: Sequence[Path],
        catalogue: ModelCatalogue,
        answering: str = "",
    ) -> None:
        """`answering` is the model that answers where the settings choose none, as provider/model."""
        super().__init__(config)
        self._stock, self._layers, self._answering = stock, layers, answering
        self._catalogue, self._routing = catalogue, catalogue.routing
        self._pulls: dict[str, ModelProgress] = {}  # by name, the latest last
        self._tasks: dict[str, asyncio.Task[None]] = {}

    @classmethod
    def build(cls, config: ModelManagerConfig, resources: Resources) -> Self:
        """Keep GGUF files in the data directory."""
        folder, token = resources.data_dir / FOLDER, config.hf_token.get_secret_value()
        stock = ModelStock(folder, resources.ollama_url, config.hub_url, token, partial(gguf_files, resources.layers))
        routing = resources.routing or Routing(endpoints={}, default="")
        name = routing.first("chat", resources.chat_model) if routing.endpoints else resources.chat_model
        catalogue = ModelCatalogue(stock, routing, config, DefaultModel(routing, resources.layers, name))
        return cls(config, stock, resources.layers, catalogue, _answering(resources))

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Cancel the pulls at the end; their downloaded parts are kept."""
        try:
            yield
        finally:
            for task in self._tasks.values():
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    @on(ModelRequest, concurrency=REQUESTS_AT_ONCE)
    async def answer(self, request: ModelRequest, envelope: Envelope) -> ModelResult:
        """Answer a request about models."""
        match request.verb:
            case "list":
                return await self._list()
            case "find":
                return ModelResult(verb="find", models=(await self._catalogue.find(request.model.strip()),))
            case "pull":
                return self._pull(request.model.strip())
            case "stop":
                return await self._stop(request.model.strip())
            case "use":
                return await self._use(request.model.strip())
            case "load" | "unload" as verb:
                held = await self._catalogue.hold(request.model.strip(), is_wanted=verb == "load")
                return ModelResult(verb=verb, models=(held,))

    def error_reply(self, message: Message, error: Exception) -> Message | None:
        """Why a request was not done."""
        if not isinstance(message, ModelRequest):
            return None
        return ModelResult(verb=message.verb, error=ErrorInfo.of(error))

    def details(self) -> dict[str, str]:
        """Return the pulls under way."""
        return {name: _in_words(pull) for name, pull in self._pulls.items() if pull.state == "running"}

    async def _list(self) -> ModelResult:
        models, note = await self._catalogue.look()
        chosen = chosen_model(self._layers) or self._answering
        records = tuple(_marked(model, chosen) for model in models)
        return ModelResult(verb="list", models=records, pulls=tuple(self._pulls.values()), chosen=chosen, note=note)

    def _pull(self, name: str) -> ModelResult:
        self._stock.require_name(name)
        if name not in self._tasks:
            self._publish(ModelProgress(model=name, status="starting"))
            task = asyncio.create_task(self._run(name), name=f"pull {name}")
            self._tasks[name] = task
            task.add_done_callback(lambda _: self._tasks.pop(name))
        return ModelResult(verb="pull", pulls=(self._pulls[name],))

    async def _stop(self, name: str) -> ModelResult:
        task = self._tasks.get(name)
        if task is None:
            raise NoSuchModel(f"{name} is not being pulled", kind="model_missing")
        task.cancel()
        await asyncio.wait({task})
        return ModelResult(verb="stop", pulls=(self._pulls[name],))

    async def _use(self, name: str) -> ModelResult:
        model = await self._to_use(name)
        path = Path(model.path) if model.path else None
        provider = model.provider if model.provider in self._routing.config.providers else None
        await asyncio.to_thread(choose_model, self._layers, model.server, model.name, path, provider)
        chosen = chosen_model(self._layers)
        at_once = self._routing.serves(chosen) and not self._routing.is_fixed
        return ModelResult(verb="use", models=(_marked(model, chosen),), chosen=chosen, at_once=at_once)

    async def _to_use(self, name: str) -> ModelRecord:
        """The model of a name, or in the file at that path. Raises `NoSuchModel`, `NotForChat`."""
        records, _ = await self._catalogue.look()
        found = self._catalogue.named(records, name)
        if found is None:
            stocked = await self._stock.find(name)
            path = None if stocked.path is None else str(stocked.path)
            return ModelRecord(name=stocked.name, server=stocked.kind, size=stocked.size, path=path)
        if not found.chat and found.unfit != NEEDS_START:
            raise NotForChat(f"{found.id} cannot answer by default: {found.unfit}")
        return found

    async def _run(self, name: str) -> None:
        """Run one pull, publish its progress, and in any case its end."""
        latest, told_at = self._pulls[name], 0.0
        try:
            async for step in self._stock.pull(name):
                was, latest = latest, _progress(name, step)
                self._pulls[name] = latest
                if latest.status != was.status or time.monotonic() - told_at >= TELL_SECONDS:
                    told_at = time.monotonic()
                    self._publish(latest)
            self._publish(latest.model_copy(update={"state": "done"}))
        except asyncio.CancelledError:
            self._publish(latest.model_copy(update={"state": "stopped"}))
            raise
        except LocalError as error:
            self._publish(latest.model_copy(update={"state": "failed", "error": ErrorInfo.of(error)}))

    def _publish(self, progress: ModelProgress) -> None:
        self._pulls.pop(progress.model, None)
        self._pulls[progress.model] = progress
        ended = [name for name, pull in self._pulls.items() if pull.state != "running"]
        for name in ended[:-ENDED_KEPT]:
            del self._pulls[name]
        self.bus.post(progress)


def _answering(resources: Resources) -> str:
    """Return the answering model; for the stand-in the one that Ollama would be asked for."""
    if resources.routing is None:
        return ""
    provider, model = resources.routing.locate(resources.routing.first("chat", resources.chat_model))
    return f"{'ollama' if resources.model_backend == 'stand_in' else provider}/{model}"


def _marked(model: ModelRecord, chosen: str) -> ModelRecord:
    """With whether it is the one of the next start."""
    provider, _, name = chosen.partition("/")
    is_current = name == model.name and model.provider in (provider, "")
    return model.model_copy(update={"current": is_current})


def _progress(name: str, step: PullStep) -> ModelProgress:
    return ModelProgress(model=name, status=step.status, completed=step.completed, total=step.total)


def _in_words(pull: ModelProgress) -> str:
    return f"{pull.status} {pull.completed} of {pull.total} bytes" if pull.total else pull.status
