"""Checks of the memory: its store, and the embedding model that is always there."""

from __future__ import annotations

import asyncio
from pathlib import Path

from local.agents.remembering.condition import DIRECTORY, Condition, examine, try_bundled_model
from local.apps.doctor.finding import Finding, fail, ok, warn
from local.apps.doctor.machine import REINSTALL
from local.apps.doctor.situation import Situation
from local.errors import ModelError, StoreDamaged, StoreFailed

MEMORY = "memory"


async def check_memory(situation: Situation) -> list[Finding]:
    """The store of the memory and the bundled embedding model, if the memory takes part."""
    if MEMORY not in situation.configs:
        return [ok(MEMORY, "memory does not take part")]
    store = await asyncio.to_thread(check_store, situation.data_dir / DIRECTORY)
    return [store, await check_bundled_model()]


def check_store(directory: Path) -> Finding:
    """The store can be read and is sound."""
    try:
        condition = examine(directory)
    except StoreDamaged as error:
        fix = f"stop the system and move {directory} away; what is only in there is lost without a backup"
        return fail(MEMORY, str(error), fix)
    except StoreFailed as error:
        return fail(MEMORY, str(error), f"make {directory} and all in it readable for this user")
    if condition is None:
        return ok(MEMORY, "nothing is remembered yet")
    return ok(MEMORY, f"{directory} is sound; exchanges: {condition.engrams}; {_index(condition)}")


def _index(condition: Condition) -> str:
    if not condition.is_indexed:
        return "the index of their meanings is built at the next start"
    if condition.pending:
        return f"{condition.pending} of them are still to be embedded"
    return "all of them are embedded"


async def check_bundled_model(directory: Path | None = None) -> Finding:
    """The embedding model that needs no model server works: it embeds something."""
    name = "bundled model"
    try:
        model = await try_bundled_model(directory)
    except (ModelError, ImportError) as error:
        text = f"{error}; without an embedding model on the model server, memories are found by their words alone"
        return warn(name, text, REINSTALL)
    return ok(name, f"{model} embeds where no model server does")
