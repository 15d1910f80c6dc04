"""`local2 model check`: whether a model can grade answers and extract facts, by the self-tests that it must pass."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from local.core.capability import participants
from local.core.config import load, load_system
from local.core.environment import environment
from local.core.routing import Endpoint, ModelsConfig, Provider, Routing
from local.generator.config import GeneratorConfig
from local.models.chat import Usage
from local.models.hub import ModelStock
from local.models.leases import Leases
from local.models.router import Router, connect
from local.models.servers import ServerSpec, llama_server_spec, serve
from local.models.settings import chosen_model, load_models, ollama_url
from local.run.backend import google_endpoint, openai_endpoint

if TYPE_CHECKING:
    from local.critic.agent import CriticConfig

Show = Callable[[str], object]
SECONDS = 120.0  # of silence in an answer, where no critic has a setting for it


class _CountedLeases(Leases):
    """Leases that count the tokens of calls instead of reporting them, because there is no system to report to."""

    prompt_tokens = completion_tokens = 0

    def report_use(self, purpose: str, model: str, used: Usage, begun: float) -> None:
        self.prompt_tokens += used.prompt_tokens
        self.completion_tokens += used.completion_tokens


async def check(layers: Sequence[Path], data_dir: Path, stock: ModelStock, wanted: str | None, show: Show) -> bool:
    """Run both self-tests of a model, the one that judges if none is named, and show each item; without the test of a
    capability that was taken out. The results are stored where critic and memory look for them. Returns whether all
    were passed. Raises `ModelError`, `ConfigError`."""
    models, there = load_models(layers), participants()
    critic = _critic_config(layers) if "critic" in there else None
    generator = load("generator", GeneratorConfig, layers)
    first = next(iter(models.roles.critic), "")
    name = wanted or (critic and critic.model) or first or chosen_model(layers) or generator.model
    routing, model, spec = await _where(layers, models, stock, name)
    num_ctx = (critic and critic.num_ctx) or generator.num_ctx
    client = partial(connect, routing, timeout_seconds=critic.timeout_seconds if critic else SECONDS)
    advice = list[str]()
    async with _running(spec, data_dir / "logs") if spec else nullcontext():
        if critic is not None and not await _judges(client(), model, critic, num_ctx, data_dir, show):
            advice.append(f"Answers get no grade from {model}: name a larger model as `critic`")
        if "memory" in there and not await _classifies(client(), model, num_ctx, data_dir, show):
            advice.append(f"Facts that {model} finds stay unconfirmed: name a larger model as `fast`")
    for line in advice:
        show(f"\n{line} under `roles` in models.yaml.")
    return not advice


def _critic_config(layers: Sequence[Path]) -> CriticConfig:
    from local.critic.agent import CriticConfig

    return load("critic", CriticConfig, layers)


async def _judges(client: Router, model: str, critic: CriticConfig, num_ctx: int, data_dir: Path, show: Show) -> bool:
    from local.critic.agent import profile_for
    from local.critic.judge import Judge
    from local.critic.self_test import JudgeFitness

    show(f"{model} as a judge: are right answers graded above wrong ones?")
    leases, begun = _CountedLeases(), time.monotonic()
    judge = Judge(client, model, profile_for(critic.profile, model), num_ctx=num_ctx, leases=leases)
    try:
        found = await JudgeFitness(judge, data_dir, on_item=lambda item: show(item.in_words())).checked()
    finally:
        await judge.close()
    show(f"{found.in_words()}; {_cost(leases, begun)}")
    show("")
    return found.is_fit


async def _classifies(client: Router, model: str, num_ctx: int, data_dir: Path, show: Show) -> bool:
    from local.memory.classifier_test import ClassifierFitness

    show(f"{model} as a classifier: does it find the facts that users state, and no others?")
    leases, begun = _CountedLeases(), time.monotonic()
    fitness = ClassifierFitness(client, model, num_ctx, leases, data_dir, on_item=lambda item: show(item.in_words()))
    try:
        found = await fitness.checked()
    finally:
        await client.close()
    show(f"{found.in_words()}; {_cost(leases, begun)}")
    return found.is_fit


async def _where(
    layers: Sequence[Path], models: ModelsConfig, stock: ModelStock, name: str
) -> tuple[Routing, str, ServerSpec | None]:
    """Return how to ask a model, its name there, and the server to start for it, if any."""
    provider, slash, rest = name.partition("/")
    settings = models.providers.get(provider) if slash else None
    if settings is not None and settings.kind in ("openai", "google_genai"):
        endpoint = google_endpoint(settings) if settings.kind == "google_genai" else openai_endpoint(provider, settings)
        return Routing(config=models, endpoints={provider: endpoint}, default=provider), rest, None
    found = await stock.find(rest if settings is not None else name)
    if found.path is None:
        provider = next((each for each, its in models.providers.items() if its.kind == "ollama"), "ollama")
        endpoint = Endpoint(kind="ollama", url=ollama_url(load_system(layers, {}, environment()), models, provider))
        return Routing(config=models, endpoints={provider: endpoint}, default=provider), found.name, None
    own = next((its for its in models.providers.values() if its.kind == "llama_server"), Provider(kind="llama_server"))
    spec = llama_server_spec("model_check", own.model_copy(update={"model": found.path, "port": 0}))
    endpoint = Endpoint(kind="openai", url=f"{spec.url}/v1", only_model=found.path.stem)
    return Routing.to_one("model_check", endpoint), found.path.stem, spec


@asynccontextmanager
async def _running(spec: ServerSpec, log_dir: Path) -> AsyncIterator[None]:
    """Start a separate model server for the check. Raises `ModelServerFailed`, `ConfigError`."""
    stop, ready = asyncio.Event(), asyncio.Event()
    serving, waiting = asyncio.create_task(serve(spec, log_dir, stop, ready.set)), asyncio.create_task(ready.wait())
    try:
        await asyncio.wait({serving, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if serving.done():
            serving.result()
        yield
    finally:
        waiting.cancel()
        stop.set()
        await asyncio.wait({serving})


def _cost(leases: _CountedLeases, begun: float) -> str:
    tokens = f"{leases.prompt_tokens:,} + {leases.completion_tokens:,} tokens"
    return f"{tokens}, {time.monotonic() - begun:.0f} s" if leases.prompt_tokens else "stored before"
