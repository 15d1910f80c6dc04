"""What users other than the owner may use: the models they may choose, and the room for what is stored of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from pydantic import Field

from local.api.clients import BusRequests
from local.api.http import RequestRefused
from local.bus.messages import DEFAULT_MODEL
from local.core.attachments import Attachments
from local.core.config import Settings
from local.core.config_file import is_cloud
from local.core.errors import LocalError
from local.core.files import OWNER
from local.models.messages import ModelRecord, ModelRequest, ModelResult
from local.models.settings import load_models
from local.queries.session import LoCALSession

LOCAL, EVERY = "local", "*"  # in `models`, beside "default" and ids
MODEL_KEEPER, SECONDS = "model_keeper", 20.0  # longer than it waits for Ollama
MEGABYTE = 1_000_000
MEASURED_FOR = 60.0  # seconds; what is added meanwhile is counted


class GuestConfig(Settings):
    """The limits for each user besides the owner, under `users` in `api.yaml`; None is no limit."""

    models: tuple[str, ...] = (DEFAULT_MODEL, LOCAL)
    megabytes: int | None = Field(1000, ge=1)
    tokens_a_day: int | None = Field(2_000_000, ge=1)


NONE = ModelRecord(id="the default model", name="", server="ollama")


class NoRoom(LocalError):
    """The error for content that would exceed the room of a user."""

    kind = "too_large"


async def known_models(requests: BusRequests) -> list[ModelRecord]:
    """Return the chat models that there are; none without a model manager."""
    if not requests.expects(MODEL_KEEPER):
        return []
    found = await requests.ask(MODEL_KEEPER, ModelRequest(verb="list"), ModelResult, seconds=SECONDS)
    return [model for model in found.models if model.chat]


class Guests:
    """The rules for users besides the owner; no rule concerns the owner. `clock` returns monotonic seconds."""

    def __init__(
        self, config: GuestConfig, session: LoCALSession, requests: BusRequests, attachments: Attachments,
        layers: Sequence[Path], ollama_url: str = "", clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        """`ollama_url` is the address of an Ollama for which models.yaml has none."""
        self._config, self._session, self._requests, self._attachments = config, session, requests, attachments
        self._layers, self._ollama_url, self._clock = layers, ollama_url, clock
        self._measured: dict[str, tuple[float, int]] = {}  # by user: when, and the bytes

    async def choosable(self, models: Sequence[ModelRecord], user_id: str | None) -> list[ModelRecord]:
        """Those of the models that a user may choose. Raises `ConfigError`."""
        allowed = self._config.models
        if user_id in (None, OWNER) or EVERY in allowed:
            return list(models)
        local = await asyncio.to_thread(self._local, models) if LOCAL in allowed else ()
        return [
            model
            for model in models
            if model.id in allowed or (DEFAULT_MODEL in allowed and model.default) or model.id in local
        ]

    def has_default(self, user_id: str | None) -> bool:
        """Whether a user may ask the default model, whichever that is."""
        return user_id in (None, OWNER) or not {DEFAULT_MODEL, EVERY}.isdisjoint(self._config.models)

    async def require_default(self, user_id: str | None) -> None:
        """Raise `RequestRefused` (forbidden) if a user may not use the default model."""
        if not self.has_default(user_id):
            models = await known_models(self._requests)
            await self.require_model(next((each for each in models if each.default), NONE), user_id)

    async def require_model(self, model: ModelRecord, user_id: str | None) -> None:
        """Raise `RequestRefused` (forbidden) for a model that a user may not use. Raises `ConfigError`."""
        if not await self.choosable([model], user_id):
            allowed = ", ".join(self._config.models) or "none"
            text = f"model: {model.id} is not for other users than the owner, whose settings allow: {allowed}"
            raise RequestRefused("forbidden", f"{text} (users.models in api.yaml)", "model")

    async def require_room(self, user_id: str | None, more: int = 0, *, stores: bool = True) -> None:
        """Raise `NoRoom` if nothing is left of a user's room, or not that many bytes, which are counted if the caller
        `stores` them.
        """
        limit = self._config.megabytes
        if limit is None or user_id in (None, OWNER):
            return
        at, size = self._measured.get(user_id, (-MEASURED_FOR, 0))
        if self._clock() - at >= MEASURED_FOR:
            at, size = self._clock(), await self._size_of(user_id)
        if size + more > limit * MEGABYTE:
            self._measured.pop(user_id, None)  # something may be deleted now
            told = f"of your {limit} MB {size / MEGABYTE:,.1f} MB are in use"
            wanted = f", and this needs {more / MEGABYTE:,.1f} MB" if more else ""
            raise NoRoom(f"{told}{wanted}; delete conversations or files, or ask the owner for more (users.megabytes)")
        self._measured[user_id] = at, size + (more if stores else 0)

    async def _size_of(self, user_id: str) -> int:
        size = await asyncio.to_thread(self._attachments.size_of, user_id)
        with suppress(LocalError):  # a question is accepted while the generator is away
            size += int((await self._session.look_up("size", user_id))["bytes"])
        return size

    def _local(self, models: Sequence[ModelRecord]) -> set[str]:
        """The ids of those that run on the owner's machines."""
        providers, local = load_models(self._layers).providers, set[str]()
        for model in models:
            provider = providers.get(model.provider)
            if provider is None or provider.kind == "google_genai" or model.id.endswith(("-cloud", ":cloud")):
                continue
            if not is_cloud(provider.url or (self._ollama_url if provider.kind == "ollama" else "")):
                local.add(model.id)
        return local
