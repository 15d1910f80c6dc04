"""`models.yaml`: which model servers there are, and which models of theirs do what."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import SplitResult, urlsplit

from pydantic import ConfigDict

from local.core.config import Settings, SystemConfig, load
from local.core.config_file import change, is_cloud
from local.core.errors import ConfigError, ModelError
from local.core.routing import (
    OPT_IN,
    Kind,
    ModelsConfig,
    Routing,
)
from local.models.chat import ChatModel, ModelInfo


def gguf_files(layers: Sequence[Path]) -> list[Path]:
    """The GGUF files that `models.yaml` names now. Raises `ConfigError`."""
    return [provider.model for provider in load_models(layers).providers.values() if provider.model]


def load_models(layers: Sequence[Path], overrides: Mapping[str, Any] | None = None) -> ModelsConfig:
    """`models.yaml`, with the paths of models counted from the user's folder. Raises `ConfigError`."""
    config = load("models", ModelsConfig, layers, overrides)
    providers = {
        name: provider.model_copy(update={"model": (layers[-1] / provider.model.expanduser()).resolve()})
        if provider.model
        else provider
        for name, provider in config.providers.items()
    }
    return config.model_copy(update={"providers": providers})


def ollama_url(system: SystemConfig, models: ModelsConfig, name: str = "ollama") -> str:
    """Return the address of a provider of kind ollama. Raises `ConfigError`."""
    provider = models.providers[name]
    url = provider.url or (system.ollama_url if name == "ollama" else None) or f"http://127.0.0.1:{DEFAULT_PORT}"
    base_url = normalise_host(url)  # which does not repeat a password
    if is_cloud(url) and not provider.allow_cloud:
        raise ConfigError(f"{url} is on the internet: {OPT_IN}, under providers: {name}: in models.yaml")
    return base_url


def any_ollama_url(system: SystemConfig, models: ModelsConfig) -> str:
    """Return Ollama's address, whether it is used or not; empty if the settings do not allow it."""
    try:
        return ollama_url(system, models) if "ollama" in models.providers else ""
    except ConfigError:
        return ""


# Models that were trained to judge answers, by a word in their names; and the form in which the critic asks them.
MADE_FOR_JUDGING: Final[Mapping[str, Literal["prometheus2", "selene"]]] = {
    "prometheus": "prometheus2",
    "selene": "selene",
}


def is_made_for_judging(name: str) -> bool:
    """Whether a model was trained to judge answers, by its name: it answers no questions."""
    return any(word in name.lower() for word in MADE_FOR_JUDGING)


# The default model, as set in the user's models.yaml: the only place for that choice.

FILE = "models.yaml"

log = logging.getLogger(__name__)


def choose_model(
    layers: Sequence[Path], kind: Kind, model: str, file: Path | None = None, provider: str | None = None
) -> Path:
    """Put a model of a server of this kind at the head of the chain for chat; `file` is the GGUF for llama-server,
    `provider` the server's name in the settings, by default the first of its kind.

    It replaces the former head; further models of the chain stay. Returns the written file. Raises `ConfigError`, also
    if another setting would keep the model from answering.
    """
    config = load_models(layers)
    backend = load("system", SystemConfig, layers).backend
    if backend == "stand_in":
        raise ConfigError("backend: stand_in in system.yaml keeps every model from answering; take that line out")
    provider = provider or _provider(config, kind)
    name = f"{provider}/{model}"
    others = [other for other in config.roles.chat[1:] if other != name]
    changes: dict[str, Any] = {"roles": {"chat": [name, *others]}}
    if file is not None:
        changes["providers"] = {provider: {"kind": kind, "model": str(file)}}
    load_models(layers, changes)
    path = layers[-1] / FILE
    change(path, changes)
    return path


def chosen_model(layers: Sequence[Path]) -> str:
    """Return the present choice, as provider/model: the head of the chain for chat; empty if there is none."""
    return next(iter(load_models(layers).roles.chat), "")


class _OwnModel(Settings):
    """`generator.yaml`, of which only the model is read."""

    model_config = ConfigDict(extra="ignore")
    model: str = ""


def answering_model(layers: Sequence[Path]) -> str:
    """The name of the model that answers by default, without its provider: of the chain, or of generator.yaml."""
    return chosen_model(layers).partition("/")[2] or load("generator", _OwnModel, layers).model


def _provider(config: ModelsConfig, kind: Kind) -> str:
    """Return the first provider of a kind, by name; the kind's own name if there is none."""
    return next((name for name, provider in config.providers.items() if provider.kind == kind), kind)


class DefaultModel:
    """The model that answers where a query chooses none. It follows `roles.chat` in models.yaml while the system runs,
    as long as a server that is used already can serve the first model there. `name` is its name for people, `chain`
    the models that are asked, the default first."""

    def __init__(self, routing: Routing, layers: Sequence[Path], name: str) -> None:
        """`name` is the default of the start."""
        self._routing, self._layers = routing, layers
        self.name, self.chain = name, routing.config.roles.chat or (name,)
        self._read: object = None

    def refresh(self) -> bool:
        """Look whether the settings have changed; returns whether another model is the default now."""
        read = self._state()
        if read is None or read == self._read:
            return False
        self._read = read
        try:
            chain = load_models(self._layers).roles.chat
            if not chain or not self._routing.serves(chain[0]):
                return False
            name = self._routing.shown(*self._routing.locate(chain[0]))
        except ConfigError as error:
            log.warning("the default model stays %s: %s", self.name, error)
            return False
        before, self.name, self.chain = self.name, name, tuple(filter(self._routing.serves, chain))
        return name != before

    def _state(self) -> object:
        """Return the state that changes with the file; None if it is not watched."""
        if self._routing.is_fixed or not self._layers:
            return None
        try:
            found = (self._layers[-1] / FILE).stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino


# How large a model is, in three tiers, by its billions of parameters. No I/O.


class Tier(StrEnum):
    """The class of a model's size, which sets the length of its prompt and the number of its tools."""

    SMALL = "small"
    MID = "mid"
    LARGE = "large"


LEAST: Final[dict[Tier, float]] = {Tier.LARGE: 69.5, Tier.MID: 11.5, Tier.SMALL: 0.0}
"""The billions of parameters from which on a model is of that tier. Models are sold by rounded numbers: "12B" may have
11.8 billion, "70B" 69.7."""


def tier_of(parameters: float | None) -> Tier:
    """The tier of a model with so many billions of parameters; one of unknown size counts as small."""
    if parameters is None:
        return Tier.SMALL
    return next((tier for tier, least in LEAST.items() if parameters >= least), Tier.SMALL)


# How large the models are that a participant uses: as their servers say, or as the owner has stated.


def _nothing(name: str) -> float | str | None:
    return None


class ModelSizes:
    """Asks the server of each model once for its size. Nothing is read from a name."""

    def __init__(self, model: ChatModel | None = None, stated: Callable[[str], float | str | None] = _nothing) -> None:
        """`stated(name)` returns the owner's statement of a model's size, in billions of parameters or as a tier, which
        overrides the server's.
        """
        self._model, self._stated = model, stated
        self._known: dict[str, float | None] = {}

    def tier(self, name: str) -> Tier:
        """Return the tier of a model by what is known now; small until its server has answered."""
        stated = self._stated(name)
        if isinstance(stated, str):
            return Tier(stated)
        return tier_of(self._known.get(name) if stated is None else stated)

    def parameters(self, name: str) -> float | None:
        """Return the billions of parameters of a model by what is known now; None if unknown."""
        stated = self._stated(name)
        return stated if isinstance(stated, int | float) else self._known.get(name)

    def is_known(self, name: str) -> bool:
        """Whether the owner or the server has described that model, even with an unknown size."""
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


# What people write as the address of a model server, and as its key, in one form.

DEFAULT_PORT = 11434

_DEFAULT_PORTS = {"http": 80, "https": 443}
# A server listens on these; a client has to connect to something.
_UNSPECIFIED = {"0.0.0.0": "127.0.0.1", "::": "::1"}


def normalise_host(value: str) -> str:
    """`scheme://host:port[/path]` of any form Ollama takes: "", "host", ":port", "host:port", IPv6, "https://…/path".

    As in Ollama, no scheme means http and port 11434, a scheme without a port means 80 or 443. Unspecified addresses
    (0.0.0.0, ::) become loopback. Raises `ConfigError` for what cannot be an address.
    """
    text = value.strip().strip("\"'").strip().rstrip("/")
    url, port = _split(text, value)
    host = _bracketed(url.hostname or "127.0.0.1")
    return f"{url.scheme}://{host}:{port}{url.path.rstrip('/')}"


def is_loopback(base_url: str) -> bool:
    """Whether the address stays on this machine."""
    host = urlsplit(base_url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _split(text: str, value: str) -> tuple[SplitResult, int]:
    if "@" in text:  # what stands before it is not repeated: it may be a secret
        raise _invalid(f"…@{text.rpartition('@')[2]}", "only scheme, host, port and path may be given")
    scheme, separator, rest = text.partition("://")
    scheme, rest = (scheme.lower(), rest) if separator else ("http", text)
    if _is_ipv6(rest):
        rest = f"[{rest}]"
    try:
        url = urlsplit(f"{scheme}://{rest}")
        port = url.port
    except ValueError as error:
        raise _invalid(value, str(error)) from error
    if scheme not in _DEFAULT_PORTS:
        raise _invalid(value, f"the scheme {scheme!r} is neither http nor https")
    if url.query or url.fragment or any(c.isspace() for c in rest):
        raise _invalid(value, "only scheme, host, port and path may be given")
    if port is None:
        port = _DEFAULT_PORTS[scheme] if separator else DEFAULT_PORT
    return url, port


def _is_ipv6(text: str) -> bool:
    try:
        return ipaddress.ip_address(text).version == 6
    except ValueError:
        return False


def _bracketed(host: str) -> str:
    host = _UNSPECIFIED.get(host, host)
    return f"[{host}]" if ":" in host else host


def _invalid(value: str, reason: str) -> ConfigError:
    expected = f"http://127.0.0.1:{DEFAULT_PORT}"
    return ConfigError(f"{value!r} is no address of an Ollama server: {reason}; expected something like {expected}")


_EXPECTED = "expected something like http://127.0.0.1:8080/v1"


def normalise_base_url(value: str) -> str:
    """`scheme://host[:port]/path` without a final slash; an address without a path gets /v1, where nearly all servers
    have their API. Raises `ConfigError` for what cannot be an address.
    """
    text = value.strip().rstrip("/").removesuffix("/chat/completions")
    if "@" in text or "?" in text or "#" in text or any(c.isspace() for c in text):
        # Not repeated here: what stands before an @ or behind a ? may be a secret.
        raise ConfigError(f"the address of a model server has only a scheme, a host, a port and a path; {_EXPECTED}")
    try:
        url = urlsplit(text)
        host, port = url.hostname, url.port
    except ValueError as error:
        raise ConfigError(f"{value!r} is no address of a model server: {error}; {_EXPECTED}") from error
    if url.scheme not in ("http", "https") or not host:
        raise ConfigError(f"{value!r} is no http or https address; {_EXPECTED}")
    bracketed = f"[{host}]" if ":" in host else host
    return f"{url.scheme}://{bracketed}{f':{port}' if port else ''}{url.path or '/v1'}"


def authorisation(api_key: str) -> dict[str, str]:
    """Return the header with the key, none without one. Raises `ConfigError`, which does not contain the key."""
    if not api_key:
        return {}
    if not (api_key.isascii() and api_key.isprintable() and " " not in api_key):
        raise ConfigError("the API key holds a blank, a line end or a character beyond ASCII; no key has these")
    return {"Authorization": f"Bearer {api_key}"}


# Which models can look at pictures, and the error for one that cannot.

SEEING = "gemma4:12b"
_LOOK_SECONDS = 5.0
_MOST_NAMED = 5

Names = Callable[[], Awaitable[Sequence[str]]]


def is_blind(info: ModelInfo) -> bool:
    """Whether a model cannot see pictures. One whose server does not report its capabilities may be able to."""
    return bool(info.capabilities) and "vision" not in info.capabilities


async def cannot_see(name: str, others: Names | None = None) -> ModelError:
    """The error for pictures that a model cannot look at. It names those of the `others` that can; where none can, or
    the servers do not say in time, one to pull."""
    there: Sequence[str] = ()
    if others is not None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_LOOK_SECONDS):
                there = await others()
    named = ", ".join(there[:_MOST_NAMED])
    advice = f"{named} can: name one" if named else f"pull one that can (`local2 model pull {SEEING}`) and name it"
    return ModelError(
        f"{name} cannot look at pictures; {advice} for the role vision in models.yaml", kind="unsupported"
    )
