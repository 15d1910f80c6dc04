"""Collects what the judge needs once the users have gone quiet."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from chaos_harness.client import Client
from chaos_harness.history import Asked
from chaos_harness.judge import ANSWERED, Evidence
from chaos_harness.load import read_everything_again
from chaos_harness.sightings import Sighting
from chaos_harness.system import ChaosSystem

LOOK_SECONDS = 0.05


async def gather(system: ChaosSystem, client: Client, asked: Sequence[Asked]) -> Evidence:
    """Everything about these queries; what belongs to other sessions is left out."""
    sessions = await read_everything_again(client, list(asked))
    seen = await _seen(system, asked, client.patience)
    tags = tuple(f" {session_id}-" for session_id in sessions)
    return Evidence(
        asked=asked,
        effects=[line for line in system.effects() if any(tag in line for tag in tags)],
        sessions=sessions,
        seen=[sighting for sighting in seen if sighting.session_id in sessions],
    )


async def _seen(system: ChaosSystem, asked: Sequence[Asked], patience: float) -> list[Sighting]:
    """What the witness has seen, once it has seen every answer or patience ends."""
    answered = {each.question.query_id for each in asked if each.outcome and each.outcome.status == ANSWERED}
    end = time.monotonic() + patience
    while True:
        seen = await asyncio.to_thread(system.seen)
        if answered <= {sighting.query_id for sighting in seen} or time.monotonic() > end:
            return seen
        await asyncio.sleep(LOOK_SECONDS)
