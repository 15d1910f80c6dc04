"""A server that runs elsewhere, and is asked over streamable HTTP; for as long as it is known to be there."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(slots=True)
class RemoteServer:
    """`headers` may hold keys; `seconds` is for how long it may say nothing."""

    url: str
    headers: Mapping[str, str] = field(repr=False)
    seconds: float
    _lost: asyncio.Future[str] = field(default_factory=lambda: asyncio.get_running_loop().create_future(), repr=False)

    @property
    def is_lost(self) -> bool:
        """Whether it was there, and is no more."""
        return self._lost.done()

    def lose(self, why: str) -> None:
        """It does not answer any more, or has forgotten us: whoever wants it again begins anew."""
        if not self._lost.done():
            self._lost.set_result(why)

    async def ended(self) -> str:
        """Wait until it is lost, and say why."""
        return await asyncio.shield(self._lost)
