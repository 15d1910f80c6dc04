"""Checks of every model server that is used: does it answer, does it have our models, and can they do what we ask."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from itertools import pairwise

import psutil

from local.agents.answering.generator_config import GeneratorConfig
from local.apps.backend import google_endpoint, may_stand_in, ollama_url, openai_endpoint, used_providers
from local.apps.command_line import sized
from local.apps.doctor.doctor_finding import DoctorFinding, fail, ok, warn
from local.apps.doctor.installation import ObserverModels
from local.config import SystemConfig
from local.config_models import Endpoint, ModelsConfig, Provider
from local.environment import secret
from local.errors import ConfigError, ModelError, NoSuchModel
from local.models.chat import ModelInfo
from local.models.hub.model_folder import model_at, require_gguf
from local.models.ollama import OllamaModel
from local.models.openai import OpenAIModel
from local.models.server_address import is_loopback
from local.models.servers.spec import llama_server_spec
from local.secrets.secret_settings import with_secrets

SECONDS = 2.0
SERVER = "model server"
_NAMED_IN = {"generator_b": "--model-b or system.yaml"}  # where not in a page of its own


async def check_model_servers(
    system: SystemConfig,
    generator: GeneratorConfig,
    models: ModelsConfig | None = None,
    observers: ObserverModels = ObserverModels(),  # noqa: B008 - it is frozen
    secret_of: Callable[[str], str] = str,
) -> list[DoctorFinding]:
    """Everything about the servers and their models; what cannot be asked without the one before is left out."""
    if system.backend == "stand_in":
        return [ok(SERVER, "the stand-in, as backend in system.yaml asks for; it is no language model")]
    models = models or ModelsConfig()
    findings: list[DoctorFinding] = []
    for place, name in enumerate(used_providers(system, models)):
        wanted = models.roles.at(name)
        if place == 0 and not models.roles.chat:
            wanted = (generator.model, *wanted)
        try:
            own = observers.at(name, models, is_default=place == 0)
            findings += await _check(name, wanted, own, system, generator, models, secret_of)
        except NoSuchModel as error:
            findings.append(fail(SERVER, str(error), "choose another file with `local2 model use FILE.gguf`"))
        except ConfigError as error:
            findings.append(fail(SERVER, str(error), "correct it in models.yaml, system.yaml or the environment"))
    return findings


async def _check(
    name: str,
    wanted: Sequence[str],
    observers: ObserverModels,
    system: SystemConfig,
    generator: GeneratorConfig,
    models: ModelsConfig,
    secret_of: Callable[[str], str],
) -> list[DoctorFinding]:
    provider = models.providers[name]
    match provider.kind:
        case "ollama":
            url = ollama_url(system, models, name)
            stand_in = may_stand_in(system, models)
            local = provider.model_copy(update={"start": provider.start and is_loopback(url)})
            return await check_ollama(url, local, wanted, generator, observers, stand_in=stand_in)
        case "openai":
            return await _check_openai(
                name, with_secrets(openai_endpoint(name, provider), "models", secret_of), wanted, observers
            )
        case "google_genai":
            return await _check_openai(
                name, with_secrets(google_endpoint(provider), "models", secret_of), wanted, observers
            )
        case "llama_server":
            return check_llama_server(name, provider)


def check_llama_server(name: str, provider: Provider) -> list[DoctorFinding]:
    """The program, the file of the model, and the memory that it takes. Raises `ConfigError` for what is missing."""
    spec = llama_server_spec(name, provider)
    assert provider.model is not None
    require_gguf(provider.model)
    size, free = model_at(provider.model).size, psutil.virtual_memory().available
    needed = f"{sized(size)} and its context ({_context_of(spec.command)})"
    cache = f"up to {spec.cache_mib} MiB of memory keep the prompts that it has read (--cache-ram)"
    findings = [ok(SERVER, f"{spec.program} with {provider.model}; LoCAL2 starts it with itself; {cache}")]
    text = f"the model takes {needed} of {sized(free)} of free memory"
    if size > free:
        fix = "choose a smaller one (`local2 model list`), or end other programs before the start"
        return [*findings, warn("model memory", text, fix)]
    return [*findings, ok("model memory", text)]


def _context_of(command: Sequence[str]) -> str:
    *_, last = (value for option, value in pairwise(command) if option in ("--ctx-size", "-c"))  # the owner's overrides
    return "as many tokens as the model can hold" if last == "0" else f"{last} tokens"


async def _check_openai(
    name: str, endpoint: Endpoint, wanted: Sequence[str], observers: ObserverModels
) -> list[DoctorFinding]:
    key = endpoint.key or (secret(endpoint.api_key_variable) if endpoint.api_key_variable else "")
    server = OpenAIModel(
        endpoint.url,
        first_token_seconds=SECONDS,
        between_tokens_seconds=SECONDS,
        timeout_seconds=SECONDS,
        api_key=key,
    )
    try:
        listed = await server.models()
        findings = [ok(SERVER, f"{name} at {endpoint.url}")]
        for model in wanted:
            findings.append(await _check_listed_model(server, model, listed))
        return [*findings, *check_observers(observers, listed)]
    except ModelError as error:
        return [fail(SERVER, str(error), f"start it, or correct providers.{name} in models.yaml")]
    finally:
        await server.close()


async def _check_listed_model(server: OpenAIModel, model: str, listed: Sequence[str]) -> DoctorFinding:
    try:
        info = await server.show(model)
    except ModelError as error:
        if error.kind != "model_missing":
            raise
        text = f"{model} is not there; there are: {', '.join(listed[:10]) or 'none'}"
        return fail("model", text, "name another in generator.yaml or models.yaml")
    return ok("model", f"{model} is there; it can: {', '.join(sorted(info.capabilities)) or 'what it does not say'}")


async def check_ollama(
    url: str,
    provider: Provider,
    wanted: Sequence[str],
    generator: GeneratorConfig,
    observers: ObserverModels,
    *,
    stand_in: bool,
) -> list[DoctorFinding]:
    """The server at an address and the models `wanted` of it. `stand_in`: without it the stand-in answers."""
    server = OllamaModel(url, first_token_seconds=SECONDS, between_tokens_seconds=SECONDS, timeout_seconds=SECONDS)
    try:
        version = await server.version()
        pulled = await server.models()
        findings = [ok(SERVER, f"Ollama {version} at {url}")]
        for model in wanted:
            findings += await _check_ollama_model(server, model, generator, pulled)
        return [*findings, *check_observers(observers, pulled), check_embeddings(observers, pulled)]
    except ModelError as error:
        return [_no_server(provider, error, stand_in)]
    finally:
        await server.close()


def _no_server(provider: Provider, error: ModelError, stand_in: bool) -> DoctorFinding:
    program = shutil.which(provider.program or "ollama")
    if error.kind == "unreachable" and provider.start and program:
        return ok(SERVER, f"Ollama does not run; LoCAL2 starts {program} with itself")
    fix = "install Ollama (https://ollama.com), start it with 'ollama serve', or set ollama_url or OLLAMA_HOST"
    if stand_in:
        fix = f"run `local2 model try` for a very small model without Ollama, or {fix}"
        return warn(SERVER, f"{error}. Until then the stand-in answers, which is no language model", fix)
    return fail(SERVER, str(error), fix)


async def _check_ollama_model(
    server: OllamaModel, model: str, generator: GeneratorConfig, pulled: Sequence[str]
) -> list[DoctorFinding]:
    try:
        info = await server.show(model)
    except ModelError as error:
        if error.kind != "model_missing":
            return [fail("model", str(error), "restart Ollama; its log says why")]
        text = f"{model} is not pulled; there are: {', '.join(pulled) or 'none'}"
        return [fail("model", text, f"ollama pull {model}, or name another in generator.yaml or models.yaml")]
    if "embedding" in info.capabilities:
        return [ok("model", f"{model} is pulled; it embeds texts")]
    return [check_abilities(info, generator), check_context(info, generator)]


def check_abilities(info: ModelInfo, generator: GeneratorConfig) -> DoctorFinding:
    """The model can call tools, and think if that is wanted."""
    missing = [ability for ability in ("tools", "thinking") if ability not in info.capabilities]
    if not generator.think and "thinking" in missing:
        missing.remove("thinking")
    if missing:
        text = f"{info.name} is pulled, but lacks: {', '.join(missing)}; it answers without"
        return warn("model", text, "choose another model in generator.yaml, such as gemma4:12b")
    return ok("model", f"{info.name} is pulled; it can: {', '.join(sorted(info.capabilities))}")


def check_context(info: ModelInfo, generator: GeneratorConfig) -> DoctorFinding:
    """The model's context holds what `num_ctx` asks for, in tokens."""
    if info.context_length is None:
        return ok("context", f"num_ctx {generator.num_ctx}; the server does not say what {info.name} can hold")
    text = f"num_ctx {generator.num_ctx} of the {info.context_length} tokens that {info.name} can hold"
    if info.context_length < generator.num_ctx:
        return warn("context", text, f"set num_ctx in generator.yaml to at most {info.context_length}")
    return ok("context", text)


def check_observers(observers: ObserverModels, there: Sequence[str]) -> list[DoctorFinding]:
    """The observers' own models are among those that are `there`."""
    return [_check_observer(who, model, there) for who, model in observers.models.items()]


def check_embeddings(observers: ObserverModels, there: Sequence[str]) -> DoctorFinding:
    """The embedding model is there; it is optional, because one is bundled."""
    model = observers.embedding
    if _is_among(model, there):
        return ok("embeddings", f"{model} is pulled")
    return ok("embeddings", f"{model} is not pulled; optional, with 'ollama pull {model}'")


def _check_observer(who: str, model: str, there: Sequence[str]) -> DoctorFinding:
    if _is_among(model, there):
        return ok(who, f"{model} is there")
    text = f"{model} is not there, so that {who} has no model; there are: {', '.join(there[:10]) or 'none'}"
    place = _NAMED_IN.get(who, f"{who}.yaml")
    return warn(who, text, f"get it, as with 'ollama pull {model}', or name another in {place}")


def _is_among(model: str, there: Sequence[str]) -> bool:
    """Whether a server has a model: to a server, a name without a tag is that of the latest."""
    return model in there or f"{model}:latest" in there
