"""A user's observer that remembers every answer, idempotently, in a file of its own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from chaos_harness.sightings import Sighting, Sightings
from local.bus.envelope import Envelope
from local.bus.messages import ResponseGeneration
from local.core.config import Settings
from local.runtime.participant import Participant, on


class WitnessSettings(Settings):
    """`store` is the file of what was seen."""

    store: Path


class Witness(Participant):
    """Sees every answer that a user gets."""

    name = "witness"
    Config = WitnessSettings

    def __init__(self, config: WitnessSettings) -> None:
        super().__init__(config)
        self._store = config.store

    @asynccontextmanager
    async def lifespan(self) -> AsyncIterator[None]:
        """Keep the file open."""
        with Sightings(self._store) as self._sightings:
            yield

    @on(ResponseGeneration, durable="witness")
    async def see(self, response: ResponseGeneration, envelope: Envelope) -> None:
        """Remember an answer; the same one again changes nothing, and what is only compared with it is no answer."""
        if response.respondent_id != "A":
            return
        sighting = Sighting(response.query_id, envelope.session_id or "", response.answer or "")
        await asyncio.to_thread(self._sightings.keep, sighting)
