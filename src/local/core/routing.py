"""The model servers, the roles of their models, and how a participant reaches them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import Field, SecretStr, ValidationInfo, field_validator, model_validator

from local.core.config import Settings
from local.core.config_file import MARK, NAME, NAMES, is_cloud, name_in, suggestion
from local.core.errors import ConfigError

Role = Literal["chat", "fast", "vision", "critic", "embed"]
TierName = Literal["small", "mid", "large"]
Kind = Literal["ollama", "openai", "google_genai", "llama_server"]

CACHE = ("--cache-ram", "-cram")  # llama-server's option: MiB of memory for prompts that it has read
CACHE_MIB = 1024  # what we set: for prompts of conversations that wait for their next question

_OLD_TIERS = {"weak": "small", "frontier": "large"}  # as max_tools named them before
CLOUD_MODELS = ("-cloud", ":cloud")  # the ends of names of models that Ollama runs on other people's machines
OPT_IN = "conversations and memories would leave your machines; write allow_cloud: true if you want that"
_KEYS: Mapping[str, frozenset[str]] = {
    "ollama": frozenset({"url", "allow_cloud", "program", "start"}),
    "openai": frozenset({"url", "allow_cloud", "api_key_variable", "api_key"}),
    "google_genai": frozenset({"url", "api_key_variable", "api_key"}),  # to name it is to want that it leaves
    "llama_server": frozenset({"program", "model", "args", "port", "minimum_build", "start_seconds"}),
}


def option(args: Sequence[str], *names: str) -> str:
    """The value of an option on a command line, by any of its names: the last one; empty if it is not there."""
    value = ""
    for argument, following in pairwise((*args, "")):
        name, equals, same = argument.partition("=")
        if name in names:
            value = same if equals else following
    return value


class Provider(Settings):
    """One model server; the comments in models.yaml explain each key."""

    kind: Kind
    url: str | None = None
    allow_cloud: bool = False
    api_key_variable: str | None = None
    api_key: str | None = Field(None, repr=False)  # the name of a secret
    program: str | None = None
    start: bool = True
    model: Path | None = None
    args: tuple[str, ...] = ()
    port: int = Field(0, ge=0, le=65535)
    minimum_build: int = Field(8665, ge=0)
    start_seconds: float = Field(600, gt=0)

    @field_validator("api_key")
    @classmethod
    def _names_a_secret(cls, named: str | None) -> str | None:
        if named is not None and not NAME.fullmatch(name_in(named) or ""):  # not repeated: it may be the key itself
            raise ValueError(f"expected {MARK}NAME, where the name is {NAMES}; 'local2 secret set NAME' keeps the key")
        return named

    @model_validator(mode="after")
    def _fits_its_kind(self) -> Self:
        foreign = sorted(self.model_fields_set - _KEYS[self.kind] - {"kind"})
        if foreign:
            raise ValueError(f"{foreign[0]} is no setting of a server of kind {self.kind}")
        if self.url and is_cloud(self.url) and not self.allow_cloud and self.kind != "google_genai":
            raise ValueError(f"{self.url.rpartition('@')[2]} is on the internet: {OPT_IN}")
        return self


class Chains(Settings):
    """For each role the models to ask, as provider/model, each if those before it could not answer.

    A chain is that of its first model: a call of that model may reach them all.
    """

    chat: tuple[str, ...] = ()
    fast: tuple[str, ...] = ()
    vision: tuple[str, ...] = ()
    critic: tuple[str, ...] = ()
    embed: tuple[str, ...] = ()

    def chains(self) -> tuple[tuple[str, ...], ...]:
        """The chains of models that are not empty."""
        return tuple(chain for role in get_args(Role) if (chain := getattr(self, role)))

    def all(self) -> tuple[str, ...]:
        """Every model in every chain."""
        return tuple(name for chain in self.chains() for name in chain)


class ModelGroup(Settings):
    """Servers with the same model, as provider/model, among which its conversations are divided; by provider the calls
    that a server answers at once, and its share of the conversations. The comments in models.yaml explain each key.
    """

    of: tuple[str, ...] = Field(min_length=1)
    slots: dict[str, Annotated[int, Field(ge=1)]] = Field({})
    weights: dict[str, Annotated[float, Field(gt=0)]] = Field({})

    @model_validator(mode="after")
    def _names_each_server_once(self) -> Self:
        providers = [name.partition("/")[0] for name in self.of]
        if len(set(providers)) < len(providers):
            raise ValueError("a group names each server once")
        for name in (*self.slots, *self.weights):
            if name not in providers:
                raise ValueError(f"{name} is no server of this group; {suggestion(name, providers)}")
        return self


class MaxTools(Settings):
    """The greatest number of tools offered to a model of each tier; None is no limit."""

    small: int | None = Field(10, ge=0)
    mid: int | None = Field(32, ge=0)
    large: int | None = Field(100, ge=0)  # OpenAI's API refuses more than 128

    @model_validator(mode="before")
    @classmethod
    def _read_old_names(cls, given: Any) -> Any:
        if not isinstance(given, Mapping):
            return given
        renamed = {_OLD_TIERS[name]: most for name, most in given.items() if name in _OLD_TIERS}
        return renamed | {name: most for name, most in given.items() if name not in _OLD_TIERS}


class Price(Settings):
    """The price of a model, for a million tokens."""

    prompt: float = Field(ge=0)
    completion: float = Field(ge=0)


class ModelsConfig(Settings):
    """The settings in `models.yaml`; the comments there explain each key."""

    providers: dict[str, Provider] = Field({kind: Provider(kind=kind) for kind in get_args(Kind)})
    groups: dict[str, ModelGroup] = Field({})
    roles: Chains = Field(Chains(), validate_default=True)
    fallback_on_rate_limit: bool = True
    fallback_on_error: bool = True
    max_retries: int = Field(2, ge=0)
    max_wait_seconds: float = Field(30, ge=0)
    max_tools: MaxTools = MaxTools()
    sizes: dict[str, TierName | Annotated[float, Field(gt=0)]] = Field({})
    prices: dict[str, Price] = Field({})
    keep_alive: str | int = "30m"
    hub_url: str = Field("https://huggingface.co", pattern=r"^https?://[^\s/]+")

    @field_validator("groups")
    @classmethod
    def _groups_name_providers(cls, groups: dict[str, ModelGroup], info: ValidationInfo) -> dict[str, ModelGroup]:
        names = [name for group in groups.values() for name in group.of]
        _check_names(names, info)
        if len(set(names)) < len(names):
            raise ValueError("a model is in one group only")
        return groups

    @field_validator("roles")
    @classmethod
    def _chains_name_providers(cls, roles: Chains, info: ValidationInfo) -> Chains:
        """A role without a chain is that of the group with its name."""
        _check_names(roles.all(), info)
        groups = info.data.get("groups", {})
        found = {role: groups[role].of[:1] for role in get_args(Role) if role in groups and not getattr(roles, role)}
        return roles.model_copy(update=found) if found else roles

    def named(self) -> tuple[str, ...]:
        """Every model in a chain or a group, as provider/model, each once."""
        grouped = (name for group in self.groups.values() for name in group.of)
        return tuple(dict.fromkeys((*self.roles.all(), *grouped)))

    def named_at(self, provider: str) -> tuple[str, ...]:
        """Those of one provider, by the names that they have there."""
        parts = (name.partition("/") for name in self.named())
        return tuple(dict.fromkeys(model for named, _, model in parts if named == provider))

    def slots_at(self, provider: str) -> int | None:
        """The calls that a provider answers at once, where a group says so."""
        stated = (group.slots[provider] for group in self.groups.values() if provider in group.slots)
        return next(stated, None)

    @property
    def shared(self) -> frozenset[str]:
        """The providers among which conversations are divided."""
        return frozenset(name.partition("/")[0] for group in self.groups.values() for name in group.of)


def _check_names(names: Iterable[str], info: ValidationInfo) -> None:
    providers = info.data.get("providers", {})
    for name in names:
        provider, slash, model = name.partition("/")
        if not slash or not model:
            raise ValueError(f"expected provider/model, such as ollama/gemma4:12b, found {name!r}")
        if provider not in providers:
            raise ValueError(f"{name}: unknown provider; {suggestion(provider, providers)}")


class Endpoint(Settings):
    """A model server as a client needs it. `only_model` is the one it has, whatever model it is asked for."""

    kind: Literal["ollama", "openai"]
    url: str
    allow_cloud: bool = False
    api_key_variable: str | None = None
    api_key: SecretStr | None = None  # the name of a secret, and its value in the process of an agent
    only_model: str | None = None

    @property
    def key(self) -> str:
        """The key that the server wants, if it comes from the store of secrets."""
        return self.api_key.get_secret_value() if self.api_key else ""


class Routing(Settings):
    """Every model server that can be asked, by its provider's name, and how. `default` is the one of `backend`. With
    `is_fixed` the command line has named the model that answers, so models.yaml changes nothing until the next start.
    """

    config: ModelsConfig = ModelsConfig()
    endpoints: dict[str, Endpoint]
    default: str
    is_fixed: bool = False

    @classmethod
    def to_one(cls, name: str, endpoint: Endpoint) -> Self:
        """Everything is asked from one server."""
        return cls(endpoints={name: endpoint}, default=name)

    def first(self, role: Role, own_model: str) -> str:
        """The model to ask in a role, by its name for people: without its provider, if that is the default. It is
        `own_model` for a role without a chain. Raises `ConfigError`, as `locate` does."""
        chain: tuple[str, ...] = getattr(self.config.roles, role) or (own_model,)
        return self.shown(*self.locate(chain[0]))

    def shown(self, provider: str, model: str) -> str:
        """A model's name for people, by which `locate` finds it: without its provider, if that is the default."""
        is_plain = provider == self.default and model.partition("/")[0] not in self.endpoints
        return model if is_plain else f"{provider}/{model}"

    def serves(self, name: str) -> bool:
        """Whether `provider/model` can be asked without a restart, as far as the settings show."""
        provider, slash, model = name.partition("/")
        endpoint = self.endpoints.get(provider)
        return bool(slash) and endpoint is not None and endpoint.only_model in (None, model)

    def stated_size(self, name: str) -> float | TierName | None:
        """Return the owner's statement of a model's size, in billions of parameters or as a tier: by its name, with or
        without its provider, or by the provider's name for all of its models; None if there is none.
        """
        provider, model = self.locate(name)
        sizes = self.config.sizes
        return next((sizes[key] for key in (f"{provider}/{model}", model, provider) if key in sizes), None)

    def most_tools(self, tier: TierName) -> int:
        """Return the greatest number of tools offered to a model of that tier; the greatest possible one without a
        limit.
        """
        most: int | None = getattr(self.config.max_tools, tier)
        return sys.maxsize if most is None else most

    def locate(self, name: str) -> tuple[str, str]:
        """Provider and model of `provider/model`, or of a mere model, which is then one of the default provider.

        Raises `ConfigError` for a model that Ollama runs on other people's machines without `allow_cloud`.
        """
        provider, slash, model = name.partition("/")
        if not (slash and provider in self.endpoints):
            provider, model = self.default, name
        endpoint = self.endpoints[provider]
        if endpoint.kind == "ollama" and model.endswith(CLOUD_MODELS) and not endpoint.allow_cloud:
            raise ConfigError(f"{model} runs on the machines of Ollama: {OPT_IN}, for {provider} in models.yaml")
        return provider, endpoint.only_model or model
