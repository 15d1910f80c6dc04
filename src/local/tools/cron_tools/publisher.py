"""What jobs need of a bus."""

from __future__ import annotations

from typing import Protocol

from local.protocol.envelope import Trace
from local.protocol.messages import Message


class Publisher(Protocol):
    """A participant's bus."""

    async def publish(
        self, message: Message, trace: Trace, *, envelope_id: str | None = None, seconds: float = 30.0
    ) -> object:
        """Say something; of what is confirmed, return when it is on record."""
