"""Any server that speaks OpenAI's chat API: llama-server, vLLM, OpenRouter, Google's endpoint, OpenAI itself."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

import httpx
from pydantic import BaseModel

from local.errors import ModelError
from local.models.chat import Delta, Json, ModelInfo
from local.models.error_tables import openai_errors
from local.models.model_http import M, ModelHttp, Shown, StreamedAnswer
from local.models.openai_dialects import LLAMA_SERVER, UNKNOWN, Known, find, known
from local.models.openai_request import chat_request
from local.models.openai_stream import OpenAIStream
from local.models.server_address import authorisation
from local.models.wishes import Wishes, response_format

log = logging.getLogger(__name__)

# After the model's last word, how long the usage and the end may take that some servers send and others do not.
_TRAILER_SECONDS = 1.0
_NO_LIST = (404, 405, 501)


class OpenAIModel:
    """A `ChatModel` on the server whose API begins at `base_url` (see `normalise_base_url`).

    `api_key` is sent as a bearer token and shown nowhere. `first_token_seconds` limits the wait for the first token of
    an answer, `between_tokens_seconds` each later silence (comments that keep the connection alive are silence, too),
    `timeout_seconds` every other request. Every failure is a `ModelError` of the kinds that `OllamaModel` has, or of
    rate_limit, quota or filtered; `ModelBusy` says when to come back. Raises `ConfigError` for a key that is none.
    """

    def __init__(
        self,
        base_url: str,
        *,
        first_token_seconds: float,
        between_tokens_seconds: float,
        timeout_seconds: float,
        api_key: str = "",
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self._errors = openai_errors(base_url, api_key)
        headers = {"Accept": "text/event-stream, application/json", **authorisation(api_key)}
        self._http = ModelHttp(self._errors, headers=headers, transport=transport)
        self._root = base_url.removesuffix("/v1")
        self._first_token_seconds = first_token_seconds
        self._between_tokens_seconds = between_tokens_seconds
        self._timeout_seconds = timeout_seconds
        self._known: dict[str, Known] = {}
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
        """See `ChatModel.chat`. What the model or its server cannot do is left out and told as `Degraded`."""
        body, notes = chat_request(await self._look(model), messages, tools=tools, think=think, options=options)
        wishes = Wishes(self._refused[model], form=response_format(format), logprobs=logprobs)
        for note in (*notes, *wishes.notes):
            yield note
        decoder: OpenAIStream | None = None
        while decoder is None:
            asked = body | wishes.granted
            log.debug("/chat/completions is sent: %s", Shown(asked))
            try:
                async with self._http.stream(
                    "/chat/completions", asked, model=model, first_seconds=self._first_token_seconds
                ) as answer:
                    wishes.answered()
                    decoder = OpenAIStream(model, self._errors, answer.content_type)
                    async with aclosing(self._deltas(decoder, answer)) as deltas:
                        async for delta in deltas:
                            yield delta
            except ModelError as error:
                left_out = wishes.refused(error) if decoder is None else None
                if left_out is None:
                    # The model may have been replaced by one with other capabilities.
                    self._known.pop(model, None)
                    raise
                yield left_out

    async def _deltas(self, decoder: OpenAIStream, answer: StreamedAnswer) -> AsyncGenerator[Delta, None]:
        while not decoder.done:
            heard = decoder.heard
            data = await (answer.rest() if decoder.finished else answer.read())
            log.debug("/chat/completions has answered: %s", data)
            for delta in decoder.feed(data) if data else decoder.end():
                yield delta
            if decoder.heard != heard:
                answer.allow(_TRAILER_SECONDS if decoder.finished else self._between_tokens_seconds)
        await answer.drain()

    async def embed(self, model: str, texts: Sequence[str]) -> list[list[float]]:
        """One vector for each text, in order."""
        if not texts:
            return []
        body = {"model": model, "input": list(texts), "encoding_format": "float"}
        entries = (await self._call("POST", "/embeddings", _Embeddings, body)).data
        if sorted(entry.index for entry in entries) != list(range(len(texts))):
            raise self._errors.bad_stream(f"{len(entries)} vectors for {len(texts)} texts")
        return [entry.embedding for entry in sorted(entries, key=lambda entry: entry.index)]

    async def show(self, model: str) -> ModelInfo:
        """What the server says of a model: no capabilities and no context length mean that it does not say.

        Raises `ModelError(kind="model_missing")` if the server does not list it.
        """
        listed = (await self._call("GET", "/models", _Models)).data
        entry = find(listed, model)
        if entry is None:
            there = ", ".join(str(entry.get("id")) for entry in listed[:10]) or "none"
            raise self._errors.explain(f"model {model} not found among {there}", status=None, model=model)
        found = known(model, entry, {})
        if found.dialect is LLAMA_SERVER:
            found = known(model, entry, await self._props(model))
        self._known[model] = found
        return found.info

    async def load(self, model: str, options: Mapping[str, Any]) -> None:
        """The API has no word for it: a server has its models in memory, or loads them when they are asked."""

    async def models(self) -> list[str]:
        """The names of all models that the server offers."""
        return [str(entry.get("id")) for entry in (await self._call("GET", "/models", _Models)).data]

    async def close(self) -> None:
        """Close every connection."""
        await self._http.close()

    async def _look(self, model: str) -> Known:
        """What is known of a model. Lists may be incomplete or absent: whether the model is there, its answer tells."""
        if model not in self._known:
            try:
                await self.show(model)
            except ModelError as error:
                if error.kind != "model_missing" and error.status not in _NO_LIST:
                    raise
                self._known[model] = Known(ModelInfo(model, frozenset()), UNKNOWN)
        return self._known[model]

    async def _props(self, model: str) -> Json:
        """What llama-server says of itself; a gateway may keep it from us, and then we know less."""
        path = str(httpx.URL(self._root + "/props", params={"model": model}))
        try:
            return (await self._call("GET", path, _Props)).model_dump()
        except ModelError as error:
            log.info("%s tells nothing about itself: %s", self._root, error)
            return {}

    async def _call(self, method: str, path: str, answer: type[M], body: Json | None = None) -> M:
        model = str((body or {}).get("model", ""))
        return await self._http.call(method, path, answer, body, model=model, seconds=self._timeout_seconds)


class _Models(BaseModel):
    data: list[dict[str, Any]]


class _Props(BaseModel, extra="allow"):
    pass


class _Embedding(BaseModel):
    index: int
    embedding: list[float]


class _Embeddings(BaseModel):
    data: list[_Embedding]
