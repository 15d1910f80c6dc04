"""The client of the default model server: Ollama 0.12 or newer, over its HTTP API.

Chats are our own requests, because those of the `ollama` package drop tool-call ids, strip nested tool schemas and know
no `truncate` (0.6.3); the package does the rest (`ollama_calls.py`).
"""

from __future__ import annotations

import asyncio
import importlib
import re
from collections.abc import AsyncGenerator, Awaitable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, Unpack

import httpx
from pydantic import BaseModel

from local.core.errors import ModelError
from local.models.chat import (
    Degraded,
    Delta,
    Done,
    Incapable,
    Json,
    ModelInfo,
    ServerErrors,
    ThinkingDelta,
    ToolCall,
    Usage,
    ollama_errors,
)
from local.models.client import ConnectionLimits, ModelClient
from local.models.http import CONNECT_SECONDS, AnswerStream, Wait, json_object, read_call, token_scores, unclear
from local.models.settings import is_loopback

if TYPE_CHECKING:
    from ollama import AsyncClient, ShowResponse


# Requests to Ollama by its own package: its models, their capabilities, their vectors, and downloads.

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model in a server's memory: how many bytes it takes there, and how many of those on graphics cards."""

    name: str
    size: int
    in_vram: int = 0


class OllamaCalls:
    """One server, accessed by the `ollama` package, which is imported with the first call.

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
        """Return one vector for each text, in order."""
        client = await self._opened()
        answer = await self._within("/api/embed", model, client.embed(model, list(texts), keep_alive=keep_alive))
        return [list(map(float, vector)) for vector in answer.embeddings]

    async def show(self, model: str) -> ShowResponse:
        """Return the server's description of a model."""
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
        """Return the result of a call. The package's errors become ours: a refusal, no server, and an answer that is
        not Ollama's.
        """
        ollama = importlib.import_module("ollama")
        try:
            return await call
        except ollama.ResponseError as error:
            status = error.status_code if error.status_code > 0 else None
            raise self._errors.explain(error.error, status=status, model=model) from error
        except ConnectionError as error:
            raise self._errors.from_transport(httpx.ConnectError(str(error.__context__ or error))) from error
        except (ValueError, TypeError, AttributeError) as error:  # no JSON, or not in the expected form
            raise self._errors.bad_stream(f"an unexpected answer ({type(error).__name__}: {error!s:.120})") from error


_NANOSECONDS = 1e9
_DURATIONS = ("total", "load", "prompt_eval", "eval")


class OllamaModel(ModelClient[ModelInfo]):
    """A `ChatModel` on the Ollama server at `base_url` (see `normalise_host`).

    `keep_alive` is how long the server keeps a model in memory, in Ollama's words ("10m", seconds, -1 for ever); None
    leaves it to the server. Every failure is a `ModelError` of kind unreachable, timeout, stream_cut, bad_stream,
    bad_call, model_missing, context_overflow, overloaded, unsupported, out_of_memory, unauthorised, bad_request or
    server_error.
    """

    chat_path = "/api/chat"

    def __init__(
        self, base_url: str, *, keep_alive: str | int | None = None, **limits: Unpack[ConnectionLimits]
    ) -> None:
        super().__init__(ollama_errors(base_url), {"Accept": "application/x-ndjson"}, **limits)
        self._keep_alive: dict[str, str | int] = {} if keep_alive is None else {"keep_alive": keep_alive}
        seconds, transport = limits["timeout_seconds"], limits.get("transport")
        self._calls = OllamaCalls(self._errors, timeout_seconds=seconds, transport=transport)

    async def embed(self, model: str, texts: Sequence[str]) -> list[list[float]]:
        """Return one vector for each text, in order. Of a text that exceeds the context, Ollama embeds the
        beginning.
        """
        if not texts:
            return []
        vectors = await self._calls.embed(model, texts, self._keep_alive.get("keep_alive"))
        if len(vectors) != len(texts):
            raise self._errors.bad_stream(f"{len(vectors)} vectors for {len(texts)} texts")
        return vectors

    async def show(self, model: str) -> ModelInfo:
        """Return the server's description of a model; `ModelError(kind="model_missing")` if it does not have it."""
        answer = await self._calls.show(model)
        about = answer.modelinfo or {}
        length = about.get(f"{about.get('general.architecture')}.context_length")
        capabilities = frozenset(answer.capabilities or ())
        size = billions(about.get("general.parameter_count"), answer.details.parameter_size if answer.details else None)
        info = ModelInfo(model, capabilities, length if isinstance(length, int) else None, size)
        self._known[model] = info
        return info

    async def load(self, model: str, options: Mapping[str, Any]) -> None:
        """Load the model into memory, for the time of `keep_alive`: a chat without messages does that."""
        body = {"model": model, "messages": [], "options": dict(options), "stream": False} | self._keep_alive
        await self._call("POST", "/api/chat", _Loaded, body)

    async def unload(self, model: str) -> None:
        """Have the model in memory no longer; the next chat loads it again."""
        body = {"model": model, "messages": [], "stream": False, "keep_alive": 0}
        await self._call("POST", "/api/chat", _Loaded, body)

    async def models(self) -> list[str]:
        """Return the names of all pulled models, in the server's form (`gemma4:12b`)."""
        return list(await self._calls.pulled())

    async def pulled(self) -> dict[str, int | None]:
        """Return the sizes in bytes of all pulled models, by name; None if not reported."""
        return await self._calls.pulled()

    async def loaded(self) -> list[LoadedModel]:
        """The models that are in memory now, by Ollama's own word."""
        return await self._calls.loaded()

    async def version(self) -> str:
        """The server's version, `0.12.6`: the cheapest way to ask whether it is there."""
        return (await self._call("GET", "/api/version", _Version)).version

    async def pull(self, model: str) -> AsyncGenerator[Json, None]:
        """Pull a model; yields Ollama's progress: {"status": str, "digest"?: str, "total"?: bytes, "completed"?}."""
        status = ""
        steps = self._calls.pull(model, self._first_token_seconds, self._between_tokens_seconds)
        async with aclosing(steps):
            async for progress in steps:
                status = progress.get("status", "")
                yield progress
        if status != "success":
            raise ModelError(f"pulling {model} stopped at {status!r}; start it again", kind="stream_cut")

    async def close(self) -> None:
        """Close every connection."""
        await self._calls.close()
        await super().close()

    async def _look(self, model: str) -> ModelInfo:
        return self._known.get(model) or await self.show(model)

    def _request(
        self,
        known: ModelInfo,
        messages: Sequence[Json],
        *,
        tools: Sequence[Json],
        think: bool,
        options: Mapping[str, Any] | None,
    ) -> tuple[Json, list[Degraded]]:
        """`think` is sent to every model that can think, because left out it means on; one that cannot answers 400 to
        it, and one without tools to those. Without `truncate` and `shift` Ollama would silently cut the conversation,
        before or while it answers, when it does not fit into the context.
        """
        body: Json = {
            "model": known.name,
            "messages": list(messages),
            "stream": True,
            "truncate": False,
            "shift": False,
        }
        notes: list[Degraded] = []
        if options:
            body["options"] = dict(options)
        if "thinking" in known.capabilities:
            body["think"] = think
        elif think:
            notes.append(Incapable.of_thinking(known.name))
        if tools and "tools" in known.capabilities:
            body["tools"] = list(tools)
        elif tools:
            notes.append(Incapable.of_calling(known.name))
        return body | self._keep_alive, notes

    def _form(self, schema: Json | None) -> Json:
        return {} if schema is None else {"format": schema}

    def _answer(self, model: str, content_type: str) -> AnswerStream:
        self._check_type(content_type)
        return OllamaStream(model, self._errors)

    def _check_type(self, content_type: str) -> None:
        if "json" not in content_type:
            raise self._errors.bad_stream(f"{content_type} instead of a JSON stream")


_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([KMBT])", re.IGNORECASE)
_OF_A_BILLION = {"K": 1e-6, "M": 1e-3, "B": 1.0, "T": 1e3}


def billions(count: object, size: str | None) -> float | None:
    """Return the billions of parameters of a model: by their number, else by a size such as "4.0B"; None if unknown."""
    if isinstance(count, int | float) and count > 0:
        return count / 1e9
    said = _SIZE.fullmatch((size or "").strip())
    return float(said[1]) * _OF_A_BILLION[said[2].upper()] if said and float(said[1]) > 0 else None


class OllamaStream(AnswerStream):
    """The body of a streamed /api/chat. Thinking, content and calls count in every chunk, including the one with
    `done`.
    """

    def feed(self, data: bytes) -> Iterator[Delta]:
        """See `AnswerStream.feed`."""
        for line in self._lines.feed(data):
            if not line.strip():
                continue
            chunk = json_object(line, self._errors)
            self.heard = True
            yield from self._deltas(chunk)
            if self.done:
                return

    def end(self) -> Iterator[Delta]:
        """See `AnswerStream.end`."""
        yield from self.feed(b"\n")
        if not self.done:
            raise self._errors.cut(self._model)

    def _deltas(self, chunk: Json) -> list[Delta]:
        if "error" in chunk:
            raise self._errors.explain(chunk["error"], status=None, model=self._model)
        message = self._object(chunk.get("message") or {}, "a message")
        deltas: list[Delta] = []
        if thinking := self._text(message, "thinking"):
            deltas.append(ThinkingDelta(thinking))
        if content := self._text(message, "content"):
            deltas += self._tags.feed(content)
        deltas += [_tool_call(call, self._model) for call in self._items(message, "tool_calls")]
        deltas += token_scores(chunk, "logprobs")
        if chunk.get("done") is True:
            self.finished = self.done = True
            deltas += self._tags.close()
            deltas.append(_done(chunk))
        return deltas


def _tool_call(call: Any, model: str) -> ToolCall:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        raise unclear(f"{model} made a tool call that names no function: {call!r:.200}")
    return read_call(function.get("name"), function.get("arguments"), call.get("id"), model)


def _done(chunk: Json) -> Done:
    durations = {name: _number(chunk, f"{name}_duration") / _NANOSECONDS for name in _DURATIONS}
    usage = Usage(_number(chunk, "prompt_eval_count"), _number(chunk, "eval_count"), durations)
    return Done(usage, reason=str(chunk.get("done_reason") or "stop"), model=str(chunk.get("model") or ""))


def _number(chunk: Json, key: str) -> int:
    # Ollama leaves out zeros.
    value = chunk.get(key)
    return value if isinstance(value, int) else 0


class _Loaded(BaseModel):
    done: bool


class _Version(BaseModel):
    version: str
