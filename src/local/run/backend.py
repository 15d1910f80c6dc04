"""The choice of model servers: which ones are used, and which of them LoCAL2 starts."""

from __future__ import annotations

import http.client
import logging
import shutil
import socket
import urllib.request
from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import SecretStr

from local.api.server import listen
from local.core.config import BackendName, SystemConfig
from local.core.environment import is_set, secret
from local.core.errors import ConfigError
from local.core.routing import Endpoint, ModelsConfig, Provider, Routing
from local.models.servers import ServerSpec, llama_server_spec, ollama_spec, require_model
from local.models.settings import any_ollama_url, is_loopback, normalise_base_url, ollama_url

log = logging.getLogger(__name__)

GOOGLE_URL = "https://generativelanguage.googleapis.com/v1beta/openai"
GOOGLE_KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY")  # as Google's own package has them
PROBE_SECONDS = 2.0
STAND_IN = "stand_in"


@dataclass(frozen=True, slots=True)
class Backend:
    """The model servers of a system. `servers` are those that LoCAL2 starts, `listener` is the socket of the stand-in,
    if that is used. `ollama_url` is the address of Ollama, used or not; empty if the settings do not allow it.
    """

    routing: Routing
    servers: tuple[ServerSpec, ...] = ()
    listener: socket.socket | None = None
    ollama_url: str = ""

    @property
    def name(self) -> str:
        """The default provider, "stand_in" for the stand-in."""
        return self.routing.default

    @property
    def url(self) -> str:
        """The address of the default provider."""
        return self.routing.endpoints[self.name].url


def with_backend(system: SystemConfig, name: BackendName | None) -> SystemConfig:
    """The system with the backend that generator.yaml names, where system.yaml leaves it open."""
    return system if name is None or system.backend != "auto" else system.model_copy(update={"backend": name})


def choose_backend(system: SystemConfig, models: ModelsConfig) -> Backend:
    """Choose the model servers by `backend` in system.yaml and the chains in models.yaml.

    `auto` is the provider of the first model for chat, if models.yaml names one; else Ollama if it answers or can be
    started; else the stand-in, with a warning. Raises `ConfigError` for a server that cannot be used.
    """
    where = any_ollama_url(system, models)
    if system.backend == STAND_IN:
        return _stand_in(where)
    found = [_find(name, system, models) for name in used_providers(system, models)]
    if may_stand_in(system, models) and not found[0].there:
        log.warning(
            "NO MODEL SERVER answers at %s. The stand-in answers instead: not a language model but a program with "
            "fixed rules. For a real one run 'local2 model try' (very small, 100 MB, without Ollama), or install "
            "Ollama (https://ollama.com) and run 'ollama pull gemma4:12b', or run 'local2 model pull "
            "hf.co/OWNER/NAME' and 'local2 model use NAME'. Then start again.",
            found[0].endpoint.url,
        )
        return _stand_in(where)
    endpoints = {server.name: server.endpoint for server in found}
    routing = Routing(config=models, endpoints=endpoints | _others(models, endpoints), default=found[0].name)
    return Backend(routing, tuple(server.spec for server in found if server.spec), ollama_url=where)


def may_stand_in(system: SystemConfig, models: ModelsConfig) -> bool:
    """Whether the stand-in answers while there is no model server."""
    return system.backend == "auto" and not models.roles.chat


def used_providers(system: SystemConfig, models: ModelsConfig) -> list[str]:
    """The default provider, then those of the chains and of the groups."""
    default = ["ollama"] if may_stand_in(system, models) else []
    if system.backend != "auto":
        default = [system.backend]
    return list(dict.fromkeys([*default, *(name.partition("/")[0] for name in models.named())]))


@dataclass(frozen=True, slots=True)
class _Found:
    """A provider to use. `there`: a server answers, or will once `spec` runs."""

    name: str
    endpoint: Endpoint
    spec: ServerSpec | None = None
    there: bool = True


def _find(name: str, system: SystemConfig, models: ModelsConfig) -> _Found:
    provider = models.providers[name]
    match provider.kind:
        case "ollama":
            return _ollama(name, provider, ollama_url(system, models, name))
        case "llama_server":
            spec, model = llama_server_spec(name, provider), require_model(name, provider)
            return _Found(name, Endpoint(kind="openai", url=f"{spec.url}/v1", only_model=model.stem), spec)
        case "google_genai":
            log.warning("YOUR MESSAGES and the memories used with them are sent to Google (%s)", name)
            return _Found(name, google_endpoint(provider))
        case "openai":
            if provider.api_key_variable:
                secret(provider.api_key_variable)
            return _Found(name, openai_endpoint(name, provider))


def _ollama(name: str, provider: Provider, url: str) -> _Found:
    endpoint = Endpoint(kind="ollama", url=url, allow_cloud=provider.allow_cloud)
    if _answers(url):
        return _Found(name, endpoint)
    program = shutil.which(provider.program or "ollama")
    if program is None or not provider.start or not is_loopback(url):
        return _Found(name, endpoint, there=False)
    log.info("Ollama is not running and is started: %s serve", program)
    return _Found(name, endpoint, ollama_spec(name, program, url))


def openai_endpoint(name: str, provider: Provider) -> Endpoint:
    """Return the endpoint of a server with OpenAI's API. Raises `ConfigError` for an invalid address."""
    if not provider.url:
        raise ConfigError(f"where is the model server? Write its address as providers.{name}.url in models.yaml")
    return Endpoint(
        kind="openai",
        url=normalise_base_url(provider.url),
        api_key_variable=provider.api_key_variable,
        api_key=_secret(provider),
    )


def google_endpoint(provider: Provider) -> Endpoint:
    """Google's models, by their address for OpenAI's API. Raises `ConfigError` without a key."""
    url = normalise_base_url(provider.url or GOOGLE_URL)
    if provider.api_key:
        return Endpoint(kind="openai", url=url, api_key=_secret(provider))
    variable = provider.api_key_variable or next(filter(is_set, GOOGLE_KEYS), "")
    if not variable:
        raise ConfigError(f"backend google_genai needs a key: set the environment variable {GOOGLE_KEYS[0]}")
    secret(variable)
    return Endpoint(kind="openai", url=url, api_key_variable=variable)


def _secret(provider: Provider) -> SecretStr | None:
    return SecretStr(provider.api_key) if provider.api_key else None


def _others(models: ModelsConfig, used: Iterable[str]) -> dict[str, Endpoint]:
    """Return the further providers that `provider/model` in generator.yaml may name: external servers with an
    address."""
    return {
        name: openai_endpoint(name, provider)
        for name, provider in models.providers.items()
        if provider.kind == "openai" and provider.url and name not in used
    }


def _stand_in(where: str) -> Backend:
    listener = listen("127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    routing = Routing.to_one(STAND_IN, Endpoint(kind="ollama", url=url))
    return Backend(routing, listener=listener, ollama_url=where)


def _answers(url: str) -> bool:
    # urllib, because the supervisor has no other use for an HTTP client, and importing httpx costs it 80 ms
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{url}/api/version", timeout=PROBE_SECONDS) as response:
            return bool(response.status == 200)
    except (OSError, http.client.HTTPException, ValueError):
        return False
