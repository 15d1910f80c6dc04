"""Any server that speaks OpenAI's chat API: llama-server, vLLM, OpenRouter, Google's endpoint, OpenAI itself."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import httpx
from pydantic import BaseModel

from local.errors import ModelError
from local.models.answer_stream import AnswerStream
from local.models.chat import Degraded, Json, ModelInfo
from local.models.error_tables import openai_errors
from local.models.model_client import ConnectionLimits, ModelClient
from local.models.openai_dialects import LLAMA_SERVER, UNKNOWN, Known, find, known
from local.models.openai_request import chat_request, response_format
from local.models.openai_stream import OpenAIStream
from local.models.server_address import authorisation

log = logging.getLogger(__name__)

_NO_LIST = (404, 405, 501)


class OpenAIModel(ModelClient[Known]):
    """A `ChatModel` on the server whose API begins at `base_url` (see `normalise_base_url`).

    `api_key` is sent as a bearer token and shown nowhere. Every failure is a `ModelError` of the kinds that
    `OllamaModel` has, or of rate_limit, quota or filtered; `ModelBusy` says when to come back. Raises `ConfigError` for
    a key that is none.
    """

    chat_path = "/chat/completions"

    def __init__(self, base_url: str, *, api_key: str = "", **limits: Unpack[ConnectionLimits]) -> None:
        headers = {"Accept": "text/event-stream, application/json", **authorisation(api_key)}
        super().__init__(openai_errors(base_url, api_key), headers, **limits)
        self._root = base_url.removesuffix("/v1")

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

    async def listed(self) -> list[ModelInfo]:
        """What the server's list says of all models that it offers."""
        entries = (await self._call("GET", "/models", _Models)).data
        return [known(str(entry["id"]), entry, {}).info for entry in entries if entry.get("id")]

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

    def _request(
        self,
        known: Known,
        messages: Sequence[Json],
        *,
        tools: Sequence[Json],
        think: bool,
        options: Mapping[str, Any] | None,
    ) -> tuple[Json, list[Degraded]]:
        return chat_request(known, messages, tools=tools, think=think, options=options)

    def _form(self, schema: Json | None) -> Json:
        return response_format(schema)

    def _progress(self, known: Known) -> Json:
        return known.dialect.progress

    def _answer(self, model: str, content_type: str) -> AnswerStream:
        return OpenAIStream(model, self._errors, content_type)


class _Models(BaseModel):
    data: list[dict[str, Any]]


class _Props(BaseModel, extra="allow"):
    pass


class _Embedding(BaseModel):
    index: int
    embedding: list[float]


class _Embeddings(BaseModel):
    data: list[_Embedding]
