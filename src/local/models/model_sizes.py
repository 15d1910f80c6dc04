"""How large the models are that a participant uses: as their servers say, or as the owner has stated."""

from __future__ import annotations

import logging
from collections.abc import Callable

from local.errors import ModelError
from local.models.chat import ChatModel, ModelInfo
from local.models.tool_selection import Tier, tier_of

log = logging.getLogger(__name__)


def _nothing(name: str) -> float | str | None:
    return None


class ModelSizes:
    """Asks the server of each model once for its size. Nothing is read from a name."""

    def __init__(self, model: ChatModel | None = None, stated: Callable[[str], float | str | None] = _nothing) -> None:
        """`stated(name)` is what the owner says of a model, in billions of parameters or as a tier, which comes before
        what its server says."""
        self._model, self._stated = model, stated
        self._known: dict[str, float | None] = {}

    def tier(self, name: str) -> Tier:
        """The tier of a model by what is known now; small until its server has answered."""
        stated = self._stated(name)
        if isinstance(stated, str):
            return Tier(stated)
        return tier_of(self._known.get(name) if stated is None else stated)

    def is_known(self, name: str) -> bool:
        """Whether the owner or the server has said something of that model, be it that the size is unknown."""
        return self._stated(name) is not None or name in self._known

    def learn(self, name: str, info: ModelInfo) -> None:
        """The server has described the model that goes by that name here."""
        self._known[name] = info.parameters

    async def ask(self, name: str) -> Tier:
        """The tier of a model. The server is asked where nothing is known yet, and again where it did not answer."""
        if self._model is not None and not self.is_known(name):
            try:
                self.learn(name, await self._model.show(name))
            except ModelError as error:
                log.info("the size of %s is not known, so that it counts as small: %s", name, error)
        return self.tier(name)
