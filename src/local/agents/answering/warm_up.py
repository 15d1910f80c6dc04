"""Looks at an agent's model when the agent starts, and has it loaded, so that the first query need not wait."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from local.errors import ModelError
from local.models.chat import ChatModel, ModelInfo

log = logging.getLogger(__name__)


class WarmUp:
    """`details` says for the status beat how far it is: load (loading, loaded), or the problem there was."""

    def __init__(self, model: ChatModel, name: str, options: Mapping[str, Any]) -> None:
        self._model, self._name, self._options = model, name, options
        self.details: dict[str, str] = {}

    async def run(self, learn: Callable[[ModelInfo], object]) -> None:
        """Say at once what the first query would run into. `learn` is told what the server knows of the model."""
        if not await self.look(learn):
            return
        try:
            self.details = {"load": "loading"}
            await self._model.load(self._name, self._options)
            self.details = {"load": "loaded"}
        except ModelError as error:
            self._tell(error)

    async def look(self, learn: Callable[[ModelInfo], object]) -> bool:
        """Tell `learn` what the server knows of the model, without having it loaded; False if there is none."""
        try:
            learn(await self._model.show(self._name))
        except ModelError as error:
            self._tell(error)
            return False
        return True

    def _tell(self, error: ModelError) -> None:
        self.details = {"problem": str(error)}
        log.warning("%s", error)
