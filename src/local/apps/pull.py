"""`local2 pull`: fetches a model with Ollama, and shows how far it is."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

from local.apps.backend import ollama_url
from local.config import layers_for, load_system
from local.config_models import load_models
from local.environment import environment
from local.models.chat import Json
from local.models.ollama import OllamaModel

# Between two lines of progress; a registry may be slow, and checking a large file says nothing for minutes.
_SILENCE_SECONDS = 300.0
_ANSWER_SECONDS = 30.0


def pull(model: str, show: Callable[[str], object], *, config_dir: Path | None = None) -> None:
    """Fetch a model; `show` is given each step and each full percent. Raises `LocalError` for what keeps it from it."""
    layers = layers_for(config_dir)
    url = ollama_url(load_system(layers, {}, environment()), load_models(layers))
    asyncio.run(pull_at(url, model, show))


async def pull_at(url: str, model: str, show: Callable[[str], object]) -> None:
    """Fetch a model with the Ollama server at an address; `show` is given each step and each full percent."""
    server = OllamaModel(
        url,
        first_token_seconds=_ANSWER_SECONDS,
        between_tokens_seconds=_SILENCE_SECONDS,
        timeout_seconds=_ANSWER_SECONDS,
    )
    shown = ""
    try:
        async with aclosing(server.pull(model)) as steps:
            async for step in steps:
                line = describe(step)
                if line != shown:
                    show(line)
                shown = line
    finally:
        await server.close()


def describe(step: Json) -> str:
    """One line for a step of Ollama's: `pulling 3fa… 45 % of 8.1 GB`."""
    status, total = str(step.get("status", "")), step.get("total")
    if not isinstance(total, int) or total <= 0:
        return status
    percent = 100 * int(step.get("completed") or 0) // total
    return f"{status} {percent} % of {_size(total)}"


def _size(count: int) -> str:
    value, units = float(count), iter(("B", "kB", "MB", "GB"))
    unit = next(units)
    for larger in units:
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{value:.0f} {unit}" if unit in ("B", "kB") else f"{value:.1f} {unit}"
