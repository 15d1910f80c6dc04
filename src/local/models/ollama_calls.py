"""What is asked of Ollama by its own package: which models there are, what they can do, their vectors, and to get one.

Chats are ours (`ollama.py`): the package's drops tool-call ids, strips nested tool schemas and knows no `truncate`.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncGenerator, Awaitable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import httpx

from local.models.chat import Json
from local.models.model_errors import ServerErrors
from local.models.model_http import CONNECT_SECONDS, Wait
from local.models.server_address import is_loopback

if TYPE_CHECKING:
    from ollama import AsyncClient, ShowResponse

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model in a server's memory: how many bytes it takes there, and how many of those on graphics cards."""

    name: str
    size: int
    in_vram: int = 0


class OllamaCalls:
    """One server, by the `ollama` package, which is imported with the first call: whoever makes none goes without.

    Every failure is a `ModelError`. `timeout_seconds` limits each call, and each silence while a model is pulled.
    """

    def __init__(
        self, errors: ServerErrors, *, timeout_seconds: float, transport: httpx.AsyncBaseTransport | None = None
    ) -> None:
        self._errors, self._timeout_seconds, self._transport = errors, timeout_seconds, transport
        self._client: AsyncClient | None = None

    async def close(self) -> None:
        """Close every connection."""
        if self._client is not None:
            await self._client.close()  # type: ignore[no-untyped-call]

    async def embed(self, model: str, texts: Sequence[str], keep_alive: str | int | None) -> list[list[float]]:
        """One vector for each text, in order."""
        client = await self._opened()
        answer = await self._within("/api/embed", model, client.embed(model, list(texts), keep_alive=keep_alive))
        return [list(map(float, vector)) for vector in answer.embeddings]

    async def show(self, model: str) -> ShowResponse:
        """What the server knows of a model."""
        return await self._within("/api/show", model, (await self._opened()).show(model))

    async def pulled(self) -> dict[str, int | None]:
        """The sizes in bytes of all models that are pulled, by name."""
        listed = await self._within("/api/tags", "", (await self._opened()).list())
        return {entry.model: entry.size for entry in listed.models if entry.model is not None}

    async def loaded(self) -> list[LoadedModel]:
        """The models that are in memory now."""
        running = await self._within("/api/ps", "", (await self._opened()).ps())
        found = [(entry.model or entry.name or "", entry.size or 0, entry.size_vram or 0) for entry in running.models]
        return [LoadedModel(*each) for each in found]

    async def pull(self, model: str, first_seconds: float, between_seconds: float) -> AsyncGenerator[Json, None]:
        """The server's progress; its beginning may take `first_seconds`, each later silence `between_seconds`."""
        steps = await (await self._opened()).pull(model, stream=True)
        wait = Wait(self._errors, "/api/pull", first_seconds)
        async with aclosing(steps):  # type: ignore[type-var]  # it is a generator, but not declared as one
            while (step := await self._explained(model, wait.until(anext(steps, None)))) is not None:
                yield step.model_dump(exclude_none=True)
                wait.allow(between_seconds)

    async def _opened(self) -> AsyncClient:
        if self._client is None:
            ollama = await asyncio.to_thread(importlib.import_module, "ollama")
        if self._client is None:  # still: others may have waited for the package, too
            local = is_loopback(self._errors.server)
            self._client = ollama.AsyncClient(
                self._errors.server,
                transport=self._transport,
                timeout=httpx.Timeout(None, connect=CONNECT_SECONDS),
                verify=self._errors.server.startswith("https:"),
                trust_env=not local,
                follow_redirects=False,
            )
        return self._client

    async def _within(self, path: str, model: str, call: Awaitable[T]) -> T:
        return await self._explained(model, Wait(self._errors, path, self._timeout_seconds).until(call))

    async def _explained(self, model: str, call: Awaitable[T]) -> T:
        """What a call returns. The package's errors become ours: a refusal, nobody there, and no answer of Ollama's."""
        ollama = importlib.import_module("ollama")
        try:
            return await call
        except ollama.ResponseError as error:
            status = error.status_code if error.status_code > 0 else None
            raise self._errors.explain(error.error, status=status, model=model) from error
        except ConnectionError as error:
            raise self._errors.from_transport(httpx.ConnectError(str(error.__context__ or error))) from error
        except (ValueError, TypeError, AttributeError) as error:  # no JSON, or none of the form that it should have
            raise self._errors.bad_stream(f"an unexpected answer ({type(error).__name__}: {error!s:.120})") from error
