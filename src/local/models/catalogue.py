"""The models that a query can choose: those of every model server that is used, and why others cannot be chosen."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from local.bus.messages import DEFAULT_MODEL
from local.core.config_file import suggestion
from local.core.errors import BadRequest, LocalError, ModelError, NoSuchModel
from local.core.routing import Endpoint, ModelsConfig, Routing
from local.models.hub import ModelStock, StockedModel
from local.models.messages import ModelRecord
from local.models.ollama import OllamaModel
from local.models.router import open_client
from local.models.settings import DefaultModel, is_made_for_judging

if TYPE_CHECKING:
    from local.models.openai import OpenAIModel

SERVER_SECONDS = 5.0
LOAD_SECONDS = 120.0  # a large model comes from the disk
FRESH_SECONDS = 30.0  # for which a model that was seen counts as there
NAMED = 20  # models that a refusal names
STAND_IN = "stand_in"
NEEDS_START = "no running server has it; `local2 model use` makes it the one of the next start"

log = logging.getLogger(__name__)


class NotForChat(BadRequest):
    """The error for a model that is installed but does not answer questions."""

    kind = "bad_model"


class CannotHold(BadRequest):
    """The error for a model whose server alone decides what it has in memory."""

    kind = "bad_model"


class ServerSilent(LocalError):
    """The error for a model of a server that does not answer, so that it is unknown whether there is one."""

    kind = "unavailable"


@dataclass(slots=True)
class _Seen:
    """One server's latest answer, and its latest problem."""

    records: Sequence[ModelRecord] = ()
    problem: str = ""


@dataclass(slots=True)
class ModelCatalogue:
    """The models of all servers. It asks the servers each time and keeps the answers, for servers that do not answer.
    All models can chat except those for embeddings and those made for judging.
    """

    stock: ModelStock
    routing: Routing
    config: ModelsConfig
    default: DefaultModel
    _seen: dict[str, _Seen] = field(default_factory=dict)
    _capabilities: dict[tuple[str, str, int | None], tuple[str, ...]] = field(default_factory=dict)
    _looked_at: float = float("-inf")

    async def look(self) -> tuple[list[ModelRecord], str]:
        """Return all available models, and a note for a person on servers that could not be asked."""
        self.default.refresh()
        (stocked, note), _ = await asyncio.gather(self.stock.models(), self._ask_servers())
        self._looked_at = time.monotonic()
        records = [record for seen in self._seen.values() for record in seen.records]
        known = {(record.provider, record.name) for record in records}
        stored = [self._stored(model) for model in stocked]
        sizes = {(record.provider, record.name): record for record in stored}
        records = [self._judged(_with_file(record, sizes)) for record in records]
        records += [record for record in stored if (record.provider, record.name) not in known]
        problems = {seen.problem for seen in self._seen.values() if seen.problem} | {note}
        return records, "; ".join(sorted(filter(None, problems)))

    async def find(self, name: str) -> ModelRecord:
        """The model that a query means by `name`. Raises `NoSuchModel` with the nearest name and those that there are,
        `NotForChat`, `ServerSilent`."""
        self.default.refresh()
        if name in (DEFAULT_MODEL, self.default.name) or (name == "stand-in" and self._is_stand_in):
            return ModelRecord(id=self.default.name, name=self.default.name, server="ollama", default=True)
        found = _match(self._known(), name, self.routing.default) if self._is_fresh else None
        records: Sequence[ModelRecord] = ()
        if found is None:
            records, _ = await self.look()
            found = _match(records, name, self.routing.default)
        if found is None:
            raise self._missing(name, records)
        if not found.chat:
            raise NotForChat(f"{found.id} cannot be chosen for a query: {found.unfit}")
        return found

    async def hold(self, name: str, *, is_wanted: bool) -> ModelRecord:
        """Have a model in the memory of its server, or no longer. Raises `NoSuchModel`, `CannotHold`, `ModelError`."""
        records, _ = await self.look()
        found = _match(records, name, self.routing.default)
        if found is None:
            raise self._missing(name, records)
        endpoint = self.routing.endpoints.get(found.provider)
        if found.server != "ollama" or endpoint is None or found.loaded is None:
            raise CannotHold(f"{found.id} is loaded and unloaded by its server alone; only Ollama can be asked to")
        client = open_client(endpoint, timeout_seconds=LOAD_SECONDS, keep_alive=self.config.keep_alive)
        async with aclosing(_Closing(client)):
            assert isinstance(client, OllamaModel)
            await (client.load(found.name, {}) if is_wanted else client.unload(found.name))
        return next(record for record in (await self.look())[0] if record.id == found.id)

    def named(self, records: Sequence[ModelRecord], name: str) -> ModelRecord | None:
        """The one of these that is meant by a name."""
        return _match(records, name, self.routing.default)

    @property
    def _is_stand_in(self) -> bool:
        return self.routing.default == STAND_IN

    @property
    def _is_fresh(self) -> bool:
        return time.monotonic() - self._looked_at < FRESH_SECONDS

    def _known(self) -> list[ModelRecord]:
        return [self._judged(record) for seen in self._seen.values() for record in seen.records]

    def _missing(self, name: str, records: Sequence[ModelRecord]) -> LocalError:
        asked = {self.routing.default, name.partition("/")[0]}
        silent = [seen.problem for provider, seen in self._seen.items() if provider in asked and seen.problem]
        if silent:
            return ServerSilent(f"whether there is a model {name[:100]} cannot be told now: {'; '.join(silent)}")
        there = [record.id for record in records if record.chat] or [self.default.name]
        near = suggestion(name, there)
        hint = f"; {near} There are: " if near.startswith("did you mean") else "; there are: "
        more = f" and {len(there) - NAMED} more" if len(there) > NAMED else ""
        text = f"there is no model {name[:100]} here{hint}{', '.join(there[:NAMED])}{more}"
        return NoSuchModel(text, kind="model_missing")

    async def _ask_servers(self) -> None:
        endpoints = {} if self._is_stand_in else self.routing.endpoints
        await asyncio.gather(*(self._ask(name, endpoint) for name, endpoint in endpoints.items()))

    async def _ask(self, provider: str, endpoint: Endpoint) -> None:
        seen = self._seen.setdefault(provider, _Seen())
        try:
            async with asyncio.timeout(SERVER_SECONDS):
                seen.records = await self._records(provider, endpoint)
            seen.problem = ""
        except (ModelError, TimeoutError) as error:
            reason = str(error) or f"it has not answered within {SERVER_SECONDS:g} s"
            seen.problem = f"{provider} could not be asked for its models: {reason}"
        except LocalError as error:
            seen.problem = f"{provider} could not be asked for its models: {error}"
        if endpoint.only_model and not seen.records:  # it is there as soon as its server is
            seen.records = [self._record(provider, endpoint.only_model, "llama_server", loaded=False)]

    async def _records(self, provider: str, endpoint: Endpoint) -> list[ModelRecord]:
        client = open_client(endpoint, timeout_seconds=SERVER_SECONDS)
        async with aclosing(_Closing(client)):
            if isinstance(client, OllamaModel):
                return await self._of_ollama(provider, client)
            return await self._of_openai(provider, client, endpoint.only_model)

    async def _of_ollama(self, provider: str, server: OllamaModel) -> list[ModelRecord]:
        pulled, loaded = await asyncio.gather(server.pulled(), server.loaded())
        running = {each.name: each.size or None for each in loaded}
        known = await asyncio.gather(*(self._can(provider, server, name, size) for name, size in pulled.items()))
        return [
            self._record(provider, name, "ollama", size, capabilities, loaded=name in running).model_copy(
                update={"memory": running.get(name)}
            )
            for (name, size), capabilities in zip(pulled.items(), known, strict=True)
        ]

    async def _can(self, provider: str, server: OllamaModel, name: str, size: int | None) -> tuple[str, ...]:
        """A model's capabilities; asked once, as long as it has the same size."""
        key = (provider, name, size)
        if key not in self._capabilities:
            try:
                self._capabilities[key] = tuple(sorted((await server.show(name)).capabilities))
            except ModelError as error:
                log.info("%s does not say what %s can do: %s", provider, name, error)
                return ()
        return self._capabilities[key]

    async def _of_openai(self, provider: str, server: OpenAIModel, only: str | None) -> list[ModelRecord]:
        if only is not None:
            info, (path, size) = await server.show(only), self._file_of(provider)
            record = self._record(provider, only, "llama_server", size, tuple(sorted(info.capabilities)), loaded=True)
            return [record.model_copy(update={"path": path})]
        infos = await server.listed()
        return [self._record(provider, each.name, "openai", None, tuple(sorted(each.capabilities))) for each in infos]

    def _file_of(self, provider: str) -> tuple[str | None, int | None]:
        """The path and the size of the GGUF file that a server of ours was started with."""
        path = self.routing.config.providers[provider].model if provider in self.routing.config.providers else None
        try:
            return (str(path), path.stat().st_size) if path is not None else (None, None)
        except OSError:
            return str(path), None

    def _record(
        self, provider: str, name: str, server: str, size: int | None = None, capabilities: tuple[str, ...] = (), *,
        loaded: bool | None = None,
    ) -> ModelRecord:  # fmt: skip
        return ModelRecord.model_validate(
            {"id": self.routing.shown(provider, name), "name": name, "provider": provider, "server": server,
             "size": size, "capabilities": capabilities, "loaded": loaded}
        )  # fmt: skip

    def _stored(self, model: StockedModel) -> ModelRecord:
        """Return a model on the disk as one that a query cannot choose: its server's answer can change that."""
        kinds = self.config.providers.items()
        used = [name for name, each in kinds if each.kind == model.kind and name in self.routing.endpoints]
        provider = next(iter(used), model.kind)
        path = None if model.path is None else str(model.path)
        record = self._record(provider, model.name, model.kind, model.size)
        return record.model_copy(update={"path": path, "chat": False, "unfit": NEEDS_START, "loaded": False})

    def _judged(self, record: ModelRecord) -> ModelRecord:
        """With whether a query can choose it, and whether it is the default."""
        is_default = record.id == self.default.name
        unfit = "" if is_default else self._unfit(record)
        return record.model_copy(update={"default": is_default, "chat": not unfit, "unfit": unfit})

    def _unfit(self, record: ModelRecord) -> str:
        name, roles = f"{record.provider}/{record.name}", self.config.roles
        if name in (*roles.chat, *roles.fast, *roles.vision):
            return ""
        says = set(record.capabilities)
        embeds = "embedding" in says if says else "embed" in record.name.lower()
        if (embeds and "completion" not in says) or name in roles.embed:
            return "it makes embeddings and answers no questions"
        if is_made_for_judging(record.name) or name in roles.critic:
            return "it judges answers and gives none"
        return ""


class _Closing:
    """A client of a model server, as `aclosing` wants it."""

    def __init__(self, client: OllamaModel | OpenAIModel) -> None:
        self.aclose = client.close


def _with_file(record: ModelRecord, stored: Mapping[tuple[str, str], ModelRecord]) -> ModelRecord:
    file = stored.get((record.provider, record.name))
    if file is None:
        return record
    return record.model_copy(update={"size": record.size or file.size, "path": file.path})


def _match(records: Sequence[ModelRecord], name: str, default: str) -> ModelRecord | None:
    """By its id, by provider/name, or by its name alone: that of the default provider before others."""
    for wanted in (name, f"{name}:latest"):
        for record in records:
            if wanted in (record.id, f"{record.provider}/{record.name}"):
                return record
        named = [record for record in records if record.name == wanted]
        if named:
            return min(named, key=lambda record: (not record.chat, record.provider != default))
    return None
