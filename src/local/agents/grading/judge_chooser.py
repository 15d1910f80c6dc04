"""Who judges where no judge is named: one made for it, if it is pulled and fits beside the model that answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from local.agents.grading.judgements import is_same_model
from local.config_models import Routing
from local.models.ollama import OllamaModel
from local.models.ollama_calls import LoadedModel
from local.models.server_address import is_loopback
from local.services.judging.profiles import ProfileName

MADE_FOR_JUDGING: Mapping[str, ProfileName] = {"prometheus": "prometheus2", "selene": "selene"}  # by a word in its name
NUM_CTX = 8192
SECONDS = 5.0
LOADED_PER_BYTE = 1.2  # what a model of so many bytes takes once it is loaded, with its window
SPARE_BYTES = 2_000_000_000  # for everything else that this machine is used for
HOW_ELSE = "`model` in critic.yaml decides otherwise"


@dataclass(frozen=True, slots=True)
class JudgeChoice:
    """`name` is the judge, None for the model that answers; `why` is for a person."""

    name: str | None
    why: str


@dataclass(frozen=True, slots=True)
class JudgeChooser:
    """Asks the Ollama server at `url`, which has the model `answering`. Its models are called `prefix` and their name;
    `free_memory` tells how many bytes its machine has left, None where nobody knows."""

    url: str
    answering: str
    prefix: str = ""
    free_memory: Callable[[], int | None] = lambda: None

    @classmethod
    def beside(cls, routing: Routing, answering: str) -> Self | None:
        """The one for the model that answers; None where that is not Ollama's."""
        provider, model = routing.locate(answering)
        endpoint = routing.endpoints[provider]
        if endpoint.kind != "ollama":
            return None
        prefix = "" if provider == routing.default else f"{provider}/"
        return cls(endpoint.url, model, prefix, _free_memory if is_loopback(endpoint.url) else lambda: None)

    async def choose(self) -> JudgeChoice:
        """Best asked after an answer: what answers is loaded then. Raises `ModelError`."""
        server = OllamaModel(
            self.url, first_token_seconds=SECONDS, between_tokens_seconds=SECONDS, timeout_seconds=SECONDS
        )
        try:
            pulled, loaded = await server.pulled(), await server.loaded()
        finally:
            await server.close()
        choice = choose_judge(self.answering, pulled, loaded, self.free_memory())
        return choice if choice.name is None else replace(choice, name=self.prefix + choice.name)


def choose_judge(
    answering: str, pulled: Mapping[str, int | None], loaded: Sequence[LoadedModel], free: int | None
) -> JudgeChoice:
    """The smallest model made for judging that is pulled, if both fit; sizes are bytes, of files in `pulled`."""
    judges = sorted((size, name) for name, size in pulled.items() if size and is_made_for_judging(name))
    if not judges:
        return JudgeChoice(None, "no model made for judging is pulled")
    if any(is_made_for_judging(answering) and is_same_model(answering, name) for _, name in judges):
        return JudgeChoice(None, f"{answering} is made for judging")
    size, judge = judges[0]
    here = {model.name: model for model in loaded}
    answerer = next((model for name, model in here.items() if is_same_model(name, answering)), None)
    if answerer and judge in here:
        return JudgeChoice(judge, f"{judge} and {answering} are both loaded")
    if answerer and answerer.in_vram:
        return JudgeChoice(None, f"how much graphics memory there is beside {answering} nobody tells; {HOW_ELSE}")
    if free is None:
        return JudgeChoice(None, f"how much memory the model server has left nobody tells; {HOW_ELSE}")
    yet_to_load = (
        0 if answerer else next((one or 0 for name, one in pulled.items() if is_same_model(name, answering)), 0)
    )
    needed = round(LOADED_PER_BYTE * (size + yet_to_load)) + SPARE_BYTES
    amounts = f"{needed / 1e9:.1f} GB for {judge} and what else there is, of {free / 1e9:.1f} GB that are free"
    return JudgeChoice(judge, amounts) if needed <= free else JudgeChoice(None, f"it would take {amounts}; {HOW_ELSE}")


def is_made_for_judging(name: str) -> bool:
    """By its name."""
    return any(word in name.lower() for word in MADE_FOR_JUDGING)


def _free_memory() -> int:
    """In bytes, on this machine."""
    import psutil

    return int(psutil.virtual_memory().available)
