"""Checks of every model server that is used."""

from __future__ import annotations

from collections.abc import Sequence

from local.agents.answering.config import GeneratorConfig
from local.apps.backend import may_stand_in, ollama_url, openai_endpoint, used_providers
from local.apps.doctor.finding import Finding, fail, ok
from local.apps.doctor.observers import Observers, check_observers
from local.apps.doctor.ollama import SECONDS, SERVER, check_ollama
from local.apps.doctor.situation import Situation
from local.config import SystemConfig, secret
from local.config_models import ModelsConfig, Provider
from local.errors import ConfigError, ModelError
from local.models.ollama_host import is_loopback
from local.models.openai import OpenAIModel
from local.models.servers.spec import llama_server_spec


async def check_model_servers(situation: Situation) -> list[Finding]:
    """The model servers of a system, as it is configured."""
    return await check_model_server(situation.system, situation.generator, situation.models, situation.observers)


async def check_model_server(
    system: SystemConfig,
    generator: GeneratorConfig,
    models: ModelsConfig | None = None,
    observers: Observers = Observers(),  # noqa: B008 - it is frozen
) -> list[Finding]:
    """Everything about the servers and their models; what cannot be asked without the one before is left out."""
    if system.backend == "stand_in":
        return [ok(SERVER, "the stand-in, as backend in system.yaml asks for; it is no language model")]
    models = models or ModelsConfig()
    findings: list[Finding] = []
    for place, name in enumerate(used_providers(system, models)):
        wanted = models.roles.at(name)
        if place == 0 and not models.roles.chat:
            wanted = (generator.model, *wanted)
        try:
            own = observers.at(name, models, is_default=place == 0)
            findings += await _check(name, wanted, own, system, generator, models)
        except ConfigError as error:
            findings.append(fail(SERVER, str(error), "correct it in models.yaml, system.yaml or the environment"))
    return findings


async def _check(
    name: str,
    wanted: Sequence[str],
    observers: Observers,
    system: SystemConfig,
    generator: GeneratorConfig,
    models: ModelsConfig,
) -> list[Finding]:
    provider = models.providers[name]
    match provider.kind:
        case "ollama":
            url = ollama_url(system, models, name)
            stand_in = may_stand_in(system, models)
            local = provider.model_copy(update={"start": provider.start and is_loopback(url)})
            return await check_ollama(url, local, wanted, generator, observers, stand_in=stand_in)
        case "openai":
            return await _check_openai(name, provider, wanted, observers)
        case "llama_server":
            spec = llama_server_spec(name, provider)
            return [ok(SERVER, f"{spec.command[0]} with {provider.model}; LoCAL2 starts it with itself")]


async def _check_openai(name: str, provider: Provider, wanted: Sequence[str], observers: Observers) -> list[Finding]:
    endpoint = openai_endpoint(name, provider)
    key = secret(provider.api_key_variable) if provider.api_key_variable else ""
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
            findings.append(await _check_model(server, model, listed))
        return [*findings, *check_observers(observers, listed)]
    except ModelError as error:
        return [fail(SERVER, str(error), f"start it, or correct providers.{name} in models.yaml")]
    finally:
        await server.close()


async def _check_model(server: OpenAIModel, model: str, listed: Sequence[str]) -> Finding:
    try:
        info = await server.show(model)
    except ModelError as error:
        if error.kind != "model_missing":
            raise
        text = f"{model} is not there; there are: {', '.join(listed[:10]) or 'none'}"
        return fail("model", text, "name another in generator.yaml or models.yaml")
    return ok("model", f"{model} is there; it can: {', '.join(sorted(info.capabilities)) or 'what it does not say'}")
