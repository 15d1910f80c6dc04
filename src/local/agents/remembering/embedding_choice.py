"""Chooses what embeds: the model server's own model if it has one, else the one that comes with the program."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from functools import partial

from local.agents.leases import Leases
from local.errors import ModelError
from local.models.chat import ChatModel
from local.services.embeddings.embedder import Embedder, ServedEmbedder
from local.services.embeddings.minilm import MiniLmEmbedder
from local.services.engrams.service import EngramService

log = logging.getLogger(__name__)

RETRY_SECONDS = 30.0


class EmbeddingChoice:
    """Made once for a process: vectors of two models cannot be compared, so nobody changes over while it runs.

    A server that does not answer is waited for if its model has made the vectors there are, as all of them would have
    to be made anew, twice. `problem` says so meanwhile.
    """

    def __init__(self, model: ChatModel, name: str, leases: Leases, *, is_served: bool) -> None:
        """`is_served` is False where the server's vectors mean nothing."""
        self._model, self._name, self._leases, self._is_served = model, name, leases, is_served
        self._chosen: Embedder | None = None
        self.problem = ""

    async def run(self, engrams: EngramService) -> None:
        """Choose, and have the memory use it."""
        while True:
            try:
                self._chosen = await self._choose(engrams)
                engrams.use(self._chosen)
                self.problem = ""
                return
            except ModelError as error:
                log.warning("words alone are searched until the embedding model answers: %s", error)
                self.problem = str(error)
                await asyncio.sleep(RETRY_SECONDS)

    async def embed(self, texts: Sequence[str]) -> tuple[str, tuple[tuple[float, ...], ...]]:
        """The name of the chosen model and its vectors of these texts, each of length 1. Raises `ModelError`."""
        if self._chosen is None:
            raise ModelError(self.problem or "the embedding model is not chosen yet; try again", kind="unavailable")
        return self._chosen.name, tuple(map(tuple, (await self._chosen.embed_documents(texts)).tolist()))

    async def _choose(self, engrams: EngramService) -> Embedder:
        if not self._is_served:
            return MiniLmEmbedder()
        try:
            return await ServedEmbedder.connect(self._model.embed, self._name, in_background=self._in_background)
        except ModelError as error:
            if error.kind != "model_missing" and await engrams.embedded_by() == self._name:
                raise
            log.info("memories are embedded by the bundled model: %s", error)
            return MiniLmEmbedder()

    async def _in_background(self, model: str, texts: Sequence[str]) -> list[list[float]]:
        return await self._leases.in_background(model, "embedding", partial(self._model.embed, model, texts))
