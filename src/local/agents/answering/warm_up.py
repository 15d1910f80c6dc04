"""Looks at an agent's model when the agent starts, and has it loaded, so that the first query need not wait; looks
again while there is a problem with it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from local.errors import ModelError
from local.models.chat import ChatModel, ModelInfo

log = logging.getLogger(__name__)


LOOK_AGAIN_SECONDS = 5.0


class WarmUp:
    """`details` says for the status beat how far it is: load (loading, loaded), or the problem there was."""

    def __init__(self, model: ChatModel, name: str, options: Mapping[str, Any]) -> None:
        self._model, self._name, self._options = model, name, options
        self.details: dict[str, str] = {}
        self._has_problem = asyncio.Event()

    async def watch(self, warm_up: Callable[[], Awaitable[object]]) -> None:
        """`warm_up()`, and again every few seconds for as long as there is a problem, until cancelled."""
        await warm_up()
        while await self._has_problem.wait():
            await asyncio.sleep(LOOK_AGAIN_SECONDS)
            self._has_problem.clear()
            await warm_up()

    def turn_to(self, name: str) -> None:
        """Another model answers from now on: look at that one."""
        self._name = name
        self._has_problem.set()

    def away(self, reason: str) -> None:
        """A call has found out that no model server answers."""
        self._note(reason)

    async def run(self, learn: Callable[[ModelInfo], object]) -> None:
        """Say at once what the first query would run into. `learn` is told what the server knows of the model."""
        if not await self.look(learn):
            return
        try:
            self.details = {"load": "loading"}
            await self._model.load(self._name, self._options)
            self.details = {"load": "loaded"}
        except ModelError as error:
            self._tell(str(error))

    async def look(self, learn: Callable[[ModelInfo], object]) -> bool:
        """Tell `learn` what the server knows of the model, without having it loaded; False if there is none."""
        try:
            learn(await self._model.show(self._name))
        except ModelError as error:
            self._tell(str(error))
            return False
        self.details = {}
        return True

    def _tell(self, problem: str) -> None:
        if self.details != {"problem": problem}:
            log.warning("%s", problem)
        self._note(problem)

    def _note(self, problem: str) -> None:
        self.details = {"problem": problem}
        self._has_problem.set()
