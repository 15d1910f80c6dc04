"""Checks of the models that observers ask for: the system answers without them, but learns less."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from local.apps.doctor.finding import Finding, ok, warn
from local.config_models import ModelsConfig

EMBEDDING_MODEL = "nomic-embed-text"
_NAMED_IN = {"generator_b": "--model-b or system.yaml"}  # where not in a page of its own


@dataclass(frozen=True, slots=True)
class Observers:
    """By its participant's name the model that each observer has of its own, as its settings name it, and the model
    that embeds."""

    models: Mapping[str, str] = field(default_factory=dict)
    embedding: str = EMBEDDING_MODEL

    def at(self, provider: str, config: ModelsConfig, *, is_default: bool) -> Observers:
        """Those whose models are a provider's: written as `provider/model`, or as a mere model of the default one."""
        found = {}
        for who, name in self.models.items():
            named, slash, model = name.partition("/")
            if slash and named in config.providers:
                if named == provider:
                    found[who] = model
            elif is_default:
                found[who] = name
        return replace(self, models=found)


def check_observers(observers: Observers, there: Sequence[str]) -> list[Finding]:
    """The observers' own models are among those that are `there`."""
    return [_check_observer(who, model, there) for who, model in observers.models.items()]


def check_embeddings(observers: Observers, there: Sequence[str]) -> Finding:
    """The embedding model is there; it is optional, because one is bundled."""
    model = observers.embedding
    if _is_among(model, there):
        return ok("embeddings", f"{model} is pulled")
    return ok("embeddings", f"{model} is not pulled; optional, with 'ollama pull {model}'")


def _check_observer(who: str, model: str, there: Sequence[str]) -> Finding:
    if _is_among(model, there):
        return ok(who, f"{model} is there")
    text = f"{model} is not there, so that {who} has no model; there are: {', '.join(there[:10]) or 'none'}"
    place = _NAMED_IN.get(who, f"{who}.yaml")
    return warn(who, text, f"get it, as with 'ollama pull {model}', or name another in {place}")


def _is_among(model: str, there: Sequence[str]) -> bool:
    """As a server finds it: a name without a tag is that of the latest."""
    return model in there or f"{model}:latest" in there
