"""The model server we expect by default: Ollama 0.12 or newer, spoken to over its own HTTP API.

The `ollama` package is not used here: its chat drops tool-call ids, strips nested tool schemas and knows no `truncate`
(0.6.3), and importing it costs each process 0.3 s.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx
from pydantic import BaseModel

from local.errors import ModelError
from local.models.answer_parts import LineBuffer, json_object
from local.models.chat import Degraded, Delta, Json, ModelInfo
from local.models.error_tables import ollama_errors
from local.models.model_http import M, ModelHttp, Shown, StreamedAnswer
from local.models.ollama_stream import OllamaStream
from local.models.wishes import Wishes

log = logging.getLogger(__name__)


class OllamaModel:
    """A `ChatModel` on the Ollama server at `base_url` (see `normalise_host`).

    `first_token_seconds` limits the wait for the beginning of a chat answer (loading the model and reading the prompt
    included), `between_tokens_seconds` each later silence, `timeout_seconds` every other request. `keep_alive` is how
    long the server keeps a model in memory, in Ollama's words ("10m", seconds, -1 for ever); None leaves it to the
    server. Every failure is a `ModelError` of kind unreachable, timeout, stream_cut, bad_stream, bad_call,
    model_missing, context_overflow, overloaded, unsupported, out_of_memory, unauthorised, bad_request or server_error.
    """

    def __init__(
        self,
        base_url: str,
        *,
        first_token_seconds: float,
        between_tokens_seconds: float,
        timeout_seconds: float,
        keep_alive: str | int | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._errors = ollama_errors(base_url)
        self._http = ModelHttp(self._errors, headers={"Accept": "application/x-ndjson"}, transport=transport)
        self._server = base_url
        self._first_token_seconds = first_token_seconds
        self._between_tokens_seconds = between_tokens_seconds
        self._timeout_seconds = timeout_seconds
        self._keep_alive = {} if keep_alive is None else {"keep_alive": keep_alive}
        self._infos: dict[str, ModelInfo] = {}
        self._refused: defaultdict[str, set[str]] = defaultdict(set)

    async def chat(
        self,
        model: str,
        messages: Sequence[Json],
        *,
        tools: Sequence[Json] = (),
        think: bool = False,
        options: Mapping[str, Any] | None = None,
        format: Json | None = None,
        logprobs: bool = False,
    ) -> AsyncGenerator[Delta, None]:
        """See `ChatModel.chat`. What the model cannot do is left out of the request and told as `Degraded`."""
        info = self._infos.get(model) or await self.show(model)
        body, notes = chat_request(info, messages, tools=tools, think=think, options=options)
        wishes = Wishes(self._refused[model], form={} if format is None else {"format": format}, logprobs=logprobs)
        for note in (*notes, *wishes.notes):
            yield note
        decoder = OllamaStream(model, self._server)
        while not decoder.done:
            try:
                async with self._stream(model, body | wishes.granted) as answer:
                    wishes.answered()
                    while not decoder.done:
                        data = await answer.read()
                        log.debug("/api/chat has answered: %s", data)
                        for delta in decoder.feed(data) if data else decoder.end():
                            yield delta
                        if decoder.started:
                            answer.allow(self._between_tokens_seconds)
                    await answer.drain()
            except ModelError as error:
                left_out = None if decoder.started else wishes.refused(error)
                if left_out is None:
                    # The model may have been removed or replaced by one with other capabilities.
                    self._infos.pop(model, None)
                    raise
                yield left_out

    async def embed(self, model: str, texts: Sequence[str]) -> list[list[float]]:
        """One vector for each text, in order. Ollama embeds the beginning of a text that exceeds the context."""
        if not texts:
            return []
        body = {"model": model, "input": list(texts)} | self._keep_alive
        vectors = (await self._call("POST", "/api/embed", _Embeddings, body)).embeddings
        if len(vectors) != len(texts):
            raise self._errors.bad_stream(f"{len(vectors)} vectors for {len(texts)} texts")
        return vectors

    async def show(self, model: str) -> ModelInfo:
        """What the server knows of a model; `ModelError(kind="model_missing")` if it does not have it."""
        answer = await self._call("POST", "/api/show", _Description, {"model": model})
        length = answer.model_info.get(f"{answer.model_info.get('general.architecture')}.context_length")
        info = ModelInfo(model, frozenset(answer.capabilities), length if isinstance(length, int) else None)
        self._infos[model] = info
        return info

    async def load(self, model: str, options: Mapping[str, Any]) -> None:
        """Have the model in memory, for as long as `keep_alive` says: a chat without messages does that."""
        body = {"model": model, "messages": [], "options": dict(options), "stream": False} | self._keep_alive
        await self._call("POST", "/api/chat", _Loaded, body)

    async def models(self) -> list[str]:
        """The names of all models that are pulled, as the server gives them (`gemma4:12b`)."""
        return [entry.model for entry in (await self._call("GET", "/api/tags", _Tags)).models]

    async def version(self) -> str:
        """The server's version, `0.12.6`: the cheapest way to ask whether it is there."""
        return (await self._call("GET", "/api/version", _Version)).version

    async def pull(self, model: str) -> AsyncGenerator[Json, None]:
        """Pull a model; yields Ollama's progress: {"status": str, "digest"?: str, "total"?: bytes, "completed"?}."""
        lines = LineBuffer(self._errors)
        async with self._http.stream(
            "/api/pull", {"model": model}, model=model, first_seconds=self._first_token_seconds
        ) as answer:
            self._check_type(answer)
            status = ""
            while data := await answer.read():
                for progress in (json_object(line, self._errors) for line in lines.feed(data) if line.strip()):
                    if "error" in progress:
                        raise self._errors.explain(progress["error"], status=None, model=model)
                    status = progress.get("status", "")
                    yield progress
                answer.allow(self._between_tokens_seconds)
        if status != "success":
            raise ModelError(f"pulling {model} stopped at {status!r}; start it again", kind="stream_cut")

    async def close(self) -> None:
        """Close every connection."""
        await self._http.close()

    @asynccontextmanager
    async def _stream(self, model: str, body: Json) -> AsyncIterator[StreamedAnswer]:
        log.debug("/api/chat is sent: %s", Shown(body))
        limit = self._first_token_seconds
        async with self._http.stream("/api/chat", body | self._keep_alive, model=model, first_seconds=limit) as answer:
            self._check_type(answer)
            yield answer

    def _check_type(self, answer: StreamedAnswer) -> None:
        if "json" not in answer.content_type:
            raise self._errors.bad_stream(f"{answer.content_type} instead of a JSON stream")

    async def _call(self, method: str, path: str, answer: type[M], body: Json | None = None) -> M:
        model = str((body or {}).get("model", ""))
        return await self._http.call(method, path, answer, body, model=model, seconds=self._timeout_seconds)


class _Description(BaseModel):
    capabilities: list[str] = []
    model_info: dict[str, Any] = {}


class _Tag(BaseModel):
    model: str


class _Tags(BaseModel):
    models: list[_Tag]


class _Loaded(BaseModel):
    done: bool


class _Version(BaseModel):
    version: str


class _Embeddings(BaseModel):
    embeddings: list[list[float]]


def chat_request(
    info: ModelInfo,
    messages: Sequence[Json],
    *,
    tools: Sequence[Json],
    think: bool,
    options: Mapping[str, Any] | None,
) -> tuple[Json, list[Degraded]]:
    """The body of /api/chat for what this model can do, and what had to be left out.

    `think` is sent to every model that can think, because left out it means on; one that cannot answers 400 to it, and
    one without tools to those. Without `truncate` and `shift` Ollama would silently cut the conversation, before or
    while it answers, when it does not fit into the context.
    """
    body: Json = {"model": info.name, "messages": list(messages), "stream": True, "truncate": False, "shift": False}
    notes: list[Degraded] = []
    if options:
        body["options"] = dict(options)
    if "thinking" in info.capabilities:
        body["think"] = think
    elif think:
        notes.append(Degraded(f"{info.name} cannot think aloud; it answers without"))
    if tools and "tools" in info.capabilities:
        body["tools"] = list(tools)
    elif tools:
        notes.append(Degraded(f"{info.name} cannot call tools; it answers without"))
    return body, notes
