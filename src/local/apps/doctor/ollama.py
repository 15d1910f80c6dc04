"""Checks of an Ollama server: does it answer, does it have our models, and can they do what we ask of them."""

from __future__ import annotations

import shutil
from collections.abc import Sequence

from local.agents.answering.config import GeneratorConfig
from local.apps.doctor.finding import Finding, fail, ok, warn
from local.apps.doctor.observers import Observers, check_embeddings, check_observers
from local.config_models import Provider
from local.errors import ModelError
from local.models.chat import ModelInfo
from local.models.ollama import OllamaModel

SECONDS = 2.0
SERVER = "model server"


async def check_ollama(
    url: str,
    provider: Provider,
    wanted: Sequence[str],
    generator: GeneratorConfig,
    observers: Observers,
    *,
    stand_in: bool,
) -> list[Finding]:
    """The server at an address and the models `wanted` of it. `stand_in`: without it the stand-in answers."""
    server = OllamaModel(url, first_token_seconds=SECONDS, between_tokens_seconds=SECONDS, timeout_seconds=SECONDS)
    try:
        version = await server.version()
        pulled = await server.models()
        findings = [ok(SERVER, f"Ollama {version} at {url}")]
        for model in wanted:
            findings += await _check_model(server, model, generator, pulled)
        return [*findings, *check_observers(observers, pulled), check_embeddings(observers, pulled)]
    except ModelError as error:
        return [_no_server(provider, error, stand_in)]
    finally:
        await server.close()


def _no_server(provider: Provider, error: ModelError, stand_in: bool) -> Finding:
    program = shutil.which(provider.program or "ollama")
    if error.kind == "unreachable" and provider.start and program:
        return ok(SERVER, f"Ollama does not run; LoCAL2 starts {program} with itself")
    fix = "install Ollama (https://ollama.com), start it with 'ollama serve', or set ollama_url or OLLAMA_HOST"
    if stand_in:
        return warn(SERVER, f"{error}. Until then the stand-in answers, which is no language model", fix)
    return fail(SERVER, str(error), fix)


async def _check_model(
    server: OllamaModel, model: str, generator: GeneratorConfig, pulled: Sequence[str]
) -> list[Finding]:
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


def check_abilities(info: ModelInfo, generator: GeneratorConfig) -> Finding:
    """The model can call tools, and think if that is wanted."""
    missing = [ability for ability in ("tools", "thinking") if ability not in info.capabilities]
    if not generator.think and "thinking" in missing:
        missing.remove("thinking")
    if missing:
        text = f"{info.name} is pulled, but lacks: {', '.join(missing)}; it answers without"
        return warn("model", text, "choose another model in generator.yaml, such as gemma4:12b")
    return ok("model", f"{info.name} is pulled; it can: {', '.join(sorted(info.capabilities))}")


def check_context(info: ModelInfo, generator: GeneratorConfig) -> Finding:
    """The model's context holds what `num_ctx` asks for, in tokens."""
    if info.context_length is None:
        return ok("context", f"num_ctx {generator.num_ctx}; the server does not say what {info.name} can hold")
    text = f"num_ctx {generator.num_ctx} of the {info.context_length} tokens that {info.name} can hold"
    if info.context_length < generator.num_ctx:
        return warn("context", text, f"set num_ctx in generator.yaml to at most {info.context_length}")
    return ok("context", text)
