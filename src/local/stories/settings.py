"""The user's settings that stories on a real model use: which model answers, how, and within which limits."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from local.core import config_file
from local.core.data_dir import RunInfo
from local.core.errors import ConfigError, ModelError
from local.core.routing import Routing
from local.models.router import connect

_LOOK_SECONDS = 20.0
_LIMITS = (
    "max_tool_iterations", "max_acting_iterations", "max_tool_calls", "max_tool_output_bytes", "max_offered_tools",
    "max_answer_tokens", "timeout_seconds", "tool_timeout_seconds",
)  # fmt: skip
_TAKEN_OVER = {
    "system": ("backend", "ollama_url"),
    "generator": (
        *("model", "backend", "fast_model", "vision_model", "num_ctx", "think", "temperature", "seed"),
        *_LIMITS,
    ),
}


def model_settings(folder: Path) -> dict[str, dict[str, Any]]:
    """The settings in a user's folder that say which model answers and how, by the names of their files; paths are
    absolute."""
    taken = {"models": dict(config_file.read(folder / "models.yaml").values)}
    for name, provider in (taken["models"].get("providers") or {}).items():
        if isinstance(provider, dict) and provider.get("model"):
            path = (folder / Path(str(provider["model"])).expanduser()).resolve()
            taken["models"]["providers"] = {**taken["models"]["providers"], name: {**provider, "model": str(path)}}
    for name, keys in _TAKEN_OVER.items():
        values = config_file.read(folder / f"{name}.yaml").values
        taken[name] = {key: values[key] for key in keys if key in values}
    return {name: values for name, values in taken.items() if values}


def thinks(facts: RunInfo) -> bool:
    """Whether the model that answers in a running system says that it can think."""
    return asyncio.run(_thinks(facts))


async def _thinks(facts: RunInfo) -> bool:
    try:
        routing = Routing.model_validate(facts.routing)
        router = connect(routing, timeout_seconds=_LOOK_SECONDS)
        try:
            info = await router.show(routing.first("chat", facts.chat_model))
        finally:
            await router.close()
    except (ValueError, ConfigError, ModelError):
        return False
    return "thinking" in info.capabilities
